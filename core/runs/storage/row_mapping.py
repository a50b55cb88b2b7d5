"""Rows of the run store → the records that everybody else sees."""

from __future__ import annotations

from datetime import UTC, datetime

from core.privacy.plan import Guarantee, Plan
from core.runs.events import State
from core.runs.records import RESUMABLE, RunRecord, TableRecord
from core.runs.request import RunRequest
from core.runs.storage.database import RunRow, TableRow
from core.schema.schema import Schema


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
