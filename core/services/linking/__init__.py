"""Tables of people and of their rows: put together as one, and taken apart again."""
