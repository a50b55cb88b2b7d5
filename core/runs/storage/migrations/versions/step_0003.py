"""Who signed out is remembered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """The table of sign-ins; nobody had signed out on the server before."""
    op.create_table(
        "sign_ins",
        sa.Column("person", sa.String(), primary_key=True),
        sa.Column("newest", sa.Float(53), nullable=False),
        sa.Column("ended", sa.Float(53), nullable=True),
    )
