"""synth without a schema: the run learns bounds and lists within its ε."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core import api
from core.cli.main import main
from core.proposing.propose import infer_schema
from core.services import imports
from core.services.runs import open_store
from core.services.sample_tables import SAMPLE_TARGET, sample_table
from tests.runs.workers import queued, toy_plan, work

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


def paid(capsys: pytest.CaptureFixture[str]) -> list[float]:
    return [e["epsilon"] for e in ledger_entries(capsys) if e["kind"] == "release"]


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
    assert paid(capsys) == [pytest.approx(4.0, rel=1e-6)]


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


def test_a_later_run_uses_what_a_saved_one_learned(command, table, tmp_path, capsys):
    saved = tmp_path / "first"
    assert main([*command, "--save", str(saved)]) == 0
    first = last_line(capsys.readouterr().out)
    (entry,) = [e for e in ledger_entries(capsys) if e["kind"] == "release"]
    later = ["--learned-by", str(saved)]
    planning = ["plan", str(table), "--model", "pearl", "--epsilon", "1", *FEW, "--json", *later]
    assert main(planning) == 0
    spoken = capsys.readouterr().out
    planned = last_line(spoken)
    assert planned["learned"] == [] and 1.0 < planned["epsilon"] < 1.0 + first["epsilon"]
    assert f"used as run {saved} learned it" in planned["domain"]
    assert f"(ledger entry {entry['seq']}-" in planned["conditions"][-1]
    assert planned["conditions"][-1] in spoken
    assert planned["method"].endswith(", added to what was learned earlier")
    gaps, holes = tmp_path / "gaps.csv", pd.read_csv(table, dtype=str)
    holes.loc[holes.index % 5 == 0, "age"] = None  # of which the earlier run found none
    holes.to_csv(gaps, index=False)
    assert main([planning[0], str(gaps), *planning[2:]]) == 0
    assert f"note: 'age': {ROWS // 5} cells do" in capsys.readouterr().err
    made = ["synth", *command[1:], *later]
    made[made.index("4")] = "1"
    assert main(made) == 0
    spoken = capsys.readouterr().out
    said = last_line(spoken)
    assert said["epsilon"] == pytest.approx(planned["epsilon"], rel=1e-3)
    assert said["epsilon_replace"] == pytest.approx(planned["epsilon_replace"], rel=1e-3)
    assert not {"bounds", "lists"} & {phase["name"] for phase in said["phases"]}
    assert said["coverage"]["learned"].keys() == first["coverage"]["learned"].keys()
    assert any(one.startswith("ε ") and "are sums" in one for one in said["conditions"])
    assert paid(capsys) == [pytest.approx(4.0, rel=1e-6), pytest.approx(1.0, rel=1e-6)]


def test_other_peoples_run_is_refused_before_anything_is_spent(command, table, tmp_path, capsys):
    saved = tmp_path / "first"
    assert main([*command, "--save", str(saved)]) == 0
    before = paid(capsys)
    later = ["--learned-by", str(saved), "--people", "others"]
    plan = ["plan", str(table), "--model", "pearl", "--epsilon", "1", *FEW, *later]
    for asked in (plan, [*command, *later]):
        assert main(asked) == 2
        assert "no run about these people learned it" in capsys.readouterr().err
    assert paid(capsys) == before
    folder = ["--learned-by", str(tmp_path / "none_such")]
    assert main([*command, *folder]) == 2 and "no such run" in capsys.readouterr().err
    declared = [*command, "--declare-public", "--learned-by", str(saved)]
    assert main(declared) == 2
    assert "learned nothing that is still to be learned" in capsys.readouterr().err
    assert paid(capsys) == before


def test_a_run_of_the_workspace_is_named_by_id_or_folder(table, home, capsys):
    with open_store(home) as store:
        stored = imports.import_frame(store, sample_table(ROWS), name="visits", source="test")
        waiting = queued(store, stored, toy_plan(stored, epsilon=8.0))
        run = work(store, queued(store, stored, toy_plan(stored, epsilon=8.0)).id)
    plan = ["plan", str(table), "--model", "pearl", "--epsilon", "1", "--json", "--learned-by"]
    for name in (run.id, str(home / "runs" / run.id)):
        assert main([*plan, name]) == 0
        assert last_line(capsys.readouterr().out)["learned"] == []
    assert main([*plan, waiting.id]) == 2
    assert "it can be used once it is done" in capsys.readouterr().err
    result = api.synthesize(
        api.read_table(table), epsilon=1, learned_by=run.id, settings={"steps": 20}, device="cpu"
    )
    assert result.guarantee.epsilon > 1.0 and "learned_earlier" in result.certificate
