"""How one record is spelled moves no other: every source, kind, type and spelling together.

A schema is declared beforehand, proposed from an earlier file or written by hand. Whatever stands
in one record, the codes of all others are the same with that record there, left out, repeated and
moved. So each record has one sequence of codes in whatever file and company it occurs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records, number_people
from core.proposing.propose import Counts, propose
from core.reading import opening, raw_cells, typed_cells
from core.reading.cells import ReadLimits
from core.reading.raw_cells import Source
from core.schema.column import Column, Kind
from core.schema.form import FileForm, Form
from core.schema.person import Person
from core.schema.schema import Schema
from tests.contract.spelled_columns import COLUMNS, KEY, declaration
from tests.contract.spelled_sources import SOURCES, Record, Spelled, Text

pytestmark = pytest.mark.slow

EARLIER, ORDINARY, ALONE = 120, 20, 4  # rows
# of each source, in the suite, and odd records of each; one finds every reader at the end of this
TABLES, ODD = 1, 120
LONG_TABLES, LONG_ODD = 50, 1_000  # where somebody asks for them
NAMES = [column.name for column in COLUMNS]
Indices = list[int]
open_path, typed_rows = opening.open_path, typed_cells.typed_rows
says_nothing, is_written = typed_cells.says_nothing, raw_cells.is_written


def proposed(kind: Spelled, random: Random, folder: Path) -> Schema:
    """What an earlier file proposes, in which every record is ordinary or one of them is not."""
    rows = [kind.ordinary(random) for _ in range(EARLIER)]
    if random.random() < 0.5:
        odd = {column.name: kind.odd(random, column) for column in COLUMNS}
        rows[random.randrange(EARLIER)].update(odd)
    if isinstance(kind, Text):  # as the file says it, so that its form is proposed as well
        source = kind.source(rows, folder, None)
        batches, form = list(source.batches()), source.form
    else:
        batches, form = kind.batches(rows, folder, None), FileForm()
    schema, *_ = propose(
        Counts.of(batches), lambda names: [b.select(list(names)) for b in batches], form
    )
    return schema


def declared(kind: Spelled, random: Random, folder: Path) -> Schema:
    """A schema that stands before the rows: proposed, or by hand, with gaps or without."""
    schema = proposed(kind, random, folder)
    if random.random() < 0.6:
        columns = tuple(declaration(column, random) for column in COLUMNS)
    else:
        gaps = random.random() < 0.5
        columns = tuple(
            column.model_copy(update={"missing": column.missing or gaps}) if column.declared
            else column.model_copy(update={"kind": Kind.TEXT})
            for column in schema.columns
        )  # fmt: skip
    schema = schema.model_copy(update={"columns": ()}).model_copy(update={"columns": columns})
    key = schema[KEY].model_copy(
        update={"kind": Kind.IDENTIFIER, "categories": None, "other": None}
    )
    return Schema.model_validate(schema.replace(key).model_dump())


@dataclass
class Trial:
    """Records, and the codes that each of them had wherever it was read.

    Attributes:
      kind: of the source.
      schema: declared beforehand.
      records: ordinary ones, then odd ones.
      folder: for files.
      odd: how many odd cells each record has.
      cells: how many odd cells were read so far, each time counted.
    """

    kind: Spelled
    schema: Schema
    records: list[Record]
    folder: Path
    odd: list[int]
    cells: int = 0
    _codes: dict[int, bytes] = field(default_factory=dict)

    def frames(self, places: Sequence[int], *, in_batches: bool) -> list[pd.DataFrame]:
        """Some of the records typed under the schema, read at once or some at a time.

        Args:
          places: of the records, in the order of the file.
          in_batches: whether each batch is typed on its own, as runs do.
        """
        rows = [self.records[place] for place in places]
        frames = self.kind.typed(rows, self.folder, self.schema, in_batches=in_batches)
        assert sum(map(len, frames)) == len(places), "a record was lost or came twice"
        return frames

    def codes(self, places: Sequence[int], *, in_batches: bool = False) -> list[bytes]:
        """The codes of each record of a file, row by row."""
        layout = Layout(self.schema.domain())
        rows: list[bytes] = []
        for frame in self.frames(places, in_batches=in_batches):
            codes, _ = encoded_records(frame, layout, None)
            rows += _each(codes.states, codes.values)
        return rows

    def moved(self, places: Sequence[int], *, in_batches: bool = False) -> set[int]:
        """Records whose codes are not what they were when they were first read."""
        self.cells += sum(self.odd[place] for place in places)
        codes = self.codes(places, in_batches=in_batches)
        pairs = zip(places, codes, strict=True)
        return {place for place, row in pairs if self._codes.setdefault(place, row) != row}

    def people(self, places: Sequence[int]) -> dict[int, bytes]:
        """The codes of each person's records, by the public hash of the person's key."""
        person = Person(columns=(KEY,), rows=3)
        schema = self.schema.model_copy(update={"person": person})
        (frame,) = self.frames(places, in_batches=False)
        codes, people = encoded_records(frame, Layout(schema.domain()), person)
        assert people is not None and people.hashes is not None
        rows = _each(codes.states, codes.values)
        ends = zip(people.offsets[:-1], people.offsets[1:], strict=True)
        each = (b"".join(rows[first:last]) for first, last in ends)
        return dict(zip(people.hashes.tolist(), each, strict=True))

    def owner(self, place: int) -> int:
        """The hash of the key of a record's person."""
        (frame,) = self.frames([place], in_batches=False)
        return int(number_people(frame[[KEY]])[1][0])

    def blame(self, places: Sequence[int], moved: set[int]) -> str:
        """A sentence that names the least that moves a record: one odd cell if that suffices."""
        self._codes.clear()
        ordinary = list(range(ORDINARY))
        self.moved(ordinary)
        for place in [place for place in places if place >= ORDINARY]:
            if not self.moved([*ordinary, place]) & set(ordinary):
                continue
            for name, cell in self.records[place].items():
                self.records.append({**self.records[0], name: cell})
                self.odd.append(1)
                if self.moved([*ordinary, len(self.records) - 1]) & set(ordinary):
                    column = self.schema[name]
                    return f"{self.kind.name}: {cell!r} in {column!r}"
            return f"{self.kind.name}: the record {self.records[place]!r}"
        return f"{self.kind.name}: no record alone moves {sorted(moved)}"


def _each(states: np.ndarray, values: np.ndarray) -> list[bytes]:
    return [s.tobytes() + v.tobytes() for s, v in zip(states, values, strict=True)]


def trial(kind: Spelled, random: Random, folder: Path, odd: int) -> Trial:
    """Ordinary records, and odd ones: with one odd cell, some or nothing else."""
    schema = declared(kind, random, folder)
    records = [kind.ordinary(random) for _ in range(ORDINARY + odd)]
    changed = [0] * ORDINARY
    for number, record in enumerate(records[ORDINARY:]):
        share = (0.0, 0.3, 1.0)[number % 3]
        one = random.choice(COLUMNS)
        chosen = [c for c in COLUMNS if c is one or random.random() < share]
        record.update({column.name: kind.odd(random, column) for column in chosen})
        changed.append(len(chosen))
    return Trial(kind, schema, records, folder, changed)


def companies(random: Random, count: int) -> Iterator[tuple[str, Indices]]:
    """Which records a file holds and in what order, with what is asked of it.

    Args:
      random: what draws.
      count: of all records.
    """
    ordinary, odd = list(range(ORDINARY)), list(range(ORDINARY, count))
    yield "all odd records left out", ordinary
    yield "all odd records there", [*ordinary, *odd]
    yield "moved", random.sample([*ordinary, *odd], count)
    some = random.sample(odd, len(odd) // 2)
    yield "some left out, others repeated", random.sample([*ordinary, *some, *some], count)
    for number, one in enumerate(random.sample(odd, ALONE)):
        at = (0, ORDINARY, random.randrange(ORDINARY), ORDINARY // 2)[number]
        there = [*ordinary[:at], one, *ordinary[at:]]
        yield "one odd record", there
        yield "one odd record repeated", [*there, one] if number % 2 else [one, *there]
    yield "odd records alone", odd


def check_records(found: Trial, random: Random) -> None:
    """Each record has the same codes in every company."""
    for number, (asked, places) in enumerate(companies(random, len(found.records))):
        moved = found.moved(places, in_batches=number % 2 == 1)
        assert not moved, f"{asked}: {found.blame(places, moved)}"


def check_people(found: Trial, random: Random) -> None:
    """Records of other people are the same whether a record is there, repeated or neither."""
    ordinary = list(range(ORDINARY))
    before = found.people(ordinary)
    chosen = random.sample(range(ORDINARY, len(found.records)), ALONE)
    owners = {one: found.owner(one) for one in chosen}
    for company in ([chosen[0]], [chosen[1]] * 2, chosen):
        after = found.people(random.sample([*ordinary, *company], len(ordinary) + len(company)))
        theirs = {owners[one] for one in company}
        others = before.keys() - theirs
        told = f"{found.kind.name}: {[found.records[one] for one in company]!r}"
        assert before.keys() <= after.keys() and len(after.keys() - before.keys()) <= ALONE, told
        assert not [who for who in others if after[who] != before[who]], told


def run(kind: Spelled, seeds: range, folder: Path, odd: int = ODD) -> int:
    """How many odd cells were read, with nobody else moved.

    Args:
      kind: of source.
      seeds: a table each.
      folder: for files.
      odd: records of a table.
    """
    cells = 0
    for seed in seeds:
        random = Random(f"{kind.name} {seed}")
        found = trial(kind, random, folder, odd)
        check_records(found, random)
        check_people(found, random)
        cells += found.cells
    return cells


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_cells, "BATCH_ROWS", ORDINARY + ODD // 2)


@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.name)
def test_a_records_spelling_moves_no_other(kind: Spelled, tmp_path: Path) -> None:
    assert run(kind, range(TABLES), tmp_path) > 1_000


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.name)
def test_millions_of_spellings_move_no_other_record(kind: Spelled, tmp_path: Path) -> None:
    seeds = range(TABLES, TABLES + LONG_TABLES)
    print(f"{kind.name}: {run(kind, seeds, tmp_path, LONG_ODD):,} odd cells")


# -- readers that let one record decide about others -----------------------------------------------


def by_column(rows: pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """Numbers where every cell of the column is one; else all of them as they are written."""
    frame = typed_rows(rows, columns)
    for column in columns:
        cells = rows[column.name]
        silent = says_nothing(cells, column, written=is_written(rows.schema))
        if (
            column.kind in (Kind.NUMBER, Kind.INTEGER)
            and (frame[column.name].isna() > silent).any()
        ):
            frame[column.name] = cells.cast(pa.string()).to_pandas()
    return frame


def by_marks(rows: pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """A decimal comma anywhere makes the comma the decimal mark everywhere."""
    comma = any(
        pc.any(pc.match_substring_regex(rows[name], r"^\d+,\d{1,2}$")).as_py() for name in NAMES
    )
    form = Form(decimal=",")
    numbers = (Kind.NUMBER, Kind.INTEGER)
    update = {"form": form} if comma else {}
    return typed_rows(
        rows, [c.model_copy(update=update) if c.kind in numbers else c for c in columns]
    )


def by_bytes(file: Path, folder: Path, *, limits: ReadLimits, declared: FileForm | None) -> Source:
    """An encoding that all bytes of the file decide."""
    try:
        file.read_bytes().decode()
    except UnicodeDecodeError:
        declared = None if declared is None else declared.model_copy(update={"encoding": "cp1252"})
    return open_path(file, folder, limits=limits, declared=declared)


@pytest.mark.parametrize(
    ("module", "name", "twin"),
    [
        (typed_cells, "typed_rows", by_column),
        (typed_cells, "typed_rows", by_marks),
        (opening, "open_path", by_bytes),
    ],
    ids=["types by column", "decimal mark by table", "encoding by file"],
)
def test_readers_that_look_at_other_records_are_found(
    module: ModuleType, name: str, twin: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, twin)
    with pytest.raises(AssertionError, match="left out|there|moved|odd"):
        run(Text("text"), range(1), tmp_path)
