"""The product without its pages: tables, privacy, models, quality, runs."""
