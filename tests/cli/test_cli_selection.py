"""The command line's part in choosing among runs: a noisy score, and what it cannot know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli.main import main
from core.proposing.propose import infer_schema
from core.runs.storage.reviews.inside_views import record_view
from core.services import imports, runs
from core.services.sample_tables import SAMPLE_TARGET, sample_table

pytestmark = pytest.mark.slow

FEW = ["--settings", "steps=40", "frequencies=200", "batch=64", "hidden=16"]
ROWS = 400


@pytest.fixture
def synth(tmp_path: Path, home: Path) -> list[str]:
    """The command, with the schema in a file."""
    frame = sample_table(ROWS)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    schema = infer_schema(frame).model_dump_json()
    (tmp_path / "schema.json").write_text(schema, encoding="utf-8")
    command = ["synth", str(tmp_path / "visits.csv"), "--schema", str(tmp_path / "schema.json")]
    command += ["--model", "pearl", "--epsilon", "1", "--quiet", "--json", *FEW]
    return [*command, "--out", str(tmp_path / "out.csv")]


def last_line(text: str) -> dict:
    return json.loads(text.rstrip().splitlines()[-1])


def test_a_score_is_bought_said_and_part_of_epsilon(synth, home, capsys):
    assert main([*synth, "--score", "0.2"]) == 0
    spoken = capsys.readouterr().out
    found = last_line(spoken)
    assert [p["name"] for p in found["phases"]][-1] == "score"
    assert found["phases"][-1]["share"] == 0.2
    assert found["epsilon"] == pytest.approx(1.0, rel=1e-3)
    value, error = found["score"]["value"], found["score"]["standard_error"]
    assert error > 0 and abs(value) <= 1 + 5 * error
    assert f"noisy score: {value:.4f} ± {1.96 * error:.4f}" in spoken
    assert "lower is closer" in spoken
    assert not list(home.glob("synth-*"))  # the counts went with the run's folder


def test_without_it_there_is_none_and_a_wrong_share_is_one_line(synth, capsys):
    assert main(synth) == 0
    spoken = capsys.readouterr().out
    assert last_line(spoken)["score"] is None and "noisy score" not in spoken
    assert main([*synth, "--score", "0.7"]) == 2
    assert "--score must lie in 0 to 0.5" in capsys.readouterr().err


def test_looks_at_runs_of_these_people_are_a_condition_here_too(synth, home, capsys):
    assert main(synth) == 0
    assert "Chosen among" not in capsys.readouterr().out
    with runs.open_store(home) as store:
        (account,) = store.ledger.accounts()
        table = imports.import_frame(
            store, sample_table(ROWS), name="v", source="test", account_id=account.account_id
        )
        for run_id in ("aaaaaa", "bbbbbb"):  # since deleted
            record_view(store, table_id=table.id, run_id=run_id, author="Ada")
    assert main([*synth, "--save", str(home.parent / "run")]) == 0
    spoken = capsys.readouterr().out
    words = "Chosen among 3 runs after looking at real data; the choice is not covered by ε."
    assert words in spoken.splitlines() and last_line(spoken)["conditions"][-1] == words
    saved = json.loads((home.parent / "run" / "certificate.json").read_text())
    assert saved["conditions"][-1] == words  # rows drawn later are of that run as well


def test_an_inside_report_says_what_no_certificate_can_know(tmp_path, home, capsys):
    real, synthetic = tmp_path / "real.csv", tmp_path / "synthetic.csv"
    frame = sample_table(300)[["age", "sex", SAMPLE_TARGET]]
    frame[:200].to_csv(real, index=False)
    frame[100:].to_csv(synthetic, index=False)
    command = ["review", str(real), str(synthetic), "--out", str(tmp_path / "r.html")]
    command += ["--declare-public", "--view"]
    assert main([*command, "outside"]) == 0
    assert "not covered by their ε" not in capsys.readouterr().out
    assert main([*command, "inside"]) == 0
    spoken = capsys.readouterr().out
    assert "inside only" in spoken and "not covered by their ε" in spoken
