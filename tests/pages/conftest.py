"""A workspace of its own for every page test, and no worker processes."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from core.models.shaped_output import ShapeFacts
from core.privacy.plan import Plan
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.records import RunRecord, TableRecord
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.services import imports, planning, runs, shaping, tables
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, sample_table
from pages.server import routes
from pages.shared import widgets as shared

Open = Callable[..., AppTest]


class IdleLauncher:
    """Leaves every run in the queue."""

    restarts = 0

    def submit(self, run_id: str) -> None:
        """Nothing starts."""

    def resume(self, run_id: str) -> None:
        """Nothing starts."""

    def withdraw(self, run_id: str) -> None:
        """There is no other queue."""

    def pump(self) -> list[str]:
        """Nothing starts."""
        return []

    def reachable(self) -> bool:
        """Always."""
        return True


@pytest.fixture(autouse=True, scope="session")
def installed_components() -> Iterator[None]:
    """Streamlit reads every installed package's description for each page under test: once does."""
    scan = functools.cache(manifest_scanner.scan_component_manifests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(autouse=True)
def main_module() -> Iterator[None]:
    """A page under test takes the place of __main__; processes spawned later need the real one."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def home_with_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that holds the sample table, declared and with its target; to be copied."""
    home = tmp_path_factory.mktemp("template") / "home"
    with runs.open_store(home) as store:
        record = imports.import_frame(store, sample_table(400), name=SAMPLE_NAME, source="test")
        tables.declare_all(store, tables.change_target(store, record, SAMPLE_TARGET))
        store.attest(record.id)
    return home


@pytest.fixture(scope="session")
def plans() -> dict[str, Plan]:
    """Plans by what was asked for; each is made once."""
    return {}


@pytest.fixture
def store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[RunStore]:
    """A workspace of the test's own; with the sample table for those that ask for `table`."""
    home = tmp_path / "home"
    if "table" in request.fixturenames:
        shutil.copytree(request.getfixturevalue("home_with_table"), home)
    monkeypatch.setenv("FACSIMILE_HOME", str(home))
    monkeypatch.setattr(shared, "launcher", IdleLauncher)
    st.cache_resource.clear()
    with runs.open_store() as opened:
        yield opened
    st.cache_resource.clear()


@pytest.fixture
def table(store: RunStore) -> TableRecord:
    """The sample table."""
    (record,) = store.tables()
    return record


@pytest.fixture
def start(store: RunStore, table: TableRecord, plans: dict[str, Plan]) -> Callable[..., RunRecord]:
    """Make a queued run of the sample table as it is now; PEARL at ε 1 unless asked otherwise."""

    def make(epsilon: float = 1.0, *, model: str = "pearl", **asked: Any) -> RunRecord:
        present = store.table(table.id)
        request = RunRequest(model=model, epsilon=epsilon, **asked)
        key = f"{request!r} {present.schema!r}"
        if key not in plans:
            plans[key] = planning.make_plan(present.schema, present.training_n, request)
        words = "" if plans[key].budget.private else "not private"
        return runs.start(
            store,
            IdleLauncher(),
            table.id,
            plans[key],
            request.model_copy(update={"without_privacy": words}),
        )

    return make


@pytest.fixture
def show(store: RunStore) -> Open:
    """Render one page, with parameters in its address."""

    def script(name: str) -> None:
        import importlib

        importlib.import_module(f"pages.{name}.page").render()

    def opened(name: str, **query: str) -> AppTest:
        at = AppTest.from_function(script, args=(name,), default_timeout=120)
        for key, value in query.items():
            at.query_params[key] = value
        at.session_state["details"] = True  # what a page shows once it is asked for
        return at.run()

    return opened


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Where the page leads, instead of going there: a page's name and its address."""
    ways: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(routes, "go", lambda name, **query: ways.append((name, query)))
    return ways


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What each download button would send, by file name."""
    sent: dict[str, Any] = {}
    real = st.download_button

    def watched(label: str, *, data: Any, file_name: str, **rest: Any) -> bool:
        sent[file_name] = data
        return real(label, data=data, file_name=file_name, **rest)

    monkeypatch.setattr(st, "download_button", watched)
    return sent


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[Any]]:
    """Rows come at once, with what a function of the request says of them; gives what was asked."""

    def begin(facts: Callable[[SampleRequest], ShapeFacts]) -> list[Any]:
        asked: list[Any] = []

        def drawn(
            _store: RunStore, _launcher: Any, run_id: str, request: SampleRequest, *, seeds: Any
        ) -> tuple[shaping.DrawnTable]:
            asked.append((run_id, request, seeds))
            path = tmp_path / "fresh.csv"
            path.write_bytes(b"age\n1\n")
            return (shaping.DrawnTable(path, facts(request)),)

        monkeypatch.setattr(shaping, "draw_tables", drawn)
        return asked

    return begin
