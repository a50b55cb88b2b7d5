"""A page that opens while the store does not answer: one line, and no traceback."""

from __future__ import annotations

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.runs.events import State
from core.runs.request import RunRequest
from core.runs.workspace import PROJECT_ROOT
from core.services import imports, planning, runs
from core.services.sample_tables import sample_table
from pages.shared import widgets as shared
from tests.pages.conftest import IdleLauncher, main_module  # noqa: F401
from tests.requests_for import request_for

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path, monkeypatch, bucket):
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shared, "launcher", IdleLauncher)
    st.cache_resource.clear()
    yield runs.open_store()
    st.cache_resource.clear()


def visit(**address: str) -> AppTest:
    """The whole app, as somebody opens it."""
    at = AppTest.from_file(str(PROJECT_ROOT / "pages/server/front.py"), default_timeout=120)
    for name, value in address.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def assert_one_line(**address: str) -> None:
    (error,) = visit(**address).error
    assert "object storage does not answer" in error.value and "127.0.0.1" not in error.value


def test_pages_say_that_the_storage_does_not_answer(store, s3_server):
    table = imports.import_frame(store, sample_table(60), name="t", source="test")
    store.attest(table.id)
    request = RunRequest(model="pearl", epsilon=1.0)
    plan = planning.make_plan(table.schema, table.n, request)
    run = runs.start(store, IdleLauncher(), table.id, plan, request_for(plan))
    store.record(run.id, debit="paid")
    store.set_state(run.id, State.PAUSED, "Paused.")
    with s3_server.away():
        st.cache_resource.clear()
        assert_one_line()
    st.cache_resource.clear()
    assert not visit().error
    with s3_server.away():
        assert not visit().error, "the list of tables needs the database alone"
        assert_one_line(table=table.id)
    assert not visit(table=table.id).error
