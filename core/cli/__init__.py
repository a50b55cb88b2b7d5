"""The command line: the same services, no browser."""
