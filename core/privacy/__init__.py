"""Mechanisms, plans, one accountant, one door to rows, one ledger."""
