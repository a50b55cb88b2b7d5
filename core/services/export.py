"""Files for download: the reviewed synthetic table, the model, the certificate, a dictionary.

Nothing here opens the real table.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pandas as pd

from core.inference.report_intervals import figures_words
from core.models.planning import Hiding, hiding
from core.models.shaped_output import Shape
from core.runs.accounts.spending import epsilon_text
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.execution.privacy_certificate import declared_domain, origin
from core.runs.execution.synthetic_label import ENDING, label_of, synthetic_label
from core.runs.records import RunRecord
from core.runs.storage.artefacts import MODEL, SYNTHETIC_TABLE
from core.runs.storage.row_batches import row_batches
from core.runs.storage.store import RunStore
from core.schema.column import Column
from core.schema.schema import Domain, Schema
from core.services.linking.unlinking import file_columns, foreign_keys, unlink
from core.services.reviews import intervals, privacy_certificate
from core.services.schema_grid import example
from core.services.shaping import DrawnTable, asked_words, certificate_of, table_name
from core.writing.excel import write_excel
from core.writing.sql import SqlTable
from core.writing.tables import csv_text, write_csv_parts, write_csv_rows, write_parquet_parts
from core.writing.whole_files import replacing

TEXT = ("str", "string", "object", "category")  # types of columns that spreadsheets could run
VARYING = (
    "the number of rows of each person is kept; how values depend on each other from row to row, "
    "and their order, are not"
)
FOLLOWING = (
    "how many rows each person has, and how a value goes together with the one in the row before, "
    "are kept"
)
ESCAPED = "text that begins with = + - @, a tab or a line break has an apostrophe in front"
WITH_INTERVALS = "figures, and how far the real table's may be off (95%)"
HIDDEN: dict[Hiding, str] = {
    "shifted": "hidden on purpose: the distribution is not that of the real table",
    "trained": "hidden on purpose: the model was trained to make the distribution differ from that "
    "of the real table",
    "none": "tagged, but not hidden: the distribution is that of the real table",
}
SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})  # in names of files
MODEL_ENDINGS = (".json", ".safetensors")  # what models save; nothing else goes into a ZIP


def file_name(run: RunRecord, ending: str) -> str:
    """A download's name, with the ε that the certificate claims; says so when nothing is private.

    Args:
      run: whose; finished, so that it knows its claim.
      ending: without the dot, such as "csv".
    """
    plain = unicodedata.normalize("NFKD", Path(run.table_name).stem.lower().translate(SPELLED))
    words = re.findall("[a-z0-9]+", re.sub("[\u0300-\u036f]", "", plain))  # without accents
    table = "-".join(words) or "table"
    claim = run.guarantee or run.plan.guarantee
    epsilon = f"epsilon-{epsilon_text(claim)}" if run.private else "not-private"
    return f"{table}-synthetic-{epsilon}.{ending}"


def reviewed_file(
    store: RunStore,
    run: RunRecord,
    *,
    format: Literal["csv", "parquet", "xlsx"],
    escape_formulas: bool = False,
) -> Path:
    """The synthetic table that was reviewed, as a file under the run's `exports`.

    Of two linked files, a ZIP of both with their papers, named as those that came in.

    Args:
      escape_formulas: write cells that a spreadsheet would run as formulas as text (CSV only).

    Raises:
      NotFoundError: the run has made no table.
    """
    artefacts = store.artefacts(run.id)
    if not artefacts.exists(SYNTHETIC_TABLE):
        raise NotFoundError("This run has not made a synthetic table yet.")
    exports = artefacts.within("exports")
    linked = run.schema.linked
    name = f"reviewed{'-escaped' if escape_formulas else ''}.{'zip' if linked else format}"
    if not exports.exists(name) or exports.modified(name) < artefacts.modified(SYNTHETIC_TABLE):
        with artefacts.readable(SYNTHETIC_TABLE) as file, exports.filling(name) as out:
            parts = row_batches(file)
            label = label_of(artefacts, run.id)
            if linked:
                with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                    rows = pd.concat(list(parts), ignore_index=True)
                    add_files(archive, rows, run.schema, escaped=escape_formulas)
                    words = dictionary_text(store, run, escaped=escape_formulas)
                    add_papers(archive, words, privacy_certificate(store, run.id) or {}, run.id)
            elif format == "parquet":
                write_parquet_parts(parts, out, schema=run.schema, label=label)
            elif format == "xlsx":
                write_excel(parts, out, schema=run.schema, label=label)
            else:
                write_csv_parts(parts, out, schema=run.schema, escape_formulas=escape_formulas)
    return exports.local(name)


def model_zip(store: RunStore, run: RunRecord) -> bytes:
    """The saved model (weights and JSON, no code) as a zip file, with the folders of its parts.

    Raises:
      RunStoreError: the model is shifted: with it anyone could undo the shift.
    """
    if run.plan.protection is not None and run.plan.protection.shift:
        raise RunStoreError(
            "This model holds the hidden distributions unshifted, so it cannot be downloaded. "
            "Nothing was made. Download the synthetic table instead."
        )
    folder = store.artefacts(run.id).local(MODEL)
    files = [p for p in folder.rglob("*") if p.is_file() and p.suffix in MODEL_ENDINGS]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            archive.write(path, path.relative_to(folder).as_posix())
    return buffer.getvalue()


def domain_dictionary(
    domain: Domain, *, escaped: bool = False, shape: Shape | None = None, how: Hiding = "shifted"
) -> pd.DataFrame:
    """One row a column: name, type, what may stand in it and where that was taken from.

    Of two linked files each column stands under its own name there, with the key that it links to.
    Where rules or persons are declared it also says what holds in every row and what does not, and
    where cells are not written plainly, how, and where distributions are hidden, which.

    Args:
      escaped: whether the file it goes with was made safe for spreadsheets; its text columns then
        say so.
      shape: what was asked of its rows; columns it speaks of then say so.
    """
    asked = {} if shape is None else asked_words(shape, domain)
    files = file_columns(domain.person, [c.name for c in domain.columns])
    formed = any(_written(c) for c in domain.columns)
    hidden = {name for names in domain.sensitive.values() for name in names}
    return pd.DataFrame(
        [
            {
                **_placed(files.get(c.name), c.name),
                "kind": c.kind.value,
                "type": c.dtype,
                "what may stand in it": declared_domain(c),
                "known": origin(c),
            }
            | ({"written": _written(c)} if formed else {})
            | ({"shares": HIDDEN[how] if c.name in hidden else ""} if hidden else {})
            | ({"in the file": ESCAPED if c.dtype in TEXT else ""} if escaped else {})
            | ({"kept": _kept(domain, c.name)} if domain.rules or domain.person else {})
            | ({"asked for": asked.get(c.name, "")} if asked else {})
            for c in domain.columns
        ]
    )


def _placed(place: tuple[str, str] | None, name: str) -> dict[str, str]:
    """Which column of which file; the name alone where there is one file."""
    return {"column": name} if place is None else {"file": f"{place[0]}.csv", "column": place[1]}


def _written(column: Column) -> str:
    """How a CSV file has the column's cells, in words; "" where plainly."""
    shown = example(column)
    words = [f"such as {shown}"] if shown else []
    if column.form is not None and column.form.absent:
        words.append(f"missing as {column.form.absent}")
    return ", ".join(words)


def _kept(domain: Domain, name: str) -> str:
    """What every row or every person keeps about a column, and what is not kept, in words."""
    words = [f"in every row: {rule.text}" for rule in domain.rules if name in rule.columns]
    person = domain.person
    if person is None or not person.grouped:
        return "; ".join(words)
    if name in person.columns:
        words.append("the same in all rows of a person, made up")
    elif name in person.constant:
        words.append("one value for each person")
    elif name == person.counter:
        words.append("counts the rows of a person in their order: 1, 2, 3, …")
    else:
        kept = FOLLOWING if person.walked else VARYING
        link = next((file.child for file in person.files if file.event == name), None)
        if link is not None:
            to = foreign_keys(person, (c.name for c in domain.columns))[link]
            kept = f"link: each value stands in the column {to.key} of {to.file}.csv"
        orders = [file.order for file in person.files]
        ordered = "rows of a person are in ascending order of it; " if name in orders else ""
        words.append(f"{ordered}{kept}")
    return "; ".join(words)


def dictionary_text(store: RunStore, run: RunRecord, *, escaped: bool = False) -> str:
    """A run's dictionary as CSV; spreadsheets open it, so names in it are always made safe."""
    domain = run.schema.domain()
    words = domain_dictionary(domain, escaped=escaped, how=hiding(run.plan))
    columns = intervals(store, run.id).get("columns", {})
    if columns:  # a file of two may call a column otherwise than the table of both
        told = (figures_words(columns.get(c.name, {})) for c in domain.columns)
        words[WITH_INTERVALS] = ["; ".join(one) for one in told]
    return csv_text(words)


def certificate_text(certificate: dict[str, Any]) -> str:
    """The certificate as indented JSON text."""
    return json.dumps(certificate, indent=2, ensure_ascii=False)


def pack(
    out: BinaryIO,
    tables: Sequence[DrawnTable],
    *,
    name: str,
    domain: Domain,
    schema: Schema,
    certificate: dict[str, Any],
    run: str | None = None,
    escaped: bool = False,
) -> None:
    """Write a ZIP of tables with a dictionary, a certificate and a label that say what they are.

    Args:
      tables: ≥ 1, all of one request; Parquet where they are of two linked files.
      name: of a table's file in it; each has its seed in its name where there are several.
      schema: says how files are written.
      run: id of the run that made the model, if it has one.
      escaped: whether they were made safe for spreadsheets.
    """
    facts, several = [one.facts for one in tables], len(tables) > 1
    how = _told_hiding(certificate)
    words = domain_dictionary(domain, escaped=escaped, shape=facts[0].shape, how=how)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in tables:
            if schema.linked:
                rows = pd.concat(list(row_batches(one.path)), ignore_index=True)
                folder = f"seed-{one.facts.seed}/" if several else ""
                add_files(archive, rows, schema, escaped=escaped, folder=folder)
            else:
                archive.write(one.path, table_name(name, one.facts.seed, several=several))
        add_papers(archive, csv_text(words), certificate_of(certificate, facts), run)


def _told_hiding(certificate: dict[str, Any]) -> Hiding:
    """What a certificate says was done to tagged columns."""
    how: Hiding = (certificate.get("lmdp") or {}).get("hiding", "shifted")
    return how


def add_files(
    archive: zipfile.ZipFile,
    rows: pd.DataFrame,
    schema: Schema,
    *,
    escaped: bool = False,
    folder: str = "",
) -> None:
    """Write both files of linked rows, named as those that came in."""
    for name, (part, own) in unlink(rows, schema).items():
        with archive.open(f"{folder}{name}.csv", "w", force_zip64=True) as file:
            write_csv_rows([part], file, schema=own, escape_formulas=escaped)


def add_papers(
    archive: zipfile.ZipFile, words: str, certificate: dict[str, Any], run: str | None = None
) -> None:
    """Write the dictionary, the certificate and the label that say what rows are."""
    archive.writestr("dictionary.csv", words)
    archive.writestr("certificate.json", certificate_text(certificate))
    if certificate:
        archive.writestr(ENDING, certificate_text(synthetic_label(certificate, run)))


def write_linked(
    table: pd.DataFrame,
    out: Path,
    schema: Schema,
    certificate: dict[str, Any],
    *,
    escaped: bool = False,
) -> None:
    """Write a ZIP of both files of linked rows, with their papers."""
    how = _told_hiding(certificate)
    words = csv_text(domain_dictionary(schema.domain(), escaped=escaped, how=how))
    with replacing(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        add_files(archive, table, schema, escaped=escaped)
        add_papers(archive, words, certificate)


def certificate_table(name: str) -> str:
    """The database's table that says what synthetic ones are."""
    return f"{name}_certificate"


def sql_tables(
    rows: pd.DataFrame, schema: Schema, certificate: dict[str, Any], name: str
) -> list[SqlTable]:
    """Rows as tables of a database: both files of linked ones, named so, and their papers.

    Args:
      name: of the table where there is one.
    """
    texts = {"certificate": certificate, "synthetic": synthetic_label(certificate)}
    papers = {"name": list(texts), "text": [certificate_text(one) for one in texts.values()]}
    last, person = SqlTable(certificate_table(name), pd.DataFrame(papers), ()), schema.person
    if person is None or person.event is None:
        return [SqlTable(name, rows, schema.columns), last]
    links = foreign_keys(person, schema.names)
    keys = {link.file: link.key for link in links.values()}
    return [
        SqlTable(title, table, own.columns, keys.get(title), links.get(title))
        for title, (table, own) in unlink(rows, schema).items()
    ] + [last]
