"""Histograms along a line of fine cells: where they end, and how dense they are between."""
