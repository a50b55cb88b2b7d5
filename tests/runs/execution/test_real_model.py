"""The whole line with the real model in real processes: sample table to more rows."""

import time
from pathlib import Path

import pandas as pd
import pytest

from core.models.shaped_output import Shape
from core.runs.errors import NotFoundError, RunStoreError
from core.runs.events import State
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.services import imports, planning, reviews, runs, shaping, tables
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, sample_table
from tests.forked import new_interpreters
from tests.requests_for import request_for

pytestmark = pytest.mark.slow

SETTINGS = {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16}


def test_sample_table_to_more_rows(store: RunStore) -> None:
    table = imports.import_frame(store, sample_table(300), name=SAMPLE_NAME, source="built in")
    assert table.profile["n"] == 300
    schema = table.schema.model_copy(update={"target": SAMPLE_TARGET})
    table = tables.declare_all(store, tables.confirm_schema(store, table.id, schema))
    plan = planning.make_plan(
        table.schema,
        table.n,
        RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS)),
    )
    store.attest(table.id)
    launcher = LocalLauncher(store)
    run = runs.start(store, launcher, table.id, plan, request_for(plan, rows=120))
    with pytest.raises(NotFoundError, match="no model yet"):
        runs.generate_rows(store, launcher, run.id, SampleRequest(rows=5))
    end = time.monotonic() + 120
    while store.run(run.id).state.live and time.monotonic() < end:
        time.sleep(0.2)
    done = store.run(run.id)
    log = store.artefacts(run.id).path("worker.log").read_text()
    assert (done.state, done.message) == (State.DONE, "Done."), log
    assert done.guarantee is not None
    assert done.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
    found = reviews.report(store, run.id)
    assert found is not None and found["complete"] and found["rows_synthetic"] == 120
    assert (
        not store.journal.series(run.id).empty and runs.progress(store, run.id).elapsed_seconds > 0
    )

    path = runs.generate_rows(
        store, launcher, run.id, SampleRequest(rows=33, seed=1, escape_formulas=True)
    )
    made = pd.read_csv(path)
    assert list(made.columns) == list(table.columns) and len(made) == 33
    assert path.stat().st_mode & 0o077 == 0
    with new_interpreters():  # as users have them: they import all that they need
        again = runs.generate_rows(
            store, launcher, run.id, SampleRequest(rows=33, seed=1, format="parquet")
        )
    assert pd.read_parquet(again)["age"].tolist() == made["age"].tolist()

    shape = Shape(where=("sex=male", "age=30.."), share="readmitted:yes=.5,no=.5")
    request = SampleRequest(rows=40, escape_formulas=True, shape=shape)
    tables_drawn = shaping.draw_tables(store, launcher, run.id, request, seeds=(1,))
    for one in tables_drawn:
        rows = pd.read_csv(one.path)
        assert (rows["sex"] == "male").all() and (rows["age"] >= 30).all()
        assert rows["readmitted"].value_counts().to_dict() == {"yes": 20, "no": 20}
        assert one.facts.conditions[-1].fitting <= one.facts.drawn
    assert [one.facts.seed for one in tables_drawn] == [1]
    cannot_be = SampleRequest(rows=40, shape=Shape(where=("bmi=",), fill_missing=True))
    with pytest.raises(RunStoreError, match="a condition asks for missing ones"):
        shaping.draw_tables(store, launcher, run.id, cannot_be)

    for file in store.artefacts(run.id).path("model").iterdir():
        file.unlink()
    before = sorted(Path(path).parent.iterdir())
    with pytest.raises(RunStoreError, match="no file was saved"):
        runs.generate_rows(store, launcher, run.id, SampleRequest(rows=7))
    assert sorted(Path(path).parent.iterdir()) == before
