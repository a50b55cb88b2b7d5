"""Linking two stored tables: what belongs together, what linking leaves out, and one table of both.

Everything that is counted here is for the steward alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from core.importing.raw_table import Progress, keep_rows
from core.privacy.discovery.open_domain import as_learned
from core.proposing.profile import ColumnProfile
from core.runs.accounts.people import change_account
from core.runs.errors import RunStoreError
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import Kind
from core.schema.form import FileForm
from core.services.imports import About, keep_table
from core.services.linking.files import (
    LinkedFile,
    LinkFacts,
    linked_batches,
    linked_schema,
    matched,
)
from core.services.recounting import recounted

FACTS = "linked"  # of a table's profile: `LinkFacts`
MOST_TABLES = 8  # that a new one is compared with
FOUND, COVERED, REPEATED = 0.95, 0.3, 50  # shares of rows and of keys, and rows for each value
MANY_KEYS = 500  # more than ages, days and other small numbers would come near
_NO_KEYS = (Kind.DATETIME, Kind.NUMBER, Kind.BOOLEAN)
_ENDINGS = re.compile(r"(\.(csv|tsv|txt|parquet|xlsx?|gz|zip))+$", re.IGNORECASE)


@dataclass(frozen=True)
class Link:
    """Two tables by their ids, and what links them.

    Attributes:
      parent: has one row for each person.
      key, child_key: say who, in the first and in the second table.
      order: sorts the rows of a person; None without.
    """

    parent: str
    child: str
    key: str
    child_key: str
    order: str | None = None


def proposed_link(
    store: RunStore, table: TableRecord, others: Sequence[TableRecord]
) -> Link | None:
    """The likeliest link of a table with another one; None where no column's values say so.

    Rows may belong to the people in a linked table, or to rows of these. Of a table in which each
    key stands once, such as of loans, the key has to be called as in the other one.

    Args:
      others: the newest first; few of them are looked at.
    """
    found: list[tuple[tuple[int, float], Link]] = []
    near = [one for one in others if one.id != table.id]
    for other in near[:MOST_TABLES] if not table.schema.linked else ():
        found += _candidates(store, other, table)
        if not other.schema.linked:
            found += _candidates(store, table, other)
    return max(found, key=lambda one: one[0])[1] if found else None


def link_to_rows(store: RunStore, table: TableRecord, new: TableRecord) -> Link | None:
    """The likeliest link of a new table with people in a linked one, or with rows of theirs.

    None where no column's values say so.
    """
    found = list(_candidates(store, table, new))
    return max(found, key=lambda one: one[0])[1] if found else None


def _candidates(
    store: RunStore, parent: TableRecord, child: TableRecord
) -> Iterator[tuple[tuple[int, float], Link]]:
    """Columns of the second table that hold keys of the first, by how sure that is."""
    names = [*key_columns(parent, unique=True), *_of_people(parent)]
    keys = {name: pc.unique(_values(store, parent, name)) for name in names}
    once = key_columns(child, unique=True) if child.n < parent.n else []
    for child_key in (*key_columns(child, unique=False), *once) if keys else ():
        cells = _values(store, child, child_key, batches=1)  # the first rows tell enough
        values = pc.unique(cells)
        for key, known in keys.items():
            share = float(pc.mean(pc.is_in(cells, value_set=known)).as_py() or 0.0)
            alike = _alike(child_key, key, parent.name)
            covered = len(values) / max(1, min(len(known), len(cells)))
            coded = not pc.all(pc.utf8_is_digit(known)).as_py()
            repeated = len(values) * REPEATED >= len(cells)
            near = covered >= COVERED and (alike == 1 or len(known) >= MANY_KEYS)
            sure = (alike == 2, *((near, coded and repeated) if child_key not in once else ()))
            if share >= FOUND and any(sure):
                yield (alike, share), Link(parent.id, child.id, key, child_key, in_time(child))


def _of_people(table: TableRecord) -> tuple[str, ...]:
    """The key of the people in a linked table, which stands in all rows of theirs."""
    person = table.schema.person
    return person.columns if person is not None and table.schema.linked else ()


def key_columns(table: TableRecord, *, unique: bool) -> list[str]:
    """Columns that may say who: each value once, or some more often."""
    names = []
    for one in map(ColumnProfile.model_validate, table.profile.get("columns", ())):
        known = round((1.0 - one.missing) * table.n)
        if known > 1 and one.kind not in _NO_KEYS and (one.distinct == known) is unique:
            names.append(one.name)
    return names


def _values(
    store: RunStore, table: TableRecord, name: str, batches: int | None = None
) -> pa.ChunkedArray:
    """A column's cells as text, without those that are missing."""
    parts = [
        batch.column(0).cast(pa.string()).drop_null()
        for batch in islice(store.raw_batches(table.id, columns=[name]), batches)
    ]
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())


def _alike(child_key: str, key: str, parent: str) -> int:
    """2 where each word of a column is in the key or its table's name, 1 where one is in the key.

    >>> _alike("users_id", "id", "users.csv"), _alike("users_id", "id", "people.csv")
    (2, 1)
    """
    child, own = _words(child_key), _words(key)
    return 2 if child <= own | _words(file_stem(parent)) else 1 if child & own else 0


def _words(name: str) -> set[str]:
    parted = re.sub("([a-z])([A-Z])", r"\1 \2", name).lower()
    return {word if len(word) < 4 else word.rstrip("s") for word in re.findall("[^\\W_]+", parted)}


def in_time(table: TableRecord) -> str | None:
    """The first column of dates, or else that of the year, which usually sorts rows, if any."""
    columns = [column for column in table.schema.columns if column.modelled]
    dates = [column.name for column in columns if column.kind is Kind.DATETIME]
    whole = [column.name for column in columns if column.kind is Kind.INTEGER]
    years = [name for name in whole if _words(name) - {"id"} in ({"year"}, {"jahr"})]
    return next(iter([*dates, *years]), None)


def file_stem(name: str) -> str:
    """A table's name without its file's endings, fit for a file in a ZIP.

    >>> file_stem("visits.csv.gz"), file_stem("../a/b")
    ('visits', '-a-b')
    """
    return re.sub(r"[\\/:\x00-\x1f]+", "-", _ENDINGS.sub("", name)).lstrip(".") or "table"


def link_facts(store: RunStore, parent: TableRecord, child: TableRecord, link: Link) -> LinkFacts:
    """What linking leaves out; see `matched` for what is refused."""
    return matched(*_files(store, parent, child, link)).facts


def link_tables(
    store: RunStore,
    parent: TableRecord,
    child: TableRecord,
    link: Link,
    *,
    most: int,
    owner: str = "",
    progress: Progress = lambda rows: None,
) -> TableRecord:
    """Keep both tables as one in the account of the people in them; they themselves stay.

    Args:
      most: rows of a person that are used, ≥ 2; public.

    Raises:
      SchemaError: see `matched`.
      RunStoreError: runs of both were paid by accounts of their own.
    """
    files = _files(store, parent, child, link)
    match = matched(*files)
    schema = linked_schema(*files, order=link.order, most=most)
    about = About(
        name=f"{files[0].name} + {files[1].name}",
        source=f"{parent.name} + {child.name}",
        account_id=_one_account(store, parent, child),
        owner=owner,
    )
    people = pa.concat_tables(store.raw_batches(parent.id)).unify_dictionaries().combine_chunks()

    class Linked:
        """Both tables as the source of one."""

        form = FileForm()
        doubts: tuple[str, ...] = ()

        def batches(self) -> Iterator[pa.Table]:
            return linked_batches(people, store.raw_batches(child.id), match, schema)

    read = partial(keep_rows, Linked(), proposing=True, progress=progress)
    table = keep_table(store, read, about)
    profile = table.profile | {FACTS: match.facts.model_dump(mode="json")}
    table = store.save_schema(table.id, table.schema, profile=profile)
    return recounted(store, table, as_learned(schema))


def facts_of(table: TableRecord) -> LinkFacts | None:
    """What linking found in the files of a linked table; None for others."""
    return LinkFacts.model_validate(table.profile[FACTS]) if FACTS in table.profile else None


def _files(
    store: RunStore, parent: TableRecord, child: TableRecord, link: Link
) -> tuple[LinkedFile, LinkedFile]:
    """Both tables with the cells of their keys alone."""
    sides = ((parent, link.key), (child, link.child_key))
    one, two = (
        LinkedFile(
            rows=pa.concat_tables(store.raw_batches(table.id, columns=[key])),
            schema=table.schema,
            name=file_stem(table.name),
            key=key,
        )
        for table, key in sides
    )
    return one, two


def _one_account(store: RunStore, parent: TableRecord, child: TableRecord) -> str:
    """The account of both tables' people: whichever table nothing was paid for yet moves."""
    if parent.account_id != child.account_id:
        try:
            change_account(store, child.id, parent.account_id)
        except RunStoreError:
            change_account(store, parent.id, child.account_id)
            return child.account_id
    return parent.account_id
