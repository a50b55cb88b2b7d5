"""TableStore: imported tables, their rows as Parquet files, the rest in the database."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Engine, delete, select, update
from sqlalchemy.orm import Session

from core.encoding.holdout import people_trained_on, split_rows
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.reading.raw_cells import batch_rows
from core.reading.row_groups import raw_batches
from core.reading.typed_cells import typed_rows
from core.runs import operations_log
from core.runs.errors import NO_RECORDS, NotFoundError, RunStoreError
from core.runs.events import State, json_safe
from core.runs.records import NEWEST, PEOPLE, TableRecord, people_counted, people_of_profile
from core.runs.storage.artefacts import ROWS, ArtefactStore
from core.runs.storage.database import AccessRow, RunRow, SketchRow, TableRow, table_record
from core.runs.storage.engine import open_engine
from core.runs.storage.migrations.current import bring_up_to_date
from core.runs.storage.processes.unfinished import UnfinishedTables
from core.runs.storage.row_batches import table_batches
from core.runs.storage.storages import open_storage
from core.runs.storage.workspace_secrets import WorkspaceLedgerFiles
from core.runs.workspace import Workspace
from core.schema.column import SchemaColumn
from core.schema.schema import Schema

STATEMENT = "attested.json"  # that the steward declared the schema public


class TableStore:
    """The tables of one workspace.

    Attributes:
      engine: the database's engine, which the ledger shares.

    Args:
      patience: seconds to go on trying when an object store does not answer, ≥ 0.
    """

    def __init__(self, workspace: Workspace, *, patience: float = 0.0) -> None:
        self.workspace = workspace
        self.storage = open_storage(workspace, patience=patience)
        self.engine: Engine = open_engine(workspace.database_url, patience=patience)
        try:
            bring_up_to_date(self.engine)
        except BaseException:
            self.engine.dispose()
            raise
        self.unfinished = UnfinishedTables(workspace, self.storage, self.engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def ledger(self) -> Ledger:
        """The ledger of this workspace."""
        return Ledger(self.engine, WorkspaceLedgerFiles(self.storage))

    def close(self) -> None:
        """Give the database's connections back; the store may still be used and opens new ones."""
        self.engine.dispose()

    def add_table(
        self,
        rows: pa.Table,
        *,
        name: str,
        schema: Schema,
        profile: dict[str, Any],
        source: str,
        account_id: str,
        table_id: str | None = None,
        owner: str = "",
    ) -> TableRecord:
        """Keep a table: its rows as Parquet (mode 0600), the rest in the database.

        Args:
          rows: raw cells, n ≥ 1; see `core.reading.raw_cells`.
          profile: `core.proposing.profile.Profile` as a dict.
          table_id: 10 hex digits; None draws them.

        Raises:
          RunStoreError: no records, or the columns are not the schema's.
        """
        if not rows.num_rows:
            raise RunStoreError(NO_RECORDS)
        if tuple(rows.column_names) != schema.names:
            raise RunStoreError("The schema's columns do not match the table's. Nothing was saved.")
        table_id = table_id or secrets.token_hex(5)
        with self.unfinished.begun(table_id) as (artefacts, _):
            with artefacts.replacing(ROWS) as file:
                pq.write_table(rows, file, row_group_size=batch_rows(rows.num_columns))
            return self.add_written(
                table_id,
                name=name,
                schema=schema,
                profile=profile,
                n=len(rows),
                source=source,
                account_id=account_id,
                owner=owner,
            )

    def add_written(
        self,
        table_id: str,
        *,
        name: str,
        schema: Schema,
        profile: dict[str, Any],
        n: int,
        source: str,
        account_id: str,
        owner: str = "",
    ) -> TableRecord:
        """Keep a table whose rows are in their place; see `add_table`.

        Args:
          table_id: 10 hex digits.
          profile: `core.proposing.profile.Profile` as a dict.
          owner: address of who brings it in, whose alone it is from its first moment on; "" for
            nobody's, which is everybody's who may see tables.
        """
        profile = _with_people(profile, schema, self._columns_of(table_id))
        row = TableRow(
            id=table_id,
            name=name,
            n=n,
            source=source,
            created=time.time(),
            account_id=account_id,
            schema=schema.model_dump_json(),
            profile=json_safe({**profile, NEWEST: self.ledger.newest()}),
        )
        with Session(self.engine) as session, session.begin():
            session.add(row)
            session.flush()  # before what refers to it
            if owner:
                own = AccessRow(table_id=table_id, owner=owner.lower(), shared=[], stewards=False)
                session.add(own)
        operations_log.record("import", table=table_id, columns=len(schema.names))
        return self.table(table_id)

    def tables(self) -> list[TableRecord]:
        """All tables, newest first."""
        with Session(self.engine) as session:
            rows = session.scalars(select(TableRow).order_by(TableRow.created.desc()))
            return [table_record(row) for row in rows]

    def table(self, table_id: str) -> TableRecord:
        """One table; NotFoundError when there is none."""
        with Session(self.engine) as session:
            row = session.get(TableRow, table_id)
            if row is None:
                raise NotFoundError("There is no such table in this workspace.")
            return table_record(row)

    def save_schema(
        self, table_id: str, schema: Schema, *, profile: dict[str, Any] | None = None
    ) -> TableRecord:
        """Replace a table's schema (and profile, when one is given).

        Where it says anew who rows are of, or how many are kept out, the people to train on are
        counted, once, so that nothing else needs to read rows for it.

        Raises:
          RunStoreError: the schema names other columns than the table has.
        """
        table = self.table(table_id)
        if schema.names != table.columns:
            raise RunStoreError(
                "The schema's columns do not match the table's. Nothing was changed."
            )
        values: dict[str, Any] = {"schema": schema.model_dump_json()}
        known = {key: table.profile[key] for key in (NEWEST, PEOPLE) if key in table.profile}
        counted = {**table.profile, **known} if profile is None else {**profile, **known}
        counted = _with_people(counted, schema, self._columns_of(table_id))
        if profile is not None or counted != table.profile:
            values["profile"] = json_safe(counted)
        with self.engine.begin() as connection:
            connection.execute(update(TableRow).where(TableRow.id == table_id).values(**values))
        return self.table(table_id)

    def attest(self, table_id: str, schema: Schema | None = None) -> None:
        """Keep that the steward declared a table's schema public, and when.

        The statement holds for that schema alone: a changed one has to be attested again.

        Args:
          schema: that the steward saw; the present one when None.
        """
        declared = self.table(table_id).schema if schema is None else schema
        statement = {"schema": _digest(declared), "time": time.time()}
        with self.table_artefacts(table_id).replacing(STATEMENT) as file:
            file.write(json.dumps(statement).encode())

    def attested(self, table_id: str) -> bool:
        """Whether the steward declared the table's present schema public."""
        table = self.table(table_id)
        try:
            with self.table_artefacts(table_id).open(STATEMENT) as file:
                statement = json.loads(file.read())
        except FileNotFoundError:
            return False
        return bool(statement["schema"] == _digest(table.schema))

    def table_artefacts(self, table_id: str) -> ArtefactStore:
        """What is kept of a table beside its record; NotFoundError when there is no such table."""
        return self.storage.table(self.table(table_id).id)

    def raw_batches(
        self, table_id: str, *, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The rows of a table as raw cells in file order, in batches, of some columns or all."""
        with self.table_artefacts(table_id).readable(ROWS) as file:
            yield from raw_batches(file, columns)

    def batches(
        self, table_id: str, *, schema: Schema | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pd.DataFrame]:
        """The rows of a table as a schema reads them, in file order, some at a time.

        A column's dtype may differ from batch to batch; what its cells are does not.
        """
        schema = schema or self.table(table_id).schema
        for batch in self.raw_batches(table_id, columns=columns):
            yield typed_rows(batch, _declared(schema, batch.column_names))

    def load_frame(
        self, table_id: str, schema: Schema | None = None, columns: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """All rows of a table in memory; see `batches`.

        Args:
          columns: only these, in this order; all by default.
        """
        schema = schema or self.table(table_id).schema
        with self.table_artefacts(table_id).readable(ROWS) as file:
            rows = pq.read_table(file, columns=None if columns is None else list(columns))
        return typed_rows(rows, _declared(schema, columns or schema.names))

    def load_split(
        self, table_id: str, schema: Schema, columns: Sequence[str]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The rows that are trained on and those kept out, each in file order.

        Args:
          schema: reads the cells, and says how many records are kept out and whose rows stay
            together.
        """
        holdout, person = schema.holdout, schema.person
        who = () if person is None or not holdout else person.columns
        frame = self.load_frame(table_id, schema, list(dict.fromkeys((*columns, *who))))
        trained, kept = split_rows(frame, holdout, person)
        return trained[list(columns)], kept[list(columns)]

    def _columns_of(self, table_id: str) -> Callable[[list[str]], Iterable[pa.Table]]:
        """Reads columns of a table's rows; whether the table is known is not looked up again."""
        return lambda columns: table_batches(self.storage.table(table_id), columns)

    def _drop_table(self, table_id: str) -> None:
        """Remove a table's rows and its records, and those of its runs, at once.

        What its people are recognised by goes too, unless the ledger holds something about them.
        Where the rows cannot be removed, the table stays, so that it can be deleted again.

        Raises:
          RunStoreError: one of its runs is running; the table stays.
        """
        table = self.table(table_id)
        running = select(RunRow.id).where(
            RunRow.table_id == table_id, RunRow.state == State.RUNNING
        )
        with self.engine.begin() as connection:
            # asked again here: one that waited may have begun since somebody looked
            idle = delete(TableRow).where(TableRow.id == table_id, ~running.exists())
            if not connection.execute(idle).rowcount:
                raise RunStoreError("A run of this table is running. Cancel it first.")
            self.storage.table(table_id).clear()
            # the ledger is asked last: whoever read rows has paid before, and now nobody can
            if not self.ledger.entries(table.account_id):
                connection.execute(delete(SketchRow).where(SketchRow.table_id == table_id))

    def _check_records(self, table_id: str, plan: Plan, schema: Schema) -> None:
        """Refuse a plan that is not for the records that a schema makes of a table.

        Raises:
          RunStoreError: another number of them, or other rows are protected together.
        """
        table = self.table(table_id)
        counted = _with_people(table.profile, schema, self._columns_of(table_id))
        trained = replace(table, schema=schema, profile=counted).training_n
        if plan.n != trained:
            raise RunStoreError(
                "The plan is for {planned:,} records, but the table has {present:,} to train "
                "on. Make a new plan.",
                planned=plan.n,
                present=trained,
            )
        if plan.unit != schema.person:
            raise RunStoreError(
                "The plan and the table's schema disagree about which rows belong to one "
                "person. Make a new plan."
            )


def _with_people(
    profile: dict[str, Any], schema: Schema, columns_of: Callable[[list[str]], Iterable[pa.Table]]
) -> dict[str, Any]:
    """The profile with the number of people who are trained on, where rows are put together.

    Args:
      profile: as it is; a count that holds already is kept.
      schema: says who and how many are kept out.
      columns_of: raw cells of the table's columns of these names, in batches; asked only when
        somebody has to count.
    """
    person, rest = schema.person, {k: v for k, v in profile.items() if k != PEOPLE}
    if person is None or not person.grouped:
        return rest
    if people_of_profile(profile, schema) is not None:
        return profile
    batches, declared = columns_of(list(person.columns)), _declared(schema, person.columns)
    n = people_trained_on((typed_rows(rows, declared) for rows in batches), schema.holdout)
    return {**rest, PEOPLE: {"counted": people_counted(schema), "n": n}}


def _declared(schema: Schema, names: Sequence[str]) -> list[SchemaColumn]:
    return [schema[name] for name in names]


def _digest(schema: Schema) -> str:
    return hashlib.sha256(schema.model_dump_json().encode()).hexdigest()
