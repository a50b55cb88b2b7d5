"""What was confirmed of another unit; who brought in a table that is recognised again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """A column each, empty where nobody said."""
    for table, column in (("runs", "unit_words"), ("sketches", "owner")):
        op.add_column(table, sa.Column(column, sa.String(), nullable=False, server_default=""))
