"""The run store's database tables, in plain SQLAlchemy, so that both databases take them.

Rows become the records that everybody else sees.

A change here needs a step in `core.runs.storage.migrations` and another `HEAD` there.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from core.message import from_json, to_json
from core.privacy.plan import Guarantee, Plan
from core.runs.events import State
from core.runs.records import RESUMABLE, RunRecord, TableRecord
from core.runs.request import RunRequest
from core.schema.schema import Schema

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


def table_record(row: TableRow) -> TableRecord:
    """The record of a table's row."""
    schema = Schema.model_validate_json(row.schema)
    return TableRecord(
        id=row.id,
        name=row.name,
        n=row.n,
        columns=schema.names,
        source=row.source,
        created=datetime.fromtimestamp(row.created, UTC),
        schema=schema,
        profile=row.profile,
        account_id=row.account_id,
    )


def run_record(row: RunRow, table: TableRow, *, resumes_free: bool) -> RunRecord:
    """The record of a run's row.

    Args:
      resumes_free: whether what was debited, if anything, still pays for going on.
    """
    state = State(row.state)
    return RunRecord(
        id=row.id,
        table_id=row.table_id,
        table_name=table.name,
        account_id=table.account_id,
        request=RunRequest.model_validate_json(row.request),
        plan=Plan.model_validate_json(row.plan),
        schema=Schema.model_validate_json(row.learned_schema or row.schema),
        state=state,
        message=row.message,
        error=row.error,
        created=datetime.fromtimestamp(row.created, UTC),
        queued=datetime.fromtimestamp(row.queued, UTC),
        started=_utc(row.started),
        ended=_utc(row.ended),
        host=row.host,
        pid=row.pid,
        attempt=row.attempt,
        debit=row.debit,
        guarantee=Guarantee.model_validate_json(row.guarantee) if row.guarantee else None,
        seconds=row.seconds,
        peak_memory_mb=row.peak_memory_mb,
        resumable=state in RESUMABLE and resumes_free,
    )


def _utc(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
