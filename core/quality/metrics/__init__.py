"""Metrics: one family a file, each with what it measures and how."""
