"""The benchmark of graphics cards says plainly when there is none, and runs in a rehearsal."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import gpu

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a graphics card here")


def test_without_a_card_it_measures_nothing_and_says_so() -> None:
    said: list[str] = []
    assert gpu.main(["--json"], say=said.append) == 0
    assert said[0] == gpu.NONE and json.loads(said[1])["card"] is None
    assert "phases" not in json.loads(said[1])


def test_a_rehearsal_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(gpu.SHORT, "p3gm", {"steps": 10, "em_steps": 2})
    options = ["--rehearse", "--rows", "600", "--rounds", "0", "--models", "p3gm", "--json"]
    assert gpu.main(options, say=said.append) == 0
    assert said[0].startswith("A rehearsal")
    result = json.loads(said[1])
    assert result["rehearsal"] and {cell["phase"] for cell in result["phases"]} > {"em"}
    assert all(cell["ratio"] > 0 for cell in result["phases"])
