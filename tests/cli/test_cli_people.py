"""From a file of several rows a person to a synthetic table that protects people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.cli.main import main

pytestmark = pytest.mark.slow

PEOPLE, ROWS = 200, 600
FEW = {
    "pearl": ["steps=10", "frequencies=100", "batch=32", "hidden=8", "latent=4"],
    "dp_gan": ["steps=3", "critic_steps=1", "batch=32", "fakes=16", "hidden=8", "latent=4",
               "critic_hidden=8"],
}  # fmt: skip


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    who = np.concatenate([np.arange(PEOPLE), rng.integers(0, PEOPLE, ROWS - PEOPLE)])
    frame = pd.DataFrame(
        {
            "patient": who + 1000,
            "sex": np.where(who % 2, "f", "m"),
            "age": 20 + who % 60,
            "cost": rng.integers(0, 400, ROWS),
        }
    )
    path = tmp_path / "visits.csv"
    frame.sample(frac=1.0, random_state=1).to_csv(path, index=False)
    return path


def done(capsys: pytest.CaptureFixture[str], *command: object) -> dict[str, Any]:
    assert main([*map(str, command), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


@pytest.mark.parametrize("model", FEW)
def test_people_are_counted_and_protected(
    model: str, visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    made = done(
        capsys, "synth", visits, "--model", model, "--epsilon", "2", "--declare-public",
        "--person", "patient", "--rows-per-person", "3", "--rows", "321", "--quiet",
        "--device", "cpu", "--score", "0.1", "--out", out, "--settings", *FEW[model],
    )  # fmt: skip
    assert made["unit"] == "per person, at most 3 rows" and made["rows"] == 321
    assert len(pd.read_csv(out)) == 321
    number, unit = made["conditions"][:2]
    assert number == f"The number of people, {PEOPLE}, is public."
    assert "rows that agree in patient" in unit and "more than 3" in unit
    assert made["epsilon"] <= 2.0 and made["score"] is not None
    assert "patient: identifier" in made["conditions"][2]


def test_what_does_not_differ_within_a_person_is_suggested(
    visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for a typing error in one person's rows."""
    frame = pd.read_csv(visits)
    frame.loc[frame["patient"].duplicated().idxmax(), "age"] = 99
    frame.to_csv(visits, index=False)
    ask = ["plan", str(visits), "--model", "pearl", "--epsilon", "2", "--person", "patient"]
    assert main(ask) == 0
    said = capsys.readouterr().err
    assert "suggestion: --constant sex,age (do not differ within a person)" in said
    assert main([*ask, "--constant", "sex"]) == 0
    assert "suggestion" not in capsys.readouterr().err


def test_without_a_key_a_persons_rows_are_paid_for(
    visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ["plan", visits, "--model", "pearl", "--epsilon", "2", "--declare-public"]
    alone, group = done(capsys, *ask), done(capsys, *ask, "--rows-per-person", "3")
    keyed = done(capsys, *ask, "--person", "patient", "--keep-out", "0.2")
    noise = [plan["phases"][0]["noise_multiplier"] for plan in (alone, group, keyed)]
    assert noise[1] == pytest.approx(3 * noise[0]) and noise[2] == pytest.approx(noise[0])
    assert [plan["rows"] for plan in (alone, group)] == [ROWS, ROWS]
    assert 0.7 * PEOPLE < keyed["rows"] < 0.9 * PEOPLE
    assert [plan["unit"] for plan in (alone, group, keyed)] == [
        None, "per person, at most 3 rows", "per person, at most 10 rows",
    ]  # fmt: skip
    out = tmp_path / "out.csv"
    made = done(
        capsys, "synth", visits, "--model", "pearl", "--epsilon", "2", "--declare-public",
        "--rows-per-person", "3", "--quiet", "--out", out, "--settings", *FEW["pearl"],
    )  # fmt: skip
    assert made["rows"] == ROWS and "nobody has more" in made["conditions"][1]
    assert made["epsilon"] == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--person", "nobody"], "no column is called 'nobody'"),
        (["--person", ","], "needs the name of a column"),
        (["--rows-per-person", "0"], "must lie in 1 to 1000"),
        (["--person", "patient,patient"], "two roles"),
    ],
)
def test_what_cannot_be_said_of_people_is_one_line(
    asked: list[str], words: str, visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(visits), "--model", "pearl", "--epsilon", "1", *asked]) == 2
    assert words in capsys.readouterr().err


def test_a_schema_may_say_who(
    visits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schema.json"
    done(capsys, "schema", visits, "--out", path)
    schema = json.loads(path.read_text())
    schema["columns"][0]["source"] = "drop"  # who somebody is need not come back
    schema["person"] = {"columns": ["patient"], "rows": 2}
    path.write_text(json.dumps(schema))
    ask = ["plan", visits, "--model", "pearl", "--epsilon", "1", "--schema", path]
    assert done(capsys, *ask)["unit"] == "per person, at most 2 rows"
    assert done(capsys, *ask, "--rows-per-person", "4")["unit"] == "per person, at most 4 rows"
    assert done(capsys, *ask)["rows"] == PEOPLE
    made = done(
        capsys, "synth", *ask[1:], "--out", tmp_path / "out.csv", "--quiet",
        "--settings", *FEW["pearl"],
    )  # fmt: skip
    assert made["rows"] == PEOPLE and made["columns"] == 3
