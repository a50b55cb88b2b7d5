"""Mechanisms: statistics with a sensitivity, and their noise."""
