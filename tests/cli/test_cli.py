"""The command line, with the real model on a few rows and few steps."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from core.cli.main import main
from core.runs.workspace import PROJECT_ROOT
from core.services.sample_tables import SAMPLE_TARGET, sample_table

pytestmark = pytest.mark.slow

FEW = ["--settings", "steps=40", "frequencies=200", "batch=64", "hidden=16"]
ROWS = 400


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    sample_table(ROWS).to_csv(path, index=False)
    return path


def last_line(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text.rstrip().splitlines()[-1])
    return found


def test_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    found = last_line(capsys.readouterr().out)
    assert "pearl" in [card["id"] for card in found["models"]]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("home")
def test_a_plan_states_what_it_spends_and_spends_nothing(
    table: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(table), "--model", "pearl", "--epsilon", "2", "--json"]) == 0
    found = last_line(capsys.readouterr().out)
    assert found["epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert found["rows"] == ROWS and found["delta"] == 1e-6
    assert "learned with noise" in str(found["domain"])
    assert not home.exists()


def test_synth_from_file_to_file(
    table: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    command = ["synth", str(table), "--model", "pearl", "--epsilon", "1", "--json", "--seed", "1"]
    command += ["--declare-public"]
    command += ["--target", SAMPLE_TARGET, "--rows", "50", "--device", "cpu", *FEW]
    assert main([*command, "--out", str(out)]) == 0
    spoken = capsys.readouterr()
    found = last_line(spoken.out)
    assert found["epsilon"] == pytest.approx(1.0, rel=1e-3)
    assert found["epsilon"] < found["epsilon_replace"]  # type: ignore[operator]
    assert (found["rows"], found["columns"], found["device"]) == (50, 12, "cpu")
    assert re.match(r"recorded; \d\.\d\d% of the limit of ε 10 is used\. ", str(found["ledger"]))
    assert found["phases"][0]["count"] == 1 and found["lmdp"] is None  # type: ignore[index]
    assert {"read", "sample", "total"} <= found["seconds"].keys()  # type: ignore[attr-defined]
    assert found["peak_memory_mb"] > 50  # type: ignore[operator]
    assert "Reading" in spoken.err

    made = pd.read_csv(out)
    assert list(made.columns) == list(sample_table(2).columns) and len(made) == 50
    assert [p.name for p in home.iterdir() if p.name.startswith("synth-")] == []

    assert main(["ledger", "--json"]) == 0
    entries = last_line(capsys.readouterr().out)["entries"]
    assert [e["kind"] for e in entries] == ["account", "release"]  # type: ignore[attr-defined]
    assert main(["ledger", "verify"]) == 0


def test_tagged_columns_are_certified_and_said_so(
    table: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    command = ["synth", str(table), "--model", "pearl", "--epsilon", "2", "--json", "--quiet"]
    command += ["--declare-public"]
    command += ["--sensitive", "age,ward", "--sensitive", "sex", "--certificate", "0.5", *FEW]
    assert main([*command, "--out", str(out)]) == 0
    spoken = capsys.readouterr().out
    lmdp = last_line(spoken)["lmdp"]
    assert lmdp["groups"] == {"group 1": ["age", "ward"], "group 2": ["sex"]}  # type: ignore[index]
    assert len(lmdp["verdicts"]) == 2  # type: ignore[index]
    assert spoken.count("α-LMDP granted") + spoken.count("α-LMDP REFUSED") == 2
    assert last_line(spoken)["epsilon"] == pytest.approx(2.0, rel=0.02)
    assert (home / "shift.key").exists()


def test_without_privacy_needs_a_flag_and_marks_the_file(
    table: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["synth", str(table), "--model", "pearl", "--epsilon", "inf", "--quiet", "--json"]
    command += [*FEW, "--out", str(tmp_path / "o.parquet")]
    assert main(command) == 2
    assert "--without-privacy" in capsys.readouterr().err
    assert not home.exists() and sorted(p.name for p in tmp_path.iterdir()) == [table.name]
    assert main([*command, "--without-privacy"]) == 0
    spoken = capsys.readouterr()
    found = last_line(spoken.out)
    assert float(str(found["epsilon"])) == float("inf") and found["private"] is False
    assert "no differential privacy" in spoken.out and spoken.err == ""
    assert len(pd.read_parquet(tmp_path / "o.parquet")) == ROWS
    mark = json.loads((tmp_path / "o.parquet.not-private.json").read_text())
    assert mark["private"] is False and mark["claim"] == "no differential privacy"


# Words after `synth visits.csv --model pearl`, and part of the one line that they lead to.
SYNTH_ERRORS = {
    "ε of zero": ("--declare-public --epsilon 0 --out o.csv", "above 0"),
    "ε not a number": ("--epsilon nan --out o.csv", "above"),
    "ε not a word": ("--epsilon x --out o.csv", "invalid"),
    "δ of one": ("--declare-public --epsilon 1 --delta 1 --out o.csv", "between 0 and 1"),
    "δ too large": ("--declare-public --epsilon 1 --delta .1 --out o.csv", "δ"),
    "α-LMDP": (
        "--declare-public --epsilon 1 --alpha .05 --out o.csv",
        "--alpha, --shift and --certificate need tagged columns",
    ),
    "sensitive": (
        "--declare-public --epsilon 1 --sensitive nothing --out o.csv",
        "no column is called 'nothing' (--sensitive)",
    ),
    "tagged twice": (
        "--declare-public --epsilon 1 --sensitive sex,sex --out o.csv",
        "tagged twice as sensitive: sex",
    ),
    "attempts without a certificate": (
        "--epsilon 1 --sensitive sex --attempts 2 --out o.csv --declare-public",
        "would reveal what the check saw",
    ),
    "no rows": ("--declare-public --epsilon 1 --rows 0 --out o.csv", "least 1"),
    "out ending": ("--declare-public --epsilon 1 --out o.doc", "must end in"),
    "out folder": ("--declare-public --epsilon 1 --out n/o.csv", "no folder"),
    "out is table": ("--declare-public --epsilon 1 --out visits.csv", "replace"),
    "no target": ("--declare-public --epsilon 1 --target q --out o.csv", "no column is called 'q'"),
    "bad setting": ("--declare-public --epsilon 1 --settings steps --out o.csv", "NAME=NUMBER"),
    "unknown setting": (
        "--declare-public --epsilon 1 --settings q=1 --out o.csv",
        "no setting called 'q'",
    ),
    "schema not JSON": ("--declare-public --epsilon 1 --schema T --out o.csv", "is not valid"),
}
ERRORS = {
    "schema ending": ("schema T --out s.csv", "must end in .json"),
    "no command": ("", "required: COMMAND"),
    "unknown command": ("fly", "invalid choice"),
    "missing arguments": ("synth", "are required"),
    "no file": ("synth NOWHERE.csv --model pearl --declare-public --epsilon 1 --out o.csv", "no"),
    "no model": (
        "synth T --model x --declare-public --epsilon 1 --out o.csv",
        "no model is called",
    ),
    "review out": ("review T T --out r.pdf", "must end in"),
} | {name: (f"synth T --model pearl {words}", part) for name, (words, part) in SYNTH_ERRORS.items()}


@pytest.mark.parametrize(("arguments", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_is_one_line_and_leaves_nothing(
    arguments: str,
    words: str,
    table: Path,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
    status = main([table.name if word == "T" else word for word in arguments.split()])
    spoken = capsys.readouterr()
    assert (status, spoken.out) == (2, "")
    (line,) = spoken.err.splitlines()
    assert line.startswith("error: ") and words in line and "unexpected" not in line
    assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before


def test_a_schema_from_a_file_is_used_and_named(
    table: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.reading.files import read_table

    schema = tmp_path / "mine.json"
    schema.write_text(read_table(table).schema.model_dump_json())
    command = ["plan", str(table), "--model", "pearl", "--epsilon", "1", "--schema", str(schema)]
    assert main([*command, "--json"]) == 0
    domain = str(last_line(capsys.readouterr().out)["domain"])
    assert "mine.json" in domain and "inferred" not in domain


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """600 rows of a town that most share and a first name that few do."""
    rows = pd.DataFrame(
        {
            "town": ["Paris"] * 590 + [f"village {i}" for i in range(10)],
            "scale": ["18-24"] * 300 + ["25-64"] * 299 + ["65+"],
            "age": [20, 30, 40] * 200,
        }
    )
    rows.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_dangers_are_named_before_anything_runs(
    names: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["synth", str(names), "--model", "pearl", "--epsilon", "1", "--declare-public", *FEW]
    out = tmp_path / "o.csv"
    assert main([*command, "--rows", "200", "--json", "--quiet", "--out", str(out)]) == 0
    spoken = capsys.readouterr()
    assert "danger: `scale`" in spoken.err
    assert "'town': 10 cells do not fit" in spoken.err  # those that OTHER stands for
    conditions = " ".join(last_line(spoken.out)["conditions"])  # type: ignore[arg-type]
    assert "inferred from the table and declared public" in conditions
    assert "one of 2: Paris, OTHER (OTHER stands for all others)" in conditions
    assert conditions.count("(as proposed from the rows)") == 3
    assert "one row" not in conditions and "village" not in conditions + out.read_text()


def test_a_schema_file_says_who_set_what(
    names: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from core.schema.column import Provenance
    from core.services.synthesis.table_files import read_schema

    file = tmp_path / "s.json"
    assert main(["schema", str(names), "--target", "town", "--out", str(file)]) == 0
    spoken = capsys.readouterr()
    assert "Keep it inside" in spoken.out and "danger: `scale`" in spoken.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    untouched = read_schema(file)
    assert untouched.target == "town"
    assert {c.provenance for c in untouched.columns} == {Provenance.PROPOSED}
    content = json.loads(file.read_text())
    content["columns"][2] |= {"low": 18, "high": 65, "kind": "integer", "step": 1}
    content["columns"][2]["categories"] = None
    file.write_text(json.dumps(content))
    command = ["plan", str(names), "--model", "pearl", "--epsilon", "1", "--schema", str(file)]
    assert main(command) == 0
    edited = read_schema(file)
    assert [c.provenance.value for c in edited.columns] == ["proposed", "proposed", "steward"]
    assert main(["schema", str(names), "--target", "q", "--out", str(tmp_path / "n.json")]) == 2
    assert not (tmp_path / "n.json").exists()


def test_an_unexpected_problem_names_no_value(
    table: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("secret 42")

    monkeypatch.setattr("core.services.synthesis.table_files.typed_rows", broken)
    command = ["plan", str(table), "--model", "pearl", "--epsilon", "1"]
    assert main(command) == 2
    assert "secret" not in capsys.readouterr().err
    assert main([*command, "--traceback"]) == 2
    assert "secret 42" in capsys.readouterr().err


def test_as_a_program_in_another_folder(table: Path, tmp_path: Path) -> None:
    environment = os.environ | {"FACSIMILE_HOME": str(tmp_path / "home")}
    environment["PYTHONPATH"] = str(PROJECT_ROOT)
    ended = subprocess.run(
        [sys.executable, "-m", "core.cli", "ledger", "verify", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert last_line(ended.stdout)["sound"] is True
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_review_writes_one_file_that_needs_no_network(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, synthetic = tmp_path / "real.csv", tmp_path / "synthetic.csv"
    frame = sample_table(300)[["age", "sex", SAMPLE_TARGET]]
    frame[:200].to_csv(real, index=False)
    frame[100:].to_csv(synthetic, index=False)
    out = tmp_path / "r.html"
    command = ["review", str(real), str(synthetic), "--target", SAMPLE_TARGET, "--out", str(out)]
    assert main([*command, "--json"]) == 0
    found = last_line(capsys.readouterr().out)
    assert found["report"]["complete"] is True  # type: ignore[index]
    text = out.read_text(encoding="utf-8")
    assert "INSIDE ONLY" in text and "<h3>age</h3>" in text
    assert "<script src=" not in text and "Plotly.newPlot" in text
    assert len(text) < 5_000_000
    assert main([*command, "--view", "outside"]) == 2
    assert "--declare-public" in capsys.readouterr().err  # its bins would be the real extremes
    assert main([*command, "--view", "outside", "--declare-public", "--json"]) == 0
    found = last_line(capsys.readouterr().out)["report"]
    assert found["view"] == "outside" and found["columns"]["age"]["real"] == []  # type: ignore[index]
    assert "MAY BE SHOWN OUTSIDE" in out.read_text(encoding="utf-8")
    grouped = ["--keep-out", "0.2", "--group", "sex", "--columns-at-a-time", "1"]
    assert main([*command, *grouped, "--json"]) == 0
    spoken = capsys.readouterr().out
    found = last_line(spoken)["report"]
    assert found["rows_real"] == 160 and found["attacks"]  # type: ignore[index]
    first = found["yardsticks"][0]  # type: ignore[index]
    assert first["group"] == "sex" and "Columns at a time: 1. Rows are grouped by sex." in spoken
    assert "Groups of sex: Beyond chance, “" in spoken
    two = ["--group", SAMPLE_TARGET, "--group", "sex"]
    assert main([*command, *two, "--json"]) == 0
    found = last_line(capsys.readouterr().out)["report"]["groupings"]  # type: ignore[index]
    assert found[0]["columns"] == [SAMPLE_TARGET, "sex"]
    assert main([*command, *two, "--group", "age"]) == 2
    assert "at most two columns" in capsys.readouterr().err
    assert main([*command, "--group", "nobody"]) == 2
    assert "--group nobody is no column" in capsys.readouterr().err
    assert main([*command, "--keep-out", "0.7"]) == 2
    assert "--keep-out must lie in 0 to 0.5" in capsys.readouterr().err
    kept = ["--keep-out", "0.25", "--model", "pearl", "--epsilon", "1"]
    assert main(["plan", str(real), *kept, "--json"]) == 0
    assert last_line(capsys.readouterr().out)["rows"] == 150


def test_formulas_are_made_inert_on_request(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"=a": ["=1+1", "plain"] * 100, "n": [-1, -2] * 100})
    frame.to_csv(tmp_path / "in.csv", index=False)
    command = ["synth", str(tmp_path / "in.csv"), "--model", "pearl", "--epsilon", "5"]
    command += ["--declare-public", "--rows", "40", "--escape-formulas", "--json", *FEW]
    assert main([*command, "--out", str(tmp_path / "out.parquet")]) == 2
    assert "--escape-formulas is for a .csv file" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out.csv")]) == 0
    assert last_line(capsys.readouterr().out)["formulas_escaped"] is True
    text = (tmp_path / "out.csv").read_text()
    assert text.startswith("'=a,n\n") and "\n=" not in text and "'-" not in text


@pytest.mark.usefixtures("home")
def test_rules_are_read_suggested_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "money.csv", tmp_path / "out.csv"
    count = pd.Series(range(240))
    frame = pd.DataFrame({"code": ["a", "a", "b", "c"] * 60, "net": count % 97, "tax": count % 53})
    frame["label"] = frame["code"].str.upper()
    frame.loc[0, "label"] = "C"
    frame["total"] = frame["net"] + frame["tax"]
    frame.to_csv(table, index=False)
    assert main(["schema", str(table), "--out", str(tmp_path / "s.json")]) == 0
    spoken = capsys.readouterr().err
    assert "--rule 'label <- code'" not in spoken  # one row breaks it
    assert "--rule 'total = net + tax' (holds in the rows)" in spoken
    command = ["synth", str(table), "--model", "pearl", "--epsilon", "1", "--out", str(out), *FEW]
    command += ["--rule", "label <- code", "--rule", "total = net + tax"]
    assert main([*command, "--declare-public"]) == 0
    spoken = capsys.readouterr().err
    assert "read from the rows and declared" in spoken and "1 of 240 is moved inside" in spoken
    made = pd.read_csv(out)
    assert (made["total"] == made["net"] + made["tax"]).all()
    assert (made["label"] == made["code"].str.upper()).all()
    declared = [*command, "--schema", str(tmp_path / "s.json"), "--declare-public"]
    assert main([*declared, "--rule", "if code = a then net < 50"]) == 0
    spoken = capsys.readouterr().err
    assert "'label <- code': read from the rows" in spoken and "Learning bounds" not in spoken
    made = pd.read_csv(out)
    assert (made["net"][made["code"] == "a"] < 50).all()
    assert main([*command, "--declare-public", "--rule", "net < tax"]) == 2
    assert "is not a rule" in capsys.readouterr().err
