"""The first revision: all tables as the models describe them.

Whoever adds the next step writes the tables out here, as they were at 0.1.0.
"""

from __future__ import annotations

from alembic import op

from core.runs.storage.migrations.current import create_tables

revision = "0.1.0"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    create_tables(op.get_bind())
