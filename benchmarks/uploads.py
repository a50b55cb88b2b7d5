"""Tables as a data steward uploads them: rows, rows apart to judge by, and who they are about.

Names are those of `named_tables.py`, `bank_marketing` from the folder FACSIMILE_DATA, `court` and
`visits` of `office_tables.py`; whatever else is a path. The schema is what the product infers from
the training rows: the judge reads every synthetic table by it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import office_tables
from benchmarks.generated_tables import REPORTED, TUNING
from benchmarks.named_tables import APART, REAL, NamedTable, apart, data_file, load
from core.api import read_table, schema
from core.encoding.holdout import split_rows
from core.schema.person import Person

__all__ = ["NAMES", "Upload", "upload"]

NAMES = (*REAL, "bank_marketing", "court", "visits", *REPORTED, *TUNING)
COURT_ROWS, PEOPLE, VISITS = 7_000, 5_800, 20_000  # to train on
TARGETS = {"bank_marketing": "y", "court": "two_year_recid", "visits": "flag"}
MOST_VISITS = 8  # of one patient, as the steward states it


@dataclass(frozen=True)
class Upload:
    """A table, how to judge what is made of it, and what is said of it beside its rows.

    Attributes:
      table: rows in it are as read; its schema is inferred from the training rows.
      options: of `core.api.synthesize`, the same for every run: target, person, rows a person.
    """

    table: NamedTable
    options: dict[str, Any] = field(default_factory=dict)


def upload(
    name: str,
    *,
    target: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    seed: int = 0,
) -> Upload:
    """A table by name or path, with a quarter of its rows or people kept apart.

    Args:
      target: the column to predict, in a file; that of the tables of `NAMES` is known.
      person: the column that says who a row is about, in a file.
      seed: of a generated table's rows.

    Raises:
      FileNotFoundError, ValueError: the table is not there, or its target is not known.
    """
    if name in NAMES:
        target, person = TARGETS.get(name), "patient" if name == "visits" else None
    if name in (*REAL, *REPORTED, *TUNING):
        known = load(name, seed)
        train, test, target = known.train, known.test, known.target
    else:
        train, test = _split(_whole(name, seed), person)
    if target is None:
        raise ValueError(f"{name}: --target must name the column to predict")
    inferred = schema(train, target=target)
    options: dict[str, Any] = {"target": target, "name": Path(name).stem}
    if person is not None:
        most = rows_per_person or MOST_VISITS
        inferred = inferred.model_copy(update={"person": Person(columns=(person,), rows=most)})
        options |= {"person": person, "rows_per_person": most}
    return Upload(NamedTable(Path(name).stem, train, test, inferred), options)


def judged_columns(table: NamedTable) -> NamedTable:
    """The columns that a judge compares: neither made-up values nor a person's key."""
    keys = () if table.schema.person is None else table.schema.person.columns
    kept = [c for c in table.schema.columns if c.modelled and c.name not in keys]
    names = [column.name for column in kept]
    judged = table.schema.model_copy(update={"columns": tuple(kept), "person": None})
    return replace(table, train=table.train[names], test=table.test[names], schema=judged)


def _whole(name: str, seed: int) -> pd.DataFrame:
    """All rows; of generated tables as many as leave their number to train on."""
    share = 1.0 - APART
    if name == "court":
        return office_tables.court(round(COURT_ROWS / share), seed)
    if name == "visits":
        return office_tables.visits(round(PEOPLE / share), round(VISITS / share), seed)
    return read_table(data_file("bank_marketing.csv") if name == "bank_marketing" else name)


def _split(whole: pd.DataFrame, person: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to train on and rows apart; all rows of a person are on one side."""
    if person is None:
        return apart(whole)
    train, test = split_rows(whole, APART, Person(columns=(person,), rows=1))
    train.attrs, test.attrs = whole.attrs, whole.attrs  # how cells were read
    return train, test
