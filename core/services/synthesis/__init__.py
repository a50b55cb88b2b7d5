"""A table in memory to synthetic rows in this process: what command line and API share."""
