"""Files for download: the reviewed synthetic table, the model, the certificate, a dictionary.

Nothing here opens the real table.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from core.runs.execution.privacy_certificate import declared, origin
from core.runs.storage.artefacts import SYNTHETIC_TABLE
from core.runs.storage.errors import NotFoundError, RunStoreError
from core.runs.storage.records import RunRecord
from core.runs.storage.store import RunStore
from core.services.limits import hidden_columns
from core.table.io.write import csv_text, write_csv
from core.table.schema import Schema

__all__ = [
    "certificate_text",
    "dictionary",
    "dictionary_text",
    "file_name",
    "model_zip",
    "reviewed_file",
]

TEXT = ("str", "string", "object", "category")  # types of columns that spreadsheets could run
VARYING = (
    "how many rows a person has is kept; how their values depend on each other, and in what order "
    "they follow, is not"
)
ESCAPED = "text that begins with =, +, -, @, a tab or a line break has an apostrophe in front"
HIDDEN = "hidden on purpose: how the values are spread is not how they are spread in the real table"
MODEL_ENDINGS = (".json", ".safetensors")  # what models save; nothing else goes into a ZIP


def file_name(run: RunRecord, ending: str) -> str:
    """A download's name; says so when nothing is private.

    Args:
      run: whose.
      ending: without the dot, such as "csv".
    """
    table = re.sub(r"[^A-Za-z0-9]+", "-", Path(run.table_name).stem).strip("-").lower() or "table"
    epsilon = f"epsilon-{run.plan.budget.epsilon:g}" if run.private else "not-private"
    return f"{table}-synthetic-{epsilon}.{ending}"


def reviewed_file(
    store: RunStore,
    run: RunRecord,
    *,
    format: Literal["csv", "parquet"],
    escape_formulas: bool = False,
) -> Path:
    """The synthetic table that was reviewed, as a file under the run's `exports`.

    Args:
      store: where.
      run: whose.
      format: of the file.
      escape_formulas: write cells that a spreadsheet would run as formulas as text (CSV only).

    Raises:
      NotFoundError: the run has made no table.
    """
    artefacts = store.artefacts(run.id)
    if not artefacts.exists(SYNTHETIC_TABLE):
        raise NotFoundError("This run has made no synthetic table yet.")
    if format == "parquet":
        return artefacts.path(SYNTHETIC_TABLE)
    exports = artefacts.within("exports")
    name = f"reviewed{'-escaped' if escape_formulas else ''}.csv"
    if not exports.exists(name) or exports.modified(name) < artefacts.modified(SYNTHETIC_TABLE):
        with artefacts.open(SYNTHETIC_TABLE) as file:
            reviewed = pd.read_parquet(file)
        write_csv(reviewed, exports.path(name), escape_formulas=escape_formulas)
    return exports.path(name)


def model_zip(store: RunStore, run: RunRecord) -> bytes:
    """The saved model (weights and JSON, no code) as a zip file, with the folders of its parts.

    Raises:
      RunStoreError: the model is shifted: with it anyone could undo the shift.
    """
    if run.plan.protection is not None and run.plan.protection.shift:
        raise RunStoreError(
            "This model holds hidden distributions unshifted, so it stays here. Nothing was made. "
            "Take the synthetic table instead."
        )
    folder = store.artefacts(run.id).path("model")
    files = [p for p in folder.rglob("*") if p.is_file() and p.suffix in MODEL_ENDINGS]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()


def dictionary(run: RunRecord, *, escaped: bool = False) -> pd.DataFrame:
    """One row a column: name, type, what may stand in it and where that was taken from.

    Where rules or persons are declared it also says what holds in every row and what does not, and
    where distributions are hidden, which.

    Args:
      run: whose.
      escaped: whether the file it goes with was made safe for spreadsheets; its text columns then
        say so.
    """
    hidden = hidden_columns(run)
    return pd.DataFrame(
        [
            {
                "column": c.name,
                "kind": c.kind.value,
                "type": c.dtype,
                "what may stand in it": declared(c).removeprefix(f"{c.name}: "),
                "known": origin(c),
            }
            | ({"shares": HIDDEN if c.name in hidden else ""} if hidden else {})
            | ({"in the file": ESCAPED if c.dtype in TEXT else ""} if escaped else {})
            | ({"kept": _kept(run.schema, c.name)} if run.schema.rules or run.schema.person else {})
            for c in run.schema.domain().columns
        ]
    )


def _kept(schema: Schema, name: str) -> str:
    """What every row or every person keeps about a column, and what is not kept, in words."""
    words = [f"in every row: {rule.text}" for rule in schema.rules if name in rule.columns]
    person = schema.person
    if person is None or not person.grouped:
        return "; ".join(words)
    if name in person.columns:
        words.append("the same in the rows of a person, made up")
    elif name in person.constant:
        words.append("one value for a person")
    else:
        words.append(VARYING if name != person.order else f"rows of a person rise by it; {VARYING}")
    return "; ".join(words)


def dictionary_text(run: RunRecord, *, escaped: bool = False) -> str:
    """The dictionary as CSV; it is opened in spreadsheets, so names in it are always made safe.

    Args:
      run: whose.
      escaped: as for `dictionary`.
    """
    return csv_text(dictionary(run, escaped=escaped), escape_formulas=True)


def certificate_text(certificate: dict[str, Any]) -> str:
    """The certificate as indented JSON text."""
    return json.dumps(certificate, indent=2, ensure_ascii=False)
