"""Ledger: what was spent on whom, and what is left."""
