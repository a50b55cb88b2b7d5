"""--buy: bounds and lists bought with a part of the budget, once for the same people."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core.cli.main import main
from core.proposing.propose import infer_schema
from core.schema.column import DomainSource
from core.schema.schema import Schema
from core.services.sample_tables import SAMPLE_TARGET, sample_table

pytestmark = pytest.mark.slow

FEW = ["--settings", "steps=20", "frequencies=100", "batch=64", "hidden=16"]
ROWS = 600


@pytest.fixture
def table(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "visits.csv"
    sample_table(ROWS).to_csv(path, index=False)
    return path


@pytest.fixture
def command(table: Path, tmp_path: Path) -> list[str]:
    options = ["--model", "pearl", "--epsilon", "8", "--buy-share", "0.5", *FEW, "--json"]
    out = ["--out", str(tmp_path / "out.csv"), "--quiet", "--device", "cpu"]
    return ["synth", str(table), *options, *out]


def last_line(text: str) -> dict:
    return json.loads(text.rstrip().splitlines()[-1])


def test_bought_once_and_used_again(command, tmp_path, capsys):
    assert main([*command, "--buy", "all", "--target", SAMPLE_TARGET]) == 0
    spoken = capsys.readouterr()
    first = last_line(spoken.out)
    assert first["epsilon"] == pytest.approx(8.0, rel=1e-6) and first["delta"] == 1e-6
    (purchase,) = first["purchases"]
    assert purchase["epsilon_zero_out"] == pytest.approx(4.0, rel=1e-6)
    assert purchase["delta"] == 0.25e-6 and "age" in purchase["columns"]
    assert "of it ε 4 bought bounds" in spoken.out and "bought: 'age'" in spoken.err
    told = " ".join(first["conditions"])
    assert f"bought in ledger entry {purchase['ledger_entry']}, which cost ε 4" in told
    assert "ε 4 of this run and ε 4 of bounds" in told
    assert "as proposed" not in told and "The kind of each column" in told
    made = pd.read_csv(tmp_path / "out.csv")
    assert list(made.columns) == list(sample_table(2).columns)

    assert main([*command, "--buy", "all"]) == 0
    spoken = capsys.readouterr()
    again = last_line(spoken.out)
    assert again["purchases"] == first["purchases"]  # and the run gets all of its ε
    assert again["epsilon"] == pytest.approx(12.0, rel=1e-6)
    assert "cost nothing more" in spoken.err

    options = ["--model", "pearl", "--epsilon", "1", "--buy", "all"]
    assert main(["plan", command[1], *options]) == 0
    assert "together with what was bought before: ε 5, by adding up" in capsys.readouterr().out

    assert main(["ledger"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "bought bounds" in line]
    assert len(lines) == 1 and "ε 4, δ 2.5e-07" in lines[0]


def test_what_nobody_bought_is_refused_with_the_ways_out(command, table, tmp_path, capsys):
    proposed = infer_schema(pd.read_csv(table))
    age = proposed["age"].model_copy(update={"source": DomainSource.BOUGHT})
    path = tmp_path / "schema.json"
    path.write_text(proposed.replace(age).model_dump_json(), encoding="utf-8")
    assert main([*command, "--schema", str(path)]) == 2
    told = capsys.readouterr().err
    assert "Nobody has bought" in told and "age" in told and "--buy" in told
    assert main([*command, "--schema", str(path), "--buy", "age"]) == 0
    (purchase,) = last_line(capsys.readouterr().out)["purchases"]
    assert purchase["columns"] == ["age"]
    assert Schema.model_validate_json(path.read_text()) == proposed.replace(age)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "--buy all"),
        (["--buy", "age"], "--declare-public"),
        (["--buy", "none_such", "--declare-public"], "no column is called 'none_such'"),
        (["--buy", "all", "--buy-share", "0.001"], "Nothing was spent"),
        (["--buy", "all", "--epsilon", "inf"], "finite"),
        (["--buy", "all", "--settings", "nonsense=1"], "nonsense"),
        (["--buy", "age", "--declare-public", "--sensitive", "age"], "tagged"),
    ],
)
def test_an_impossible_purchase_is_refused_before_it_is_paid(command, more, words, capsys):
    assert main([*command, *more]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert words in told and told.startswith("error: ")
    assert main(["ledger", "--json"]) == 0
    assert last_line(capsys.readouterr().out)["entries"] == []


def test_nothing_is_bought_for_a_run_that_cannot_be_paid_for(command, capsys):
    buying = [*command, "--buy", "all", "--target", SAMPLE_TARGET]
    assert main([*buying, "--epsilon", "18"]) == 2  # ε 9 for each: one of them is within the limit
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("error: This run needs ε 9.00") and "Nothing was spent" in told
    assert "would be bought first" in told
    assert ledger_entries(capsys) == []
    assert main(buying) == 0
    assert [entry["kind"] for entry in ledger_entries(capsys)] == ["account", "release", "release"]


def ledger_entries(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    capsys.readouterr()
    assert main(["ledger", "--json"]) == 0
    return last_line(capsys.readouterr().out)["entries"]


def test_a_plan_prices_a_purchase_and_spends_nothing(table, home, capsys):
    options = ["--model", "pearl", "--epsilon", "8", "--buy", "all", "--buy-share", "0.5", "--json"]
    assert main(["plan", str(table), *options]) == 0
    spoken = capsys.readouterr().out
    found = last_line(spoken)
    assert (
        found["epsilon"] == pytest.approx(4.0, rel=1e-6)
        and "together with the purchase: ε 8" in spoken
    )
    assert found["purchase"]["epsilon"] == 4.0 and "age" in found["purchase"]["names"]
    assert "a label is listed if about" in spoken and not home.exists()
