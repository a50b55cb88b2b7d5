"""Rows of a stored table some at a time: the same rows, in the same order and dtypes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore

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
            "size": pd.Categorical(["s", "l"] * (N // 2), ["xl", "l", "s"], ordered=True),
        }
    )


@pytest.mark.parametrize("rows", [1, 7, 128, 300, 5000])
def test_batches_are_the_table(store: RunStore, table: TableRecord, rows: int) -> None:
    every_dtype().to_parquet(
        store.table_artefacts(table.id).path("rows.parquet"), index=False, row_group_size=300
    )
    whole = store.load_frame(table.id)
    parts = list(store.batches(table.id, rows=rows))
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
        "from core.runs.storage.row_batches import row_batches\n"
        "def held(): return int(Path('/proc/self/statm').read_text().split()[1]) * 4 / 1024\n"
        "sizes = [held() for _ in row_batches(Path(sys.argv[1]), rows=65_536)]\n"
        "print(max(sizes) - sizes[2])"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert float(told.stdout) < 60, "MB beyond the third batch; all rows are 160 MB"


def test_chosen_columns_come_in_the_order_asked_for(store: RunStore, table: TableRecord) -> None:
    parts = list(store.batches(table.id, columns=["sex", "age"], rows=16))
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, store.load_frame(table.id)[["sex", "age"]])


def test_gaps_far_down_decide_the_dtype_of_the_first_batch(
    store: RunStore, table: TableRecord
) -> None:
    """A file that no data frame wrote: its integers with gaps are floats throughout."""
    rows = pa.table(
        {
            "count": pa.array([*range(199), None]),
            "told": pa.array([True] * 199 + [None]),
            "kind": pa.array(["b", "a"] * 100).dictionary_encode(),
        }
    )
    pq.write_table(rows, store.table_artefacts(table.id).path("rows.parquet"), row_group_size=70)
    whole = store.load_frame(table.id)
    parts = list(store.batches(table.id, rows=30))
    assert (parts[0].dtypes == whole.dtypes).all() and parts[0]["count"].dtype == np.float64
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
