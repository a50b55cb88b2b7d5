"""PPEM: an energy and a generator for the tagged columns, another pair for the rest."""
