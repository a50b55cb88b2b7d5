"""A proposed schema from raw cells: it looks at all of them, and only proposes."""
