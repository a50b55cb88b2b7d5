"""The report: its stored form, its stages, and what people outside may see of it."""
