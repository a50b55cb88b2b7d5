"""Synthesizers: one file a model, each found through the registry."""
