"""Artefacts in an object store: tables, runs and secrets under one prefix of a bucket."""
