"""Whose people a table is about, and paying from their account."""
