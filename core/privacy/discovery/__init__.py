"""Buying a schema: bounds, atoms, lists and mappings, released with noise before any plan."""
