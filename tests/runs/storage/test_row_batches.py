"""Rows of a stored table some at a time: the same rows, in the same order and dtypes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.proposing.propose import infer_schema
from core.reading.raw_cells import as_written, raw_frame
from core.runs.records import TableRecord
from core.runs.storage.row_batches import row_batches
from core.runs.storage.store import RunStore
from core.schema.column import Column, Kind
from core.schema.form import Form
from core.schema.labels import to_labels, to_numbers
from core.schema.schema import Schema

pytestmark = pytest.mark.slow

N = 1000


def every_dtype() -> pd.DataFrame:
    """Columns of every dtype that reading gives, with absent cells only far down."""
    late = np.arange(N) == N - 1
    days = pd.date_range("2020-01-01", periods=N)
    return pd.DataFrame(
        {
            "whole": range(N),
            "gaps": pd.Series(range(N), dtype="Int64").mask(late),
            "text": pd.Series(["x", "y"] * (N // 2), dtype="str").mask(late),
            "number": np.where(late, np.nan, 1.5),
            "half": np.float32(1.5),
            "yes": [True, False] * (N // 2),
            "maybe": pd.Series([True, False] * (N // 2), dtype="boolean").mask(late),
            "day": days.as_unit("us"),
            "moment": days.tz_localize("Europe/Berlin").as_unit("us"),
        }
    )


@pytest.mark.parametrize("rows", [1, 7, 128, 300, 5000])
def test_batches_are_the_frame_that_was_written(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.reading.row_groups.batch_rows", lambda columns: rows)
    path, whole = tmp_path / "rows.parquet", every_dtype()
    whole.to_parquet(path, index=False, row_group_size=300)
    parts = list(row_batches(path))
    assert all(0 < len(part) <= rows and (part.dtypes == whole.dtypes).all() for part in parts)
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)


def test_memory_follows_the_batch_and_not_the_rows(tmp_path: Path) -> None:
    """Forty groups of rows are read in the memory of one; a process of its own counts them."""
    path = tmp_path / "rows.parquet"
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema([(f"c{i}", pa.float64()) for i in range(8)])) as writer:
        for _ in range(40):
            writer.write_table(pa.table({f"c{i}": rng.random(65_536) for i in range(8)}))
    script = (
        "import sys; from pathlib import Path\n"
        "import core.reading.row_groups as read; read.batch_rows = lambda columns: 65_536\n"
        "def held(): return int(Path('/proc/self/statm').read_text().split()[1]) * 4 / 1024\n"
        "sizes = [held() for _ in read.raw_batches(Path(sys.argv[1]))]\n"
        "print(max(sizes) - sizes[2])"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert float(told.stdout) < 60, "MB beyond the third batch; all rows are 160 MB"


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored rows are read thirty at a time."""
    monkeypatch.setattr("core.reading.row_groups.batch_rows", lambda columns: 30)


def kept(store: RunStore, rows: pa.Table, schema: Schema) -> TableRecord:
    return store.add_table(rows, name="t", schema=schema, profile={}, source="", account_id="p")


@pytest.mark.usefixtures("few_rows")
def test_stored_rows_are_the_same_at_once_and_in_batches(store: RunStore) -> None:
    frame = every_dtype()
    table = kept(store, raw_frame(frame), infer_schema(frame))
    whole, parts = store.load_frame(table.id), list(store.batches(table.id))
    assert len(parts) > 30 and list(whole) == list(frame)
    for name in whole:
        labels = pd.concat([to_labels(part[name]) for part in parts], ignore_index=True)
        pd.testing.assert_series_equal(labels, to_labels(whole[name]))
    raw = pa.concat_tables(store.raw_batches(table.id))
    assert raw.to_pandas().astype(frame.dtypes).equals(frame)


@pytest.mark.usefixtures("few_rows")
def test_a_stored_cell_is_read_by_the_schema_asked_for(store: RunStore) -> None:
    """And by nothing else: words and commas in other rows change nobody's number."""
    cells = [f"{i},5" for i in range(60)]
    odd = ["word", *cells[1:30], "1.5", *cells[31:]]
    comma = Column(name="x", kind=Kind.NUMBER, dtype="float64", form=Form(decimal=","))
    label = Column(name="x", kind=Kind.CATEGORY, dtype="str", categories=("3,5",))
    numbers, labels = (Schema(columns=(column,)) for column in (comma, label))
    tables = [kept(store, as_written(pa.table({"x": one})), labels) for one in (cells, odd)]
    read = [
        np.concatenate(
            [to_numbers(part["x"], comma) for part in store.batches(one.id, schema=numbers)]
        )
        for one in tables
    ]
    same = np.ones(60, dtype=bool)
    same[[0, 30]] = False
    np.testing.assert_array_equal(read[0], np.arange(60) + 0.5)
    np.testing.assert_array_equal(read[1][same], read[0][same])
    assert np.isnan(read[1][0])
    for one in tables:
        assert store.load_frame(one.id)["x"].tolist()[1:30] == cells[1:30]
        trained, _ = store.load_split(one.id, numbers, ["x"])
        np.testing.assert_array_equal(to_numbers(trained["x"], comma)[same], read[0][same])


def test_chosen_columns_come_in_the_order_asked_for(store: RunStore, table: TableRecord) -> None:
    together = pd.concat(store.batches(table.id, columns=["sex", "age"]), ignore_index=True)
    pd.testing.assert_frame_equal(together, store.load_frame(table.id)[["sex", "age"]])
