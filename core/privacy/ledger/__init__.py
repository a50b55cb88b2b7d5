"""The ledger: what releases about the same people cost together."""
