"""Which process holds a run, by whose clock, and what it leaves unfinished."""
