"""What only a team server needs: Ray, object storage and PostgreSQL.

Nothing imports this package: `core.runs.extensions` loads its modules by name where the environment
asks for one of them. Everything else works without this folder.
"""
