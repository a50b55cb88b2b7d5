"""Domains that an earlier run about the same people learned, and a later one uses at no cost.

What was learned is public. It was paid for in the earlier run's entry, so a claim for the later
table adds what it cost; and it counts only where that run is there to show it.
"""

from __future__ import annotations

from core.message import Message
from core.runs.errors import RunStoreError
from core.runs.records import RunRecord
from core.runs.storage.store import RunStore
from core.schema.column import Learned, Provenance, SchemaColumn
from core.schema.schema import Schema


def noted_earlier(schema: Schema) -> tuple[Learned, ...]:
    """What a schema's columns say they were learned with in earlier runs, each run once."""
    noted = (c.learned for c in schema.columns if c.provenance is Provenance.LEARNED)
    return tuple({one.entry: one for one in noted if one and one.entry}.values())


def learned_earlier(store: RunStore, account_id: str, schema: Schema) -> tuple[Learned, ...]:
    """`noted_earlier`, checked against the runs that learned it.

    Raises:
      RunStoreError: no run of these people's account learned it; nothing was spent.
    """
    noted = noted_earlier(schema)
    if noted:
        runs = [run for run in store.runs() if run.account_id == account_id]
        for column in schema.columns:
            if column.learned is not None and column.learned.entry:
                _require(column, runs)
    return noted


def with_learned(schema: Schema, run: RunRecord) -> Schema:
    """The schema with what a finished run learned of its open columns."""
    for column in run.schema.columns:
        learned = column.learned
        if learned is None or column.name not in schema.names:
            continue
        entry = learned.entry or run.debit or ""
        noted = column.model_copy(update={"learned": learned.model_copy(update={"entry": entry})})
        schema = schema.replace(noted)
    return schema


def _require(column: SchemaColumn, runs: list[RunRecord]) -> None:
    assert column.learned is not None
    for run in runs:
        same = run.debit == column.learned.entry and column.name in run.schema.names
        if same and run.schema[column.name].domain_digest == column.learned.domain:
            return
    raise RunStoreError(
        Message(
            "The domain of '{name}' is marked as learned in an earlier run, and no run about these "
            "people learned it. Nothing was spent. Let this run learn it, or declare it.",
            name=column.name,
        )
    )
