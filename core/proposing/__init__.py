"""From all cells to a proposed schema, its doubts, and a picture of each column."""
