"""Review: compare the synthetic table with the real one."""
