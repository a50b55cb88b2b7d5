"""Evidence on Download: questions to people, and packs for inside and outside."""

from __future__ import annotations

import io
import json
import math
import zipfile
from datetime import date

import pytest

from core.runs.errors import RunStoreError
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import SOMEBODY, viewed_runs
from core.services.evidence.documents import documents
from tests.pages.screen import finish, press, small_report, whole
from tests.pages.test_review_flow import outside_report

pytestmark = pytest.mark.slow


def test_what_only_people_know_is_kept_with_the_run(store, start, show):
    run = start()
    finish(store, run)
    at = whole(show("download", run=run.id))
    assert "For the file: 5 of 5 answers are missing" in [e.label for e in at.expander]
    field = {one.label: one for one in at.text_input}
    field["Purpose of the release"].set_value("Teaching")
    at.date_input[0].set_value(date(2027, 1, 31))
    at = whole(press(at, "Keep these answers"))
    assert "For the file: 3 of 5 answers are missing" in [e.label for e in at.expander]
    kept = notes.release_terms(store, run.id)
    assert (kept["purpose"], kept["review_date"], kept["recipient"]) == (
        "Teaching", "2027-01-31", "",
    )  # fmt: skip
    assert kept["author"] == SOMEBODY


def test_attacks_are_in_the_pack_for_inside_alone(store, start, show, downloads):
    run = start()
    attack = {
        "key": "copies", "title": "Copies of rows", "meaning": "m", "unit": "share", "value": 0.5,
        "baseline": 0.5, "lead_needed": 0.04, "p": 0.6, "exposed": False, "records": 1234,
        "strangers": 50,
    }  # fmt: skip
    finish(store, run, report=small_report() | {"attacks": [attack]}, outside=outside_report())
    claim = {"claim": "ε = 1", "table": "t", "date": "2026-11-26", "product": "p"}
    folder = store.artefacts(run.id).path("certificate.json")
    folder.write_text(json.dumps(claim | {"epsilon_zero_out": 1, "delta": 1e-6, "plan_digest": ""}))
    whole(show("download", run=run.id))
    stem = "clinic-visits-synthetic-epsilon-1.evidence-"
    for view in ("outside", "inside"):
        with zipfile.ZipFile(io.BytesIO(downloads[f"{stem}{view}.zip"]())) as archive:
            every = "".join(
                archive.read(name).decode(errors="replace") for name in archive.namelist()
            )
            assert ("inside/attacks.json" in archive.namelist()) == (view == "inside")
            assert ("1,234 rows of the table" in every) == (view == "inside")


def test_a_pack_for_inside_is_a_look_and_one_for_outside_is_none(store, start, show, downloads):
    run = start()
    finish(store, run, report=small_report(), outside=outside_report())
    claim = {"claim": "ε = 1", "table": "t", "date": "2026-11-26", "product": "p"}
    store.artefacts(run.id).path("certificate.json").write_text(json.dumps(claim))
    whole(show("download", run=run.id))
    stem = "clinic-visits-synthetic-epsilon-1.evidence-"
    assert downloads[f"{stem}outside.zip"]() and not viewed_runs(store, run.account_id)
    assert downloads[f"{stem}inside.zip"]() and viewed_runs(store, run.account_id) == {run.id}


def test_a_run_without_privacy_has_no_evidence(store, start, show, downloads):
    run = start(math.inf)
    finish(store, run)
    whole(show("download", run=run.id))
    assert downloads and not [name for name in downloads if "evidence" in name]
    with pytest.raises(RunStoreError, match="no differential privacy"):
        documents(store, run, "inside")
