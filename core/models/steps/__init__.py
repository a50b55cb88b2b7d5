"""What two or more models use; torch, imported when a fit or a sample starts."""
