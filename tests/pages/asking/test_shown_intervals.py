"""Intervals beside what is shown and taken along."""

from __future__ import annotations

import json

import pytest

from core.services import export

pytestmark = pytest.mark.slow


def test_the_dictionary_says_how_far_shares_may_be_off(store, replicated):
    about = {"columns": {"readmitted": {"figures": [["yes", 0.182, 0.011, "share"]]}}}
    assert "±" not in export.dictionary_text(store, replicated)
    with store.artefacts(replicated.id).replacing("intervals.json") as file:
        file.write(json.dumps(about).encode())
    assert "yes 18.2% ± 1.1%" in export.dictionary_text(store, replicated)
