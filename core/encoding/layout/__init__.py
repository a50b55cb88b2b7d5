"""Layout: what models see of a table whose schema holds rules or persons, and the way back."""
