"""Steps from one revision of the database to the next."""
