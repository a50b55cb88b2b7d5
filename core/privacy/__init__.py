"""Mechanisms, plans, one accountant, one way to rows, one ledger."""
