"""Scan and focus: a scan of all small sets of columns, then counts of the significant ones."""
