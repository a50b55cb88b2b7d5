"""Runs of tables that memory should not hold: the same rows, refusals that cost nothing, bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from core.encoding.codec import Codes
from core.encoding.holdout import split_rows
from core.encoding.key_groups import public_order
from core.encoding.layout.layout import Layout
from core.encoding.stored_codes import StoredCodes
from core.models import in_parts
from core.models.events import FitCancelled, FitEvent, Signal
from core.quality.report.build_report import build_report
from core.runs.errors import RunStoreError
from core.runs.events import State
from core.runs.execution import report_rows, training_rows, worker
from core.runs.execution.training_rows import (
    FrameRows,
    StoredRows,
    TrainingRows,
    training_records,
)
from core.runs.records import TableRecord
from core.runs.storage.artefacts import ROWS
from core.runs.storage.store import RunStore
from core.schema.column import Column, Kind
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from core.services.export import reviewed_file
from tests.runs import toy
from tests.runs.workers import queued, releases, toy_plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large begins at a few rows."""
    monkeypatch.setattr(training_rows, "MOST_IN_MEMORY", 10)
    monkeypatch.setattr(in_parts, "PART_ROWS", 2)
    monkeypatch.setattr(report_rows, "FEWEST_ROWS", 3)
    monkeypatch.setattr(report_rows, "MOST_CELLS", 6)


def keep(store: RunStore, table: TableRecord, frame: pd.DataFrame) -> None:
    with store.table_artefacts(table.id).replacing(ROWS) as file:
        frame.to_parquet(file, index=False)


def go_on(event: FitEvent) -> Signal:
    return Signal.GO_ON


def test_codes_on_disk_equal_those_in_memory(
    store: RunStore, table: TableRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Column(name="start", kind=Kind.INTEGER, low=0, high=99, step=1, dtype="int64")
    end = start.model_copy(update={"name": "end"})
    schema = Schema(columns=(start, end), rules=(parse_rule("start <= end"),), holdout=0.25)
    frame = pd.DataFrame({"start": range(40), "end": [x * 2 for x in range(40)]})
    keep(store, table, frame)
    plan = toy_plan(table).model_copy(update={"n": 30})
    layout = Layout(schema.domain())

    def records(rows: TrainingRows) -> Codes | StoredCodes:
        codes, people = training_records(rows, layout, plan, None, folder=tmp_path, on_event=go_on)
        assert people is None
        return codes

    at_once = split_rows(frame, 0.25)[0]
    with monkeypatch.context() as roomy:
        roomy.setattr(training_rows, "MOST_IN_MEMORY", 1_000)
        in_memory = records(FrameRows(at_once))
    assert isinstance(in_memory, Codes)
    for rows in (StoredRows(store, table.id, schema), FrameRows(at_once)):
        monkeypatch.setattr(training_rows, "BATCH_ROWS", 7)
        on_disk = records(rows)
        assert isinstance(on_disk, StoredCodes)
        expected = in_memory.take(public_order(30)).to("cpu")
        assert torch.equal(on_disk.to("cpu").states, expected.states)
        assert torch.equal(on_disk.to("cpu").values, expected.values)


def test_a_run_is_worked_off_in_parts(store: RunStore, table: TableRecord, tmp_path: Path) -> None:
    seen: list[Any] = []

    def compare(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, **more: Any) -> Any:
        seen.append((real, synthetic, more["rows"]))
        return toy.ToyReport(rows=len(synthetic))

    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    command = [run.id, "--home", str(store.workspace.home)]
    assert worker.main(command, find=toy.find, compare=compare, command=toy.COMMAND) == 0
    run = store.run(run.id)
    assert run.state is State.DONE and run.rows == 5
    ((real, synthetic, rows),) = seen
    assert (len(real), len(synthetic), rows) == (3, 3, (40, 5))
    assert set(real["age"]) < set(store.load_frame(table.id)["age"])
    whole = pd.read_parquet(store.artefacts(run.id).path("synthetic.parquet"))
    assert len(whole) == 5
    written = pd.read_csv(reviewed_file(store, run, format="csv"))
    pd.testing.assert_frame_equal(written, whole, check_dtype=False)
    outside = json.loads(store.artefacts(run.id).path("outside.json").read_text())
    assert outside["rows_synthetic"] == 5
    kept = {path.suffix for path in store.artefacts(run.id).folder.rglob("*") if path.is_file()}
    assert kept <= {".json", ".parquet", ".csv", ".log", ".sha256"}  # no codes of private rows


def test_another_number_of_rows_is_one_line(
    store: RunStore, table: TableRecord, tmp_path: Path
) -> None:
    layout, plan = Layout(table.schema.as_proposed().domain()), toy_plan(table)
    rows = FrameRows(store.load_frame(table.id).head(39))
    with pytest.raises(RunStoreError, match="plan is for 40 records"):
        training_records(rows, layout, plan, None, folder=tmp_path, on_event=go_on)


def test_reading_follows_a_signal_to_stop_and_leaves_nothing(
    store: RunStore, table: TableRecord, tmp_path: Path
) -> None:
    layout, plan = Layout(table.schema.as_proposed().domain()), toy_plan(table)
    rows = StoredRows(store, table.id, table.schema)
    with pytest.raises(FitCancelled):
        training_records(
            rows, layout, plan, None, folder=tmp_path, on_event=lambda event: Signal.CANCEL
        )
    assert list(tmp_path.glob("*.part")) == [] and not any(tmp_path.glob("tmp*"))


def test_a_full_disk_is_seen_before_anything_is_spent(
    store: RunStore, table: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(training_rows, "disk_usage", lambda _: usage(2**20))
    run = queued(store, table, toy_plan(table))
    assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
    worker.main([run.id, "--home", str(store.workspace.home)], find=toy.find, command=toy.COMMAND)
    run = store.run(run.id)
    assert run.state is State.FAILED and run.error is not None
    assert "0.0 GB are free. Nothing more was spent" in run.error and releases(store, table) == 0


def test_a_report_of_samples_says_so(schema: Schema, frame: pd.DataFrame) -> None:
    report = build_report(frame.head(20), frame.tail(30), schema, rows=(4000, 5000))
    assert (report.rows_real, report.rows_synthetic) == (4000, 5000)
    assert report.notes[0] == (
        "Compared on 20 of 4,000 real rows and 30 of 5,000 synthetic rows, chosen by their "
        "position alone."
    )
    assert not build_report(frame, frame, schema).notes[0].startswith("Compared on")


def test_which_rows_are_compared_depends_on_their_number_alone(
    store: RunStore, table: TableRecord, frame: pd.DataFrame
) -> None:
    run = queued(store, table, toy_plan(table))
    real, kept_out = report_rows.real_sides(store, run, ["age"])
    assert (real.of, kept_out.of, len(kept_out.rows)) == (40, 0, 0)
    reverse = frame.iloc[::-1].reset_index(drop=True)
    keep(store, table, reverse)
    other, _ = report_rows.real_sides(store, run, ["age"])
    assert (other.rows["age"] == 39 - real.rows["age"]).all()


GROWTH = """
import resource, sys
from pathlib import Path
import numpy as np, pandas as pd
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.histograms import Histograms
from core.privacy.summation import InThreads
from core.encoding.codec import Codec
from core.encoding.stored_codes import store_codes
from tests.privacy import toys

n = int(sys.argv[1])
codec = Codec(toys.wide_domain(16))
names = [column.name for column in codec.domain.columns]
frame = pd.DataFrame(np.random.default_rng(0).random((50_000, 16)), columns=names)
codes = codec.encode(frame)
parts = (codes for _ in range(n // 50_000))
stored = store_codes(parts, codec, n, Path(sys.argv[2]))
plan = toys.plan(n, [toys.phase("sum")])
table = PrivateTable(stored, codec.domain, plan, summation=InThreads())
table.release("sum", Histograms.of(codec, names))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_grows_with_row_order_and_not_with_rows(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        command = [sys.executable, "-m", "tests.script", GROWTH, str(n), str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return int(done.stdout)

    few, many = peak(500_000), peak(2_500_000)
    # two million rows more: 384 MB of codes in memory, which were held twice; on disk 264 MB, and
    # of these at most some 64 MB mapped, beside 12 bytes a row of their order
    assert many - few < 130
