"""Another number of rows than was reviewed: drawn on request, with the papers of the table."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from core.models.shaped_output import ShapeFacts
from core.runs.errors import RunStoreError
from core.runs.execution.launching.launcher import SampleRequest
from core.services import shaping
from tests.pages.screen import finish, press, whole, words

pytestmark = pytest.mark.slow


def test_fresh_rows_are_made_on_request(store, start, show, downloads, drawing):
    run = start()
    finish(store, run)
    asked = drawing(lambda request: ShapeFacts(rows=17, seed=None, drawn=17))
    at = show("download", run=run.id)
    at = whole(at.number_input[0].set_value(17).run())
    assert not asked and "exactly the rows" not in words(at)
    downloads.clear()
    whole(press(at, "Generate 17 rows"))
    request = SampleRequest(rows=17, format="csv", escape_formulas=True)
    assert asked == [(run.id, request, ())]
    with zipfile.ZipFile(io.BytesIO(downloads["clinic-visits-synthetic-epsilon-1.zip"]())) as files:
        assert files.read("clinic-visits-synthetic-epsilon-1.csv") == b"age\n1\n"
        assert json.loads(files.read("synthetic.json"))["run"] == run.id


def test_fresh_rows_that_fail_are_a_plain_error(store, start, show, monkeypatch):
    run = start()
    finish(store, run)

    def failed(*_, **__):
        raise RunStoreError("The rows could not be generated; no file is left.")

    monkeypatch.setattr(shaping, "draw_tables", failed)
    at = show("download", run=run.id)
    at.number_input[0].set_value(17).run()
    at = whole(press(at, "Generate 17 rows"))
    assert "no file is left" in at.error[0].value
