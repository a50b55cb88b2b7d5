"""The run store's database tables, in plain SQLAlchemy, so that both databases take them.

A change here needs a step in `core.runs.storage.migrations` and another `HEAD` there.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from core.message import from_json, to_json

NUL, SUBSTITUTE = "\x00", "\ufffd"
# SQLite's integers are 64 bits wide, PostgreSQL's only where it is said
WIDE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


class PlainText(sa.TypeDecorator[str]):
    """Text that PostgreSQL takes too: it has no character of number 0, and SQLite has."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """The text as it is written and looked for."""
        if value is None or dialect.name == "sqlite":
            return value
        return value.replace(NUL, SUBSTITUTE)


class LongPlainText(PlainText):
    """The same without a limit that a database might set."""

    impl = sa.Text
    cache_ok = True


class Sentence(sa.TypeDecorator[str]):
    """A sentence for people as JSON, so that a `Message` keeps its template and values."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """The sentence as it is written."""
        return None if value is None else json.dumps(to_json(value), ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """The sentence as it was given."""
        return None if value is None else str(from_json(json.loads(value)))


class Base(DeclarativeBase):
    """Common metadata of the run store."""

    type_annotation_map = {str: PlainText()}


class TableRow(Base):
    """An imported table; its rows lie in a Parquet file beside it."""

    __tablename__ = "tables"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    n: Mapped[int] = mapped_column(WIDE)
    source: Mapped[str]
    created: Mapped[float] = mapped_column(sa.Float(53))
    account_id: Mapped[str]
    schema: Mapped[str] = mapped_column(LongPlainText)
    profile: Mapped[dict[str, Any]] = mapped_column(sa.JSON)


class AccessRow(Base):
    """Who may see a table where people sign in; a table without a row is everybody's."""

    __tablename__ = "access"

    table_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True
    )
    owner: Mapped[str]
    shared: Mapped[list[str]] = mapped_column(sa.JSON)
    stewards: Mapped[bool]


class SignInRow(Base):
    """Until when somebody's sign-ins are over; times are the provider's, in seconds."""

    __tablename__ = "sign_ins"

    person: Mapped[str] = mapped_column(primary_key=True)
    newest: Mapped[float] = mapped_column(sa.Float(53))
    ended: Mapped[float | None] = mapped_column(sa.Float(53))


class RunRow(Base):
    """One run: what was asked, where it is, which process holds it, what it executed.

    `slot` is unique among running runs: taking one is how two pumps agree on who starts what.
    """

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(primary_key=True)
    table_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tables.id", ondelete="CASCADE"), index=True
    )
    request: Mapped[str] = mapped_column(LongPlainText)
    plan: Mapped[str] = mapped_column(LongPlainText)
    schema: Mapped[str] = mapped_column(LongPlainText)
    learned_schema: Mapped[str | None] = mapped_column(LongPlainText)
    state: Mapped[str] = mapped_column(index=True)
    signal: Mapped[str]
    message: Mapped[str] = mapped_column(Sentence, default="")
    error: Mapped[str | None] = mapped_column(Sentence)
    failure: Mapped[str | None]
    created: Mapped[float] = mapped_column(sa.Float(53))
    queued: Mapped[float] = mapped_column(sa.Float(53))
    started: Mapped[float | None] = mapped_column(sa.Float(53))
    ended: Mapped[float | None] = mapped_column(sa.Float(53))
    slot: Mapped[int | None] = mapped_column(unique=True)
    claimed: Mapped[float | None] = mapped_column(sa.Float(53))
    host: Mapped[str | None]
    pid: Mapped[int | None]
    pid_started: Mapped[float | None] = mapped_column(sa.Float(53))
    heartbeat: Mapped[float | None] = mapped_column(sa.Float(53))
    attempt: Mapped[int] = mapped_column(default=1)
    debit: Mapped[str | None]
    guarantee: Mapped[str | None] = mapped_column(LongPlainText)
    seconds: Mapped[dict[str, float]] = mapped_column(sa.JSON)
    peak_memory_mb: Mapped[float | None]


class SketchRow(Base):
    """What is kept of a table to recognise its people; it outlives the table.

    `table_id` is no foreign key: what was released about the people stays in the ledger when the
    table is deleted, and so does what they are recognised by.
    """

    __tablename__ = "sketches"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    table_id: Mapped[str | None] = mapped_column(index=True)
    account_id: Mapped[str] = mapped_column(index=True)
    title: Mapped[str]
    created: Mapped[float] = mapped_column(sa.Float(53))
    exact: Mapped[str]
    body: Mapped[bytes] = mapped_column(sa.LargeBinary)
    alike: Mapped[list[dict[str, Any]]] = mapped_column(sa.JSON)
    words: Mapped[str] = mapped_column(LongPlainText, default="")
    owner: Mapped[str] = mapped_column(default="", server_default="")


class EventRow(Base):
    """One event; (run, seq) is the key, so events are append-only and in order."""

    __tablename__ = "events"
    __table_args__ = (sa.Index("events_by_kind", "run_id", "kind", "seq"),)

    run_id: Mapped[str] = mapped_column(
        sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True
    )
    seq: Mapped[int] = mapped_column(primary_key=True)
    time: Mapped[float] = mapped_column(sa.Float(53))
    kind: Mapped[str]
    data: Mapped[dict[str, Any]] = mapped_column(sa.JSON)


class NoteRow(Base):
    """One thing a person said about a run or a table; rows are added and never changed."""

    __tablename__ = "notes"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    table_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tables.id", ondelete="CASCADE"), index=True
    )
    run_id: Mapped[str | None] = mapped_column(
        sa.ForeignKey("runs.id", ondelete="CASCADE"), index=True
    )
    time: Mapped[float] = mapped_column(sa.Float(53))
    author: Mapped[str]
    kind: Mapped[str]
    view: Mapped[str]
    about: Mapped[str]
    text: Mapped[str] = mapped_column(LongPlainText)


class InsideViewRow(Base):
    """Who had the inside view of a run open, and when first; rows are added and never changed.

    No foreign keys: a look is not undone by deleting the run or the table.
    """

    __tablename__ = "inside_views"

    run_id: Mapped[str] = mapped_column(primary_key=True)
    author: Mapped[str] = mapped_column(primary_key=True)
    table_id: Mapped[str] = mapped_column(index=True)
    account_id: Mapped[str] = mapped_column(index=True)
    time: Mapped[float] = mapped_column(sa.Float(53))
