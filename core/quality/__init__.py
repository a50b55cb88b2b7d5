"""How close a synthetic table is to the real one: metrics and the report made of them."""
