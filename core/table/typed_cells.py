"""What raw cells mean under a declaration: a pure function of one cell and its column."""
