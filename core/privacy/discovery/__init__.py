"""Learning a domain: bounds, atoms, lists and mappings, released with noise as a run begins."""
