"""Download: the synthetic table and what belongs to it."""
