"""What a figure drawn from synthetic rows says of the real table, and how far it may be off."""
