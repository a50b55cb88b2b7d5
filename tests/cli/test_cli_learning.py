"""synth without a schema: the run learns bounds and lists within its ε."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core.cli.main import main
from core.proposing.propose import infer_schema
from core.services.sample_tables import SAMPLE_TARGET, sample_table

pytestmark = pytest.mark.slow

FEW = ["--settings", "steps=20", "frequencies=100", "batch=64", "hidden=16"]
ROWS = 1500


@pytest.fixture
def table(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "visits.csv"
    sample_table(ROWS).to_csv(path, index=False)
    return path


@pytest.fixture
def command(table: Path, tmp_path: Path) -> list[str]:
    options = ["--model", "pearl", "--epsilon", "4", *FEW, "--json"]
    out = ["--out", str(tmp_path / "out.csv"), "--quiet", "--device", "cpu"]
    return ["synth", str(table), *options, *out]


def last_line(text: str) -> dict:
    return json.loads(text.rstrip().splitlines()[-1])


def ledger_entries(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    capsys.readouterr()
    assert main(["ledger", "--json"]) == 0
    return last_line(capsys.readouterr().out)["entries"]


def test_without_a_declaration_all_is_learned(command, tmp_path, capsys):
    assert main([*command, "--target", SAMPLE_TARGET]) == 0
    spoken = capsys.readouterr().out
    said = last_line(spoken)
    assert said["epsilon"] == pytest.approx(4.0, rel=1e-6) and said["delta"] == 1e-6
    assert {"bounds", "lists"} <= {phase["name"] for phase in said["phases"]}
    assert "age" in said["coverage"]["learned"] and said["coverage"]["dropped"] == []
    assert "domain: learned with noise" in spoken
    told = " ".join(said["conditions"])
    assert "learned with noise in this run" in told and "as proposed" not in told
    made = pd.read_csv(tmp_path / "out.csv")
    assert list(made.columns) == list(sample_table(2).columns)
    paid = [entry for entry in ledger_entries(capsys) if entry["kind"] == "release"]
    assert [entry["epsilon"] for entry in paid] == [pytest.approx(4.0, rel=1e-6)]


def test_single_columns_of_a_declared_table_are_learned(command, table, tmp_path, capsys):
    path = tmp_path / "schema.json"
    path.write_text(infer_schema(pd.read_csv(table)).model_dump_json(), encoding="utf-8")
    assert main([*command, "--schema", str(path), "--learn", "age"]) == 0
    said = last_line(capsys.readouterr().out)
    assert list(said["coverage"]["learned"]) == ["age"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--learn", "none_such", "--declare-public"], "no column is called 'none_such'"),
        (["--learn", "age", "--declare-public", "--sensitive", "age"], "tagged"),
        (["--settings", "nonsense=1"], "nonsense"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_it_is_paid(command, more, words, capsys):
    assert main([*command, *more]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert words in told and told.startswith("error: ")
    assert ledger_entries(capsys) == []


def test_a_plan_says_what_will_be_learned_and_spends_nothing(table, home, capsys):
    assert main(["plan", str(table), "--model", "pearl", "--epsilon", "4", "--json"]) == 0
    spoken = capsys.readouterr().out
    found = last_line(spoken)
    assert found["epsilon"] == pytest.approx(4.0, rel=1e-6) and "age" in found["learned"]
    assert "learns 'ward': a label is listed if about" in spoken and not home.exists()
