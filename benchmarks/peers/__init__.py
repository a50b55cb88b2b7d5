"""Glue between our tables and peers' own programs; each file runs in its peer's environment."""
