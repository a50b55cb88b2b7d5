"""Structural zeros: where counts of pairs lack records, what is asked of it, what is kept."""
