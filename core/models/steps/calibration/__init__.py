"""Calibration: generated rows are weighed until they agree with released counts."""
