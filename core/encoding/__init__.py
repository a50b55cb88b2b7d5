"""Rows to compact codes and back, by the public domain alone."""
