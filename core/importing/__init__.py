"""A source read in a process of its own and kept as one Parquet file of raw cells."""
