"""Any source as raw cells, in batches; and each cell as its column's declaration types it."""
