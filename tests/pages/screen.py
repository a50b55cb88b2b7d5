"""Reading and using a page under test, and giving runs what a worker would have left."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save_file
from streamlit.testing.v1 import AppTest

from core.privacy.discovery.open_domain import open_domain, stand_in
from core.quality.report import types
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from pages.review import page as review
from pages.server import faults
from pages.shared.plain import JOINER
from pages.tables import page as tables


def words(at: AppTest) -> str:
    """Everything the page says."""
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.success, at.title)
    return said("\n".join(str(element.value) for kind in kinds for element in kind))


def said(markdown: str) -> str:
    """Markdown as it is read, as far as `plain` escaped it."""
    return re.sub(r"\\(?=[^\w\s]|_)", "", markdown).replace(JOINER, "")


def buttons(at: AppTest) -> list[str]:
    return [said(button.label) for button in at.button]


def button(at: AppTest, label: str) -> Any:
    return next(b for b in at.button if said(b.label) == label)


def press(at: AppTest, label: str) -> AppTest:
    return button(at, label).click().run()


def in_tab(at: AppTest, name: str) -> AppTest:
    """The page with the tab of this name open; what others hold is not drawn."""
    labels = [*review.TABS.values(), *tables.TABS.values()]
    return _opened(at, next(label for label in labels if label.endswith(f" {name}")))


def each_tab(at: AppTest) -> Iterator[AppTest]:
    """The Review page with one tab after the other open."""
    icons = {tab.label.split()[0] for tab in at.tabs}  # of histories only where there are any
    for label in review.TABS.values():
        if label.split()[0] in icons:
            yield _opened(at, label)


def _opened(at: AppTest, label: str) -> AppTest:
    at.session_state["tab"] = label
    return whole(at.run())


def whole(at: AppTest) -> AppTest:
    """The page, after a look that no fault is on it."""
    assert not at.exception, [fault.value for fault in at.exception]
    assert not [error.value for error in at.error if error.value.startswith(faults.UNFORESEEN)]
    return at


def forget_statement(store: RunStore, table: TableRecord) -> None:
    """The table as it is before the steward declared its schema public."""
    store.table_artefacts(table.id).delete("attested.json")


def running(store: RunStore, run: RunRecord) -> None:
    """The run as a worker holds it; this process stands for the worker."""
    assert store.claim(run.id, slots=1)
    assert store.adopt(run.id, os.getpid())


def finish(
    store: RunStore,
    run: RunRecord,
    *,
    report: dict[str, Any] | None = None,
    outside: dict[str, Any] | None = None,
    state: State = State.DONE,
) -> None:
    """Give a run what a worker would have left, or what it has left so far."""
    if open_domain(run.schema).names:
        store.record(run.id, learned=stand_in(run.schema))
    folder = store.artefacts(run.id).path("synthetic.parquet").parent
    frame = pd.DataFrame({"visit_id": ["a"] * 3, "age": [30, 40, 50], "ward": ["=1+1", "b", "c"]})
    frame.to_parquet(folder / "synthetic.parquet")
    (folder / "certificate.json").write_text(json.dumps({"relation": "zero-out"}))
    (folder / "model").mkdir()
    (folder / "model" / "pearl.json").write_text("{}")
    save_file({"w": np.ones(2, np.float32)}, folder / "model" / "pearl.safetensors")
    if report is not None:
        (folder / "report.json").write_text(json.dumps(report))
    store.record(run.id, guarantee=run.plan.guarantee, seconds={"training": 61.0, "report": 1.0})
    if outside is not None:
        (folder / "outside.json").write_text(json.dumps(outside))
    if state is State.RUNNING:  # in the hands of this very process
        assert store.claim(run.id, slots=1) and store.adopt(run.id, os.getpid())
        return
    assert store.set_state(run.id, state, "Done.")


def small_report(columns: int = 1, *, complete: bool = True, filled: bool = False) -> dict:
    """A hand-made report; `filled` measures every part."""
    score = types.Score(
        key="tvd_1way", title="Single columns: distance", value=0.03, unit="", goal="lower",
        low=0, high=1, meaning="How far.", source="us", ceiling=0.01,
    )  # fmt: skip
    absent = score.model_copy(
        update={"key": "b", "title": "Absent", "value": None, "ceiling": None, "unit": "s"}
    )
    pictures = {
        f"c{i}": types.ColumnPicture(
            kind="integer", edges=[0, 50, 100], real=[0.4, 0.6], synthetic=[0.5, 0.5],
            missing_real=0, missing_synthetic=0, tvd=i / 100,
        )
        for i in range(columns)
    }  # fmt: skip
    report = types.Report(
        complete=complete, rows_real=400, rows_synthetic=300, target="readmitted",
        scores=[score, absent], columns=pictures, notes=["Measured on a sample."],
    )  # fmt: skip
    if filled:
        report = report.model_copy(update=_parts())
    return report.model_dump(mode="json")


def _histories() -> types.Histories:
    picture = types.ColumnPicture(
        kind="integer", edges=[0, 5, 10], real=[0.4, 0.6], synthetic=[0.5, 0.5],
        missing_real=0, missing_synthetic=0, tvd=0.1,
    )  # fmt: skip
    state = types.StateHistory(
        column="ward", labels=["x", "y"], real=[[0.5, 0.3, 0.2]] * 2, synthetic=[[0.4] * 3] * 2,
        times=[0.0, 9.0], real_not_yet=[[0.8, 0.1]] * 2, synthetic_not_yet=[[0.7, 0.2]] * 2,
        runs=picture,
    )  # fmt: skip
    return types.Histories(
        file="",
        days=True,
        pictures=dict.fromkeys(("events", "gaps", "first"), picture),
        states=[state, state.model_copy(update={"column": "dose"})],
        people=[[(0.0, "x"), (3.0, "y")]],
    )


def _parts() -> dict[str, Any]:
    prediction = types.PredictionPoint(
        column="age", metric="R²", real=0.6, synthetic=0.5, baseline=0.0, predictable=True
    )
    return {
        "pca": types.Projection(
            real=[(0, 1), (1, 0)], synthetic=[(0, 0)], explained=(0.5, 0.2), wscore=0.9, spread=0.1
        ),
        "dimension_probability": [
            types.ProbabilityPoint(column="ward", label="x", real=0.2, synthetic=0.3)
        ],
        "dimension_prediction": [
            prediction,
            prediction.model_copy(update={"column": "bmi", "synthetic": None, "note": "none"}),
        ],
        "pairs": types.PairTable(columns=["a", "b"], tvd=[[0.1, 0.2], [0.2, 0.1]]),
        "utility": [
            types.UtilityRow(model="trees", metric="AUC", real=0.8, synthetic=0.7, baseline=0.5)
        ],
        "groupings": [grouping("ward"), grouping("age"), grouping("ward", "age", unseen=3)],
        "histories": [_histories()],
    }


def grouping(*columns: str, unseen: int = 0) -> types.Grouping:
    """Figures of one group of these columns."""
    figures = {"share": (0.5, 0.4), "single": (0.01, 0.02), "pairs": (0.03, 0.09)}
    return types.Grouping(
        columns=columns,
        outcome="ill = yes",
        score="AUROC",
        groups=[types.GroupFigures(name="north", rate=(0.2, 0.3), chance=0.05, **figures)],
        unseen=unseen,
        sentences=[f"Worst of {' and '.join(columns)}."],
    )
