"""Numbers that a person chooses may be as large as SQLite takes them, on PostgreSQL too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

CHOSEN = (("tables", "n"), ("runs", "rows"), ("runs", "seed"))


def upgrade() -> None:
    """From 32 bits to 64; SQLite's integers have as many."""
    if op.get_context().dialect.name == "sqlite":
        return
    for table, column in CHOSEN:
        op.alter_column(table, column, type_=sa.BigInteger(), existing_type=sa.Integer())
