"""Rules that hold in every row: what they say, and how columns that obey them are rewritten."""
