"""Tables and what may be known about them for free: reading, inference, schema, codec."""
