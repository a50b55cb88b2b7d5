"""What people said of a run, and who looked at real rows to say it."""
