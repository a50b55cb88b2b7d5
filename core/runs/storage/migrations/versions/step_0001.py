"""Databases of before steps were counted: what they lack is made, as it was when counting began.

They made absent tables whenever they were opened, so any of them may be absent here.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import JSON, Column, Float, ForeignKey, Integer, LargeBinary, String, Table, Text

revision = "0001"
down_revision = None

DOUBLE = Float(53)
UNRECORDED = ""  # author of a look that may have been taken before looks were recorded


def belongs_to(table: str) -> ForeignKey:
    """The key of a row that goes with the one it belongs to."""
    return ForeignKey(f"{table}.id", ondelete="CASCADE")


METADATA = sa.MetaData()
Table(
    "tables",
    METADATA,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("n", Integer, nullable=False),
    Column("source", String, nullable=False),
    Column("created", DOUBLE, nullable=False),
    Column("account_id", String, nullable=False),
    Column("schema", Text, nullable=False),
    Column("profile", JSON, nullable=False),
)
Table(
    "access",
    METADATA,
    Column("table_id", String, belongs_to("tables"), primary_key=True),
    Column("owner", String, nullable=False),
    Column("shared", JSON, nullable=False),
    Column("stewards", sa.Boolean, nullable=False),
)
Table(
    "runs",
    METADATA,
    Column("id", String, primary_key=True),
    Column("table_id", String, belongs_to("tables"), nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("plan", Text, nullable=False),
    Column("schema", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("seed", Integer),
    Column("device", String, nullable=False),
    Column("confirmation", String, nullable=False),
    Column("shift_words", String, nullable=False, server_default=""),
    Column("state", String, nullable=False, index=True),
    Column("signal", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("error", Text),
    Column("created", DOUBLE, nullable=False),
    Column("queued", DOUBLE, nullable=False),
    Column("started", DOUBLE),
    Column("ended", DOUBLE),
    Column("slot", Integer, unique=True),
    Column("claimed", DOUBLE),
    Column("host", String),
    Column("pid", Integer),
    Column("pid_started", DOUBLE),
    Column("heartbeat", DOUBLE),
    Column("attempt", Integer, nullable=False),
    Column("debit", String),
    Column("guarantee", Text),
    Column("seconds", JSON, nullable=False),
    Column("peak_memory_mb", Float),
)
Table(
    "sketches",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("table_id", String, index=True),
    Column("account_id", String, nullable=False, index=True),
    Column("title", String, nullable=False),
    Column("created", DOUBLE, nullable=False),
    Column("exact", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("alike", JSON, nullable=False),
    Column("words", Text, nullable=False),
)
Table(
    "purchases",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("account_id", String, nullable=False, index=True),
    Column("entry", String, nullable=False, unique=True),
    Column("created", DOUBLE, nullable=False),
    Column("body", Text, nullable=False),
)
Table(
    "events",
    METADATA,
    Column("run_id", String, belongs_to("runs"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("time", DOUBLE, nullable=False),
    Column("kind", String, nullable=False),
    Column("data", JSON, nullable=False),
    sa.Index("events_by_kind", "run_id", "kind", "seq"),
)
Table(
    "notes",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("table_id", String, belongs_to("tables"), nullable=False, index=True),
    Column("run_id", String, belongs_to("runs"), index=True),
    Column("time", DOUBLE, nullable=False),
    Column("author", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("view", String, nullable=False),
    Column("about", String, nullable=False),
    Column("text", Text, nullable=False),
)
Table(
    "looks",
    METADATA,
    Column("run_id", String, primary_key=True),
    Column("author", String, primary_key=True),
    Column("table_id", String, nullable=False, index=True),
    Column("account_id", String, nullable=False, index=True),
    Column("time", DOUBLE, nullable=False),
)
Table(
    "ledger",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("account_id", String, nullable=False),
    Column("run", String, unique=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
)


def upgrade() -> None:
    """Make absent tables and the one column that was added later."""
    there = set(sa.inspect(op.get_bind()).get_table_names())
    METADATA.create_all(op.get_bind(), checkfirst=True)
    for table in METADATA.sorted_tables:
        for index in table.indexes:  # a process may have ended between a table and its index
            index.create(op.get_bind(), checkfirst=True)
    if "runs" in there:
        _confirmations()
    if "looks" not in there:
        _count_older_runs()


def _confirmations() -> None:
    """The column that runs of older versions lack."""
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("runs")}
    if "shift_words" not in columns:
        words = Column("shift_words", String, nullable=False, server_default="")
        op.add_column("runs", words)


def _count_older_runs() -> None:
    """Count runs that ended before looks were recorded as looked at: nobody can say they were not.

    Once for a workspace, when the table of looks is made.
    """
    op.execute(
        sa.text(
            "INSERT INTO looks (run_id, author, table_id, account_id, time) "
            "SELECT runs.id, :author, runs.table_id, tables.account_id, runs.created "
            "FROM runs JOIN tables ON tables.id = runs.table_id "
            "WHERE runs.guarantee IS NOT NULL"
        ).bindparams(author=UNRECORDED)
    )
