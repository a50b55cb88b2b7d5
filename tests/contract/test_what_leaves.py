"""Two tables that differ in one record: everything that leaves is byte for byte the same.

What the door to rows releases is held fixed (see `leaving`), so a difference is a leak past it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from core.models.registry import load_fitted
from core.proposing.propose import infer_schema
from core.schema import schema as schemas
from tests.contract.fits import IDS, QUICK
from tests.contract.leaving import EVERYTHING, NEIGHBOURS, SPELLED, leaving, neighbour, people
from tests.mutants.broken_domain import NotedDomain, noted_domain

pytestmark = pytest.mark.slow

Leave = Callable[[str, pd.DataFrame], dict[str, bytes]]


@pytest.fixture
def leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Leave:
    homes = iter(range(9))

    def run(model: str, rows: pd.DataFrame) -> dict[str, bytes]:
        with monkeypatch.context() as patch:
            home = tmp_path / str(next(homes))
            return leaving(model, rows, dict(QUICK[model]), home, patch, capfd)

    return run


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Names of what differs."""
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


@pytest.fixture(scope="module", params=IDS)
def model(request: pytest.FixtureRequest) -> str:
    """Tests of one model run one after the other, so that one process has what left at hand."""
    return str(request.param)


@pytest.fixture(scope="session")
def base() -> dict[str, dict[str, bytes]]:
    """What left from the unchanged table, by model."""
    return {}


def test_neighbours_have_different_insides() -> None:
    """Else the tests below would prove nothing: notes and proposals do depend on one record."""
    notes = [{c.note for c in infer_schema(f).columns} for f in (people(), neighbour(EVERYTHING))]
    assert notes[0] != notes[1] and any("240 of 240" in note for note in notes[1])
    assert infer_schema(people()) != infer_schema(neighbour(NEIGHBOURS["an extreme"]))


def test_one_record_shows_in_nothing_that_leaves(
    model: str, leave: Leave, base: dict[str, dict[str, bytes]]
) -> None:
    base[model] = leave(model, people())
    assert differing(base[model], leave(model, neighbour(EVERYTHING))) == []
    for name, content in base[model].items():
        assert b"distinct" not in content and b"proposal" not in content, name


@pytest.mark.parametrize("change", {**NEIGHBOURS, **SPELLED}.values(), ids=[*NEIGHBOURS, *SPELLED])
def test_no_kind_of_single_record_shows(
    change: dict[str, object], leave: Leave, base: dict[str, dict[str, bytes]]
) -> None:
    first = base.get("pearl") or leave("pearl", people())
    base["pearl"] = first
    assert differing(first, leave("pearl", neighbour(change))) == []


def either(name: str) -> Callable[[Any], schemas.Domain]:
    """Reads the mutant's domain, or that of what models see, which is made of it."""
    noted, plain = getattr(NotedDomain, name), getattr(schemas.Domain, name)

    def read(found: Any) -> schemas.Domain:
        try:
            return noted(found)
        except ValidationError:
            return plain(found)

    return read


def test_a_note_in_the_domain_is_caught(leave: Leave, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a domain of schema columns, which a saved model then opens again."""
    monkeypatch.setattr(schemas.Schema, "domain", noted_domain)
    for name in ("model_validate", "model_validate_json"):
        monkeypatch.setattr(schemas.Domain, name, either(name))
    first, second = leave("pearl", people()), leave("pearl", neighbour(NEIGHBOURS["all distinct"]))
    assert "model/transforms.json" in differing(first, second)  # has the table's own domain


def test_every_file_of_a_model_zip_is_there_and_it_samples(
    model: str, leave: Leave, base: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    found = base.get(model) or leave(model, people())
    files = {name: content for name, content in found.items() if name.startswith("model/")}
    assert len(files) >= 2 and all(files.values())
    assert (model != "pgb") or {"model/base/model.json", "model/base/weights.safetensors"} <= set(
        files
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    zipfile.ZipFile(buffer).extractall(tmp_path / "unpacked")
    rows = load_fitted(model, tmp_path / "unpacked" / "model").sample(30, seed=1)
    assert list(rows.columns) == list(people().columns) and len(rows) == 30
