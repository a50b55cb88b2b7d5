"""A source kept as raw cells: whole or not at all, and with what it proposes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.importing.raw_table import TABLE, keep_rows
from core.reading.cells import TableReadError
from core.schema.form import FileForm

FIRST = pa.table({"a": ["1", "2"], "b": [1, 2]})


class Batches:
    """A source that has some batches, and may break after them."""

    form, doubts = FileForm(), ("Read in doubt.",)

    def __init__(self, *batches: pa.Table, breaks: bool = False) -> None:
        self._batches, self._breaks = batches, breaks

    def batches(self) -> Iterator[pa.Table]:
        yield from self._batches
        if self._breaks:
            raise TableReadError("The line broke. Nothing was kept.")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Batches(FIRST, breaks=True), "The line broke"),
        (Batches(FIRST.slice(0, 0)), "no records"),
        (Batches(), "no records"),
    ],
)
def test_rows_are_kept_whole_or_not_at_all(tmp_path: Path, source: Batches, words: str) -> None:
    with pytest.raises(TableReadError, match=f"{words}.*Nothing was kept"):
        keep_rows(source, tmp_path / "rows", proposing=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("proposing", [True, False])
def test_what_is_told_of_a_table_survives_a_process(tmp_path: Path, proposing: bool) -> None:
    told: list[int] = []
    source = Batches(FIRST, FIRST)
    raw = keep_rows(source, tmp_path / "rows", proposing=proposing, progress=told.append)
    assert pq.read_table(raw.path).equals(pa.concat_tables([FIRST, FIRST])) and told == [2, 4]
    assert (raw.n, raw.names) == (4, ("a", "b"))
    assert raw.doubts == Batches.doubts and (raw.schema is not None) is proposing
    assert TABLE.validate_python(json.loads(json.dumps(TABLE.dump_python(raw, mode="json")))) == raw


def test_a_part_of_many_rows_is_kept_to_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.importing.record_hashes.COMPARED", 3)
    raw = keep_rows(Batches(FIRST, FIRST), tmp_path / "rows", proposing=True)
    assert raw.schema is not None and raw.drawn is not None
    part = raw.compared(raw.schema)
    assert len(part) == 3 and set(part["b"].astype(int)) == {1, 2}
    assert TABLE.validate_python(json.loads(json.dumps(TABLE.dump_python(raw, mode="json")))) == raw
