"""PEARL: one private embedding of the table, then a generator that matches it."""
