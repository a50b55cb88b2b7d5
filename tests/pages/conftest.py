"""A workspace of its own for every page test, and no worker processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.runs.storage.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.services import planning, runs, tables
from core.table.sample import SAMPLE_NAME, SAMPLE_TARGET, sample_table
from pages.parts import shared

Open = Callable[..., AppTest]


class IdleLauncher:
    """Leaves every run in the queue."""

    def submit(self, run_id: str) -> None:
        """Nothing starts."""

    def resume(self, run_id: str) -> None:
        """Nothing starts."""

    def pump(self) -> list[str]:
        """Nothing starts."""
        return []


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """A page under test takes the place of __main__; processes spawned later need the real one."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shared, "launcher", IdleLauncher)
    st.cache_resource.clear()
    yield runs.open_store()
    st.cache_resource.clear()


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    record = tables.import_frame(store, sample_table(400), name=SAMPLE_NAME, source="test")
    record = tables.change_target(store, record, SAMPLE_TARGET)
    store.attest(record.id)
    return record


@pytest.fixture
def start(store: RunStore, table: TableRecord) -> Callable[..., RunRecord]:
    """Make a queued run of the sample table."""

    def make(epsilon: float = 1.0) -> RunRecord:
        plan = planning.make_plan(
            table.schema, table.n, planning.PlanRequest(model="pearl", epsilon=epsilon)
        )
        return runs.start(
            store,
            IdleLauncher(),  # type: ignore[arg-type]
            table_id=table.id,
            plan=plan,
            confirmation="" if plan.budget.private else "not private",
        )

    return make


@pytest.fixture
def show(store: RunStore) -> Open:
    """Render one page, with parameters in its address."""

    def script(name: str) -> None:
        import importlib

        importlib.import_module(f"pages.{name}").render()

    def opened(name: str, **query: str) -> AppTest:
        at = AppTest.from_function(script, args=(name,), default_timeout=30)
        for key, value in query.items():
            at.query_params[key] = value
        return at.run()

    return opened
