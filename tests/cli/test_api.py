"""Plain functions do what the commands do, and refuse what they refuse."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pandas as pd
import pytest

from core import api
from core.cli.main import main
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.runs.workspace import PROJECT_ROOT
from core.schema.column import Kind
from core.schema.form import Form
from core.schema.schema import Schema
from core.services.sample_tables import SAMPLE_TARGET, sample_table
from core.services.synthesis.frames import typed_rows_of
from tests.cli.test_cli import FEW, last_line

pytestmark = pytest.mark.slow

SETTINGS = {"steps": 40, "frequencies": 200, "batch": 64, "hidden": 16}


def test_a_function_and_its_command_plan_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, file = sample_table(300), tmp_path / "t.csv"
    frame.to_csv(file, index=False)
    options = {"target": SAMPLE_TARGET, "keep_out": 0.2, "score": 0.05, "settings": SETTINGS}
    plan = api.plan(api.read_table(file), epsilon=1.0, **options)
    command = ["plan", str(file), "--model", "pearl", "--epsilon", "1", *FEW, "--json"]
    command += ["--target", SAMPLE_TARGET, "--keep-out", "0.2", "--score", "0.05"]
    assert main(command) == 0
    assert last_line(capsys.readouterr().out)["digest"] == plan.digest


def test_a_plan_without_a_schema_learns_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    sample_table(600).to_csv(file, index=False)
    planned = api.plan(api.read_table(file), epsilon=8, settings=SETTINGS)
    assert {"bounds", "lists"} <= {phase.name for phase in planned.phases}
    command = ["plan", str(file), "--model", "pearl", "--epsilon", "8", *FEW, "--json"]
    assert main(command) == 0
    assert last_line(capsys.readouterr().out)["digest"] == planned.digest


def test_a_schema_that_a_run_learned_is_learned_anew(home: Path) -> None:
    frame = sample_table(600)
    options = {"epsilon": 4.0, "settings": SETTINGS, "device": "cpu"}
    first = api.synthesize(frame, **options)
    again = api.synthesize(frame, schema=first.schema, **options)
    phases = [[phase["name"] for phase in made.certificate["phases"]] for made in (first, again)]
    assert phases[0] == phases[1] and "lists" in phases[1]


def test_a_table_more_rows_of_it_and_a_schema_that_was_changed(tmp_path: Path, home: Path) -> None:
    frame = sample_table(300)
    schema = api.schema(frame, target=SAMPLE_TARGET)
    schema = schema.replace(schema["age"].model_copy(update={"low": 0.0, "high": 110.0}))
    result = api.synthesize(
        frame, epsilon=1, schema=schema, settings=SETTINGS, rows=50, seed=1, device="cpu",
        save=tmp_path / "run",
    )  # fmt: skip
    assert list(result.table.columns) == list(frame.columns) and len(result.table) == 50
    assert result.guarantee.epsilon == pytest.approx(1.0, rel=1e-3)
    assert any("age: integer from 0 to 110" in text for text in result.certificate["conditions"])
    assert "recorded" in result.ledger
    drawn = api.sample(tmp_path / "run", rows=20, where=["sex=female"], seed=1)
    assert (drawn.table["sex"] == "female").all() and drawn.facts.drawn > 20


def test_functions_write_a_file_as_it_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """How a file is written goes with its rows: as text, this column would be a list of labels."""
    cells = [f"{i % 70},5 €" if i % 9 else ("N/A" if i % 2 else "?") for i in range(300)]
    file = tmp_path / "t.csv"
    file.write_text("pay;n\n" + "".join(f"{x};{i % 7}\n" for i, x in enumerate(cells)))
    frame = api.read_table(file)
    result = api.synthesize(
        frame, epsilon=9, declare_public=True, settings=SETTINGS, seed=1, device="cpu",
        save=tmp_path / "run",
    )  # fmt: skip
    result.write(tmp_path / "o.csv")
    api.sample(tmp_path / "run", rows=300, seed=1).write(tmp_path / "s.csv")
    for name in ("o.csv", "s.csv"):
        header, *lines = (tmp_path / name).read_text().splitlines()
        assert header == "pay;n" and len(lines) == 300
        assert all(re.fullmatch(r"(\d+,\d €|\?|N/A);\d", line) for line in lines)
    plan = api.plan(frame, epsilon=1.0, declare_public=True)
    command = ["plan", str(file), "--model", "pearl", "--epsilon", "1", "--declare-public"]
    assert main([*command, "--json"]) == 0
    assert last_line(capsys.readouterr().out)["digest"] == plan.digest
    assert api.schema(frame)["pay"].codes


def test_a_table_without_privacy_is_marked_when_it_is_written(tmp_path: Path) -> None:
    result = api.synthesize(
        sample_table(100), epsilon=float("inf"), without_privacy=True, settings=SETTINGS, rows=5,
        device="cpu",
    )  # fmt: skip
    with pytest.raises(ValueError, match="must end in"):
        result.write(tmp_path / "t.doc")
    result.write(tmp_path / "t.parquet")
    assert len(pd.read_parquet(tmp_path / "t.parquet")) == 5
    assert (tmp_path / "t.parquet.not-private.json").exists()


def test_rows_read_by_a_proposal_are_refused_under_a_schema(tmp_path: Path, home: Path) -> None:
    """One cell of theirs may have changed how others were read."""
    file = tmp_path / "t.csv"
    sample_table(200).to_csv(file, index=False)
    frame = api.read_table(file)
    schema = api.schema(frame)
    for refused in (frame, frame[frame["age"] > 30], frame.assign(more=1)):
        with pytest.raises(ValueError, match=r"read_table\(path, schema=") as refusal:
            api.synthesize(refused, epsilon=1, schema=schema)
        assert "\n" not in str(refusal.value) and not home.exists()
    read = api.read_table(file, schema=schema)
    assert api.plan(read[read["age"] > 30], epsilon=1, schema=schema).n < 200
    wider = schema.replace(schema["age"].model_copy(update={"high": 130.0}))
    assert api.plan(read, epsilon=1, schema=wider).n == 200  # its cells mean the same
    text = schema.replace(schema["age"].model_copy(update={"kind": Kind.TEXT, "dtype": "str"}))
    with pytest.raises(ValueError, match="were not read by this schema"):
        api.plan(read, epsilon=1, schema=text)


def test_a_column_made_of_others_is_read_as_declared(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    pd.DataFrame({"cents": range(300), "n": range(300)}).to_csv(file, index=False)
    schema = api.schema(api.read_table(file))
    euros = pd.DataFrame({"euros": [i / 100 for i in range(300)]})
    made = Schema(columns=(*schema.columns, *api.schema(euros).columns))
    odd = euros["euros"].astype(object)
    odd[7] = "unknown"
    read = api.read_table(file, schema=schema).assign(euros=odd)
    frame, _ = typed_rows_of(api._options({"epsilon": 1, "model": "pearl"}, made), read, made)
    assert frame["euros"].drop(7).tolist() == euros["euros"].drop(7).tolist()
    assert frame["euros"].isna()[7]


@pytest.mark.parametrize("decimal", [".", ","])
def test_one_odd_cell_of_a_frame_moves_no_other(
    decimal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word among floats makes the whole column objects; the others are read as before.

    They are numbers, whatever mark the file has from which the declaration comes.
    """
    frame = pd.DataFrame({"bmi": [-99.0] * 30 + [20 + i / 10 for i in range(170)], "n": range(200)})
    schema = api.schema(frame)
    assert schema["bmi"].codes == ("-99",)
    form = Form(codes=("-99",), decimal=decimal)
    schema = schema.replace(schema["bmi"].model_copy(update={"form": form}))
    odd = frame.astype({"bmi": object})
    odd.loc[40, "bmi"] = "unknown"
    options = api._options({"epsilon": 1, "model": "pearl"}, schema)
    codes = [
        encoded_records(typed_rows_of(options, one, schema)[0], Layout(schema.domain()), None)[0]
        for one in (frame, odd)
    ]
    moved = (codes[0].states != codes[1].states) | (codes[0].values != codes[1].values)
    assert moved.any(axis=1).nonzero()[0].tolist() == [40]
    assert capsys.readouterr().err.count("'bmi': 1 cell does not") == 1


REFUSED = {
    "ε of zero": ({"epsilon": 0, "declare_public": True}, "above 0"),
    "no privacy": ({"epsilon": float("inf")}, "--without-privacy"),
    "no such option": ({"epsilon": 1, "epsilonn": 2}, "there is no option --epsilonn"),
    "of the wrong type": ({"epsilon": 1, "rows": "many"}, "--rows: .*integer.*, not 'many'"),
    "no such model": ({"epsilon": 1, "model": "x", "declare_public": True}, "no model is called"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_a_value_error_of_one_line(options: dict, words: str, home: Path) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        api.synthesize(sample_table(50), **options)
    assert "\n" not in str(refusal.value) and not home.exists()


def python_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_lines_at_the_top_of_the_module_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the README too, once they are there: they are run as they stand."""
    readme = python_of((PROJECT_ROOT / "README.md").read_text(encoding="utf-8"))
    doc = "\n".join(re.findall(r"^    (.*)$", api.__doc__ or "", re.MULTILINE))
    quick = functools.partial(api.synthesize, settings=SETTINGS)  # fewer steps, nothing else
    monkeypatch.setattr(api, "synthesize", quick)
    monkeypatch.chdir(tmp_path)
    sample_table(200).to_csv("people.csv", index=False)
    for code in {re.sub(r"\n+", "\n", text.strip()) for text in (*readme, doc)}:
        Path("synthetic.csv").unlink(missing_ok=True)
        exec(code, {})
        assert len(pd.read_csv("synthetic.csv")) > 0


def test_a_paid_question_is_measured_and_in_the_certificate(home: Path) -> None:
    frame = sample_table(3000)
    asked = {"pay": ["share readmitted=yes", "mean age --where=readmitted=yes"]}
    options = {"epsilon": 1.0, "model": "scan_focus", "device": "cpu"}
    made = api.synthesize(frame, **options, **asked)
    title = "Question: Share of readmitted = yes"
    assert title in [phase["title"] for phase in made.certificate["phases"]]
    assert made.guarantee.epsilon <= 1.0
    share, mean = made.measured
    found = re.search(r"yes: ([\d.]+)% ± ([\d.]+)% measured on the real rows with noise", share)
    assert found is not None
    value, half = map(float, found.groups())
    assert abs(value - 100 * (frame["readmitted"] == "yes").mean()) < 3 * half and 0 < half < 5
    assert mean.startswith("Mean of age where readmitted=yes: ")
    assert api.synthesize(frame, **options, people="new").measured == ()


def test_what_a_run_did_not_learn_is_not_measured(home: Path) -> None:
    frame = sample_table(3000)
    frame.loc[:14, "ward"] = "Verlies"
    options = {"epsilon": 0.2, "model": "scan_focus", "device": "cpu", "pay": "share ward=Verlies"}
    made = api.synthesize(frame, **options)
    assert "Not measured" in made.measured[0]
    assert not any("Question" in phase["title"] for phase in made.certificate["phases"])
