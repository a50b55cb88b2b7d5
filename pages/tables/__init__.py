"""Tables: bring a table in and declare what its columns are."""
