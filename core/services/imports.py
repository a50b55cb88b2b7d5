"""Bringing in tables that may be larger than memory: rows pass by in batches and are counted.

A table that turns out not to be large is brought in as any other, so that where it comes from
changes nothing about it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

import pandas as pd

from core.runs.accounts.people import choose_account
from core.runs.accounts.record_linkage import Compared
from core.runs.storage.artefacts import ROWS, ArtefactStore
from core.runs.storage.records import TableRecord, is_large
from core.runs.storage.row_batches import table_batches
from core.runs.storage.rows_writer import alike, write_rows
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import people_key
from core.services.tables import import_frame
from core.table.counting import TableCounts, profile_counted, propose
from core.table.io.sources import Source
from core.table.record_stream import PassingRows
from core.table.tally import VALUES

__all__ = ["Progress", "import_source"]

Progress: TypeAlias = Callable[[int], None]  # hears how many rows have passed


def import_source(
    store: RunStore,
    source: Source,
    *,
    name: str,
    people: str | None = None,
    owner: str = "",
    progress: Progress = lambda rows: None,
) -> TableRecord:
    """Keep a table with its proposed schema and its profile; see `import_frame`.

    Args:
      store: where.
      source: of the rows.
      name: for people.
      people: ledger account of the people in it; found by the rows when None.
      owner: address of who brings it in, "" where nobody signs in.
      progress: hears how many rows have passed.

    Raises:
      TableReadError, RunStoreError: one plain line; nothing was kept.
    """
    table_id = secrets.token_hex(5)
    with store.unfinished.begun(table_id) as (artefacts, scratch):
        source.prepare(scratch)
        counts, rows = TableCounts(VALUES), PassingRows(people_key(store.workspace))
        passing = _watched(alike(source.batches()), counts, rows, progress)
        write_rows(artefacts, passing)
        if is_large(counts.n, len(counts.head.columns)):
            return _keep(
                store,
                source,
                artefacts,
                counts,
                rows,
                name=name,
                people=people,
                owner=owner,
                table_id=table_id,
            )
        del counts, rows, passing  # a wide table's values weigh more than its rows
        with artefacts.readable(ROWS) as file:
            frame = pd.read_parquet(file)
        artefacts.clear()
    return import_frame(
        store,
        frame,
        name=name,
        source=source.words,
        people=people,
        doubts=source.doubts,
        form=source.form,
        table_id=table_id,
        owner=owner,
    )


def _keep(
    store: RunStore,
    source: Source,
    artefacts: ArtefactStore,
    counts: TableCounts,
    rows: PassingRows,
    *,
    name: str,
    people: str | None,
    owner: str,
    table_id: str,
) -> TableRecord:
    """The record of a table that is never read at once; see `import_source`.

    Args:
      store: where.
      source: of the rows, which have passed by.
      artefacts: hold them.
      counts: of every column.
      rows: what their people are recognised by.
      name: for people.
      people: ledger account, or None.
      owner: of the table, or "".
      table_id: of the table.
    """
    reread = partial(table_batches, artefacts)
    schema = propose(counts.tallies(), reread, source.form)
    profile = profile_counted(counts, schema, reread, source.doubts)
    chosen = choose_account(
        store,
        Compared.passing(rows),
        title=name,
        table_id=table_id,
        people=people,
        owner=owner,
    )
    return store.add_written(
        table_id,
        name=name,
        schema=schema,
        profile=profile.model_dump(mode="json"),
        n=counts.n,
        source=source.words,
        people=chosen.people,
        owner=owner,
    )


def _watched(
    batches: Iterable[pd.DataFrame], counts: TableCounts, rows: PassingRows, progress: Progress
) -> Iterator[pd.DataFrame]:
    """The batches as they are, taken note of as they pass."""
    for batch in batches:
        counts.add(batch)
        rows.add(batch)
        yield batch
        progress(counts.n)
