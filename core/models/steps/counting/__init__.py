"""Counting: private counts of cells, columns and pairs, and what follows from them for free."""
