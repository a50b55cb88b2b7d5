"""More rows on the command line: of chosen values, at chosen shares, from what a run has saved."""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from core.cli.main import main
from core.runs.events import State
from core.runs.request import RunRequest
from core.runs.storage.artefacts import INSIDE_REPORT
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import viewed_runs
from core.services import imports, planning, runs, tables
from core.services.sample_tables import SAMPLE_TARGET, sample_table
from tests.cli.test_cli import FEW, last_line
from tests.requests_for import request_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that `synth --save` wrote, with pictures for people outside."""
    folder = tmp_path_factory.mktemp("saved")
    sample_table(300).to_csv(folder / "visits.csv", index=False)
    command = ["synth", str(folder / "visits.csv"), "--model", "pearl", "--epsilon", "5", *FEW]
    command += ["--declare-public", "--target", SAMPLE_TARGET, "--quiet", "--review", "0.2"]
    command += ["--save", str(folder / "run"), "--out", str(folder / "o.csv")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACSIMILE_HOME", str(folder / "home"))
        assert main(command) == 0
    return folder / "run"


def test_a_saved_run_holds_model_certificate_and_purchase(saved: Path) -> None:
    names = {path.relative_to(saved).parts[0] for path in saved.rglob("*")}
    assert names == {"model", "certificate.json", "run.json", "outside.html"}
    assert saved.stat().st_mode & 0o077 == 0


def test_rows_of_chosen_values_at_chosen_shares(
    saved: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.csv"
    command = ["sample", str(saved), "--rows", "60", "--out", str(out), "--seed", "1", "--json"]
    command += [f"--where={SAMPLE_TARGET}=yes", "--where", "age=40..60", "--fill-missing"]
    assert main([*command, "--share", "sex:female=.75,male=.25"]) == 0
    spoken = capsys.readouterr().out
    table = pd.read_csv(out)
    assert len(table) == 60 and table["visit_id"].is_unique
    assert (table[SAMPLE_TARGET] == "yes").all() and table["age"].between(40, 60).all()
    assert table["sex"].value_counts().to_dict() == {"female": 45, "male": 15}
    assert table.notna().all().all()
    told = last_line(spoken)
    (facts,) = told["facts"]  # type: ignore[misc]
    (first, *_) = facts["conditions"]
    assert first["text"] == f"{SAMPLE_TARGET}=yes" and 60 <= first["fitting"] < facts["drawn"]
    for words in facts["words"]:
        assert words in spoken
    assert told["out"] == [str(out)] and told["private"] is True
    assert not home.exists()  # a saved run needs no workspace


def test_several_seeds_give_one_zip_of_several_tables(saved: Path, tmp_path: Path) -> None:
    command = ["sample", str(saved), "--rows", "20", "--seed", "1", "--seed", "2"]
    command += ["--where", "sex=male"]
    assert main([*command, "--out", str(tmp_path / "x.zip")]) == 0
    assert main([*command, "--out", str(tmp_path / "x.csv")]) == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        names = archive.namelist()
        papers = ["dictionary.csv", "certificate.json", "synthetic.json"]
        assert names == ["x.seed-1.csv", "x.seed-2.csv", *papers]
        certificate = json.loads(archive.read("certificate.json"))
        words = pd.read_csv(io.BytesIO(archive.read("dictionary.csv"))).set_index("column")
        inside = [archive.read(name) for name in names[:2]]
    assert inside == [(tmp_path / name).read_bytes() for name in names[:2]]
    assert inside[0] != inside[1] and not (tmp_path / "x.csv").exists()
    assert words["asked for"].dropna().to_dict() == {"sex": "only rows with sex=male"}
    drawn = certificate["drawn"]
    assert drawn["asked"]["where"] == ["sex=male"] and certificate["rows"] == 40
    assert [one["seed"] for one in drawn["tables"]] == [1, 2]
    assert certificate["private"] is True and "No real row was read" in drawn["statement"]


REFUSALS = {
    "no value": (["--where", "sex=other"], "no declared value of 'sex'"),
    "too rare": (["--where", "age=40.2..40.7"], "Of 4,000 drawn rows 0 fit; 5 are needed"),
    "no rows": (["--rows", "0"], "at least 1"),
    "no ending": (["--out", "x.doc"], "must end in"),
    "formulas": (["--out", "x.parquet", "--escape-formulas"], ".csv or .zip"),
}


@pytest.mark.parametrize(("more", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_one_line_and_leaves_nothing(
    saved: Path,
    tmp_path: Path,
    more: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("core.models.shaped_output.MOST_DRAWN", 4_000)
    monkeypatch.chdir(tmp_path)
    assert main(["sample", str(saved), "--rows", "5", "--out", "x.csv", *more]) == 2
    spoken = capsys.readouterr()
    (line,) = spoken.err.splitlines()
    assert words in line and spoken.out == "" and list(tmp_path.iterdir()) == []


def test_without_privacy_a_flag_is_needed(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "open"
    shutil.copytree(saved, folder)
    told = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(told | {"private": False}))
    command = ["sample", str(folder), "--rows", "5", "--out", str(tmp_path / "x.csv")]
    assert main(command) == 2 and not (tmp_path / "x.csv").exists()
    assert "--without-privacy" in capsys.readouterr().err
    assert main([*command, "--without-privacy"]) == 0
    assert (tmp_path / "x.csv.not-private.json").exists()


def test_an_unknown_run_folder_or_id_is_refused(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in (str(tmp_path), "abc"):
        assert main(["sample", run, "--rows", "5", "--out", str(tmp_path / "x.csv")]) == 2
        assert "there is no run" in capsys.readouterr().err
    assert not home.exists()


def test_sampling_waits_for_the_approval_that_download_needs(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.csv"
    with runs.open_store() as store:
        table = imports.import_frame(store, sample_table(300), name="t", source="test")
        request = RunRequest(model="pearl", epsilon=5.0)
        plan = planning.make_plan(table.schema, table.training_n, request)
        run = store.create_run(
            table.id, plan, request_for(plan, rows=3, device="cpu"), schema=table.schema
        )
        folder = store.artefacts(run.id).folder
        command = ["sample", run.id, "--rows", "5", "--out", str(out)]
        assert main(command) == 2 and "queued" in capsys.readouterr().err
        shutil.copytree(saved / "model", folder / "model")
        shutil.copy(saved / "certificate.json", folder)
        store.record(run.id, guarantee=plan.guarantee)
        store.set_state(run.id, State.DONE, "Done.")
        notes.set_rule(store, table_id=table.id, author="o", rule=notes.Rule(approvals=1))
        assert main(command) == 2 and "1 more person has to approve" in capsys.readouterr().err
        notes.set_rule(store, table_id=table.id, author="o", rule=notes.Rule(approvals=0))
        (folder / INSIDE_REPORT).write_text(json.dumps({"attacks": [{"exposed": True}]}))
        assert main(command) == 2 and "1 more person has to approve" in capsys.readouterr().err
        (folder / INSIDE_REPORT).unlink()
    for name in (run.id, str(folder)):
        assert main(["sample", name, "--rows", "5", "--out", str(out)]) == 0
        assert len(pd.read_csv(out)) == 5
    assert math.isfinite(plan.guarantee.epsilon)


def test_a_folder_to_save_in_must_be_new_and_pictures_need_one(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "visits.csv"
    sample_table(100).to_csv(path, index=False)
    command = ["synth", str(path), "--model", "pearl", "--epsilon", "1", "--declare-public"]
    command += ["--out", str(tmp_path / "o.csv")]
    assert main([*command, "--save", str(tmp_path)]) == 2
    assert "name a new folder" in capsys.readouterr().err
    assert main([*command, "--review", "0.1"]) == 2
    assert "only --save FOLDER keeps" in capsys.readouterr().err
    assert main([*command, "--sensitive", "age", "--save", str(tmp_path / "new")]) == 2
    assert "hidden distributions unshifted" in capsys.readouterr().err
    assert not home.exists() and not (tmp_path / "new").exists()


def test_evidence_waits_for_review_and_keeps_what_was_said(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "e.zip"
    with runs.open_store() as store:
        table = imports.import_frame(store, sample_table(300), name="t", source="test")
        table = tables.declare_all(store, table)
        request = RunRequest(model="pearl", epsilon=5.0)
        plan = planning.make_plan(table.schema, table.training_n, request)
        run = store.create_run(
            table.id, plan, request_for(plan, rows=3, device="cpu"), schema=table.schema
        )
        command = ["evidence", run.id, "--out", str(out)]
        assert main(command) == 2 and "not finished" in capsys.readouterr().err
        folder = store.artefacts(run.id).folder
        shutil.copy(saved / "certificate.json", folder)
        sample_table(3).to_parquet(folder / "synthetic.parquet")
        store.record(run.id, guarantee=plan.guarantee)
        store.set_state(run.id, State.DONE, "Done.")
        report = {"attacks": [{"exposed": True}], "significant_sets": []}
        (folder / INSIDE_REPORT).write_text(json.dumps(report))
        assert main(command) == 2 and "has to approve" in capsys.readouterr().err
        (folder / INSIDE_REPORT).unlink()
        assert main([*command, "--review-date", "soon"]) == 2 and not out.exists()
        assert main([*command, "--purpose", "Teaching"]) == 0
        assert main([*command, "--recipient", "A university", "--json"]) == 0
        told = last_line(capsys.readouterr().out)
        assert "For which purpose is the table released?" not in told["to_fill_in"]
        assert told["to_fill_in"]["On which legal basis?"] == "the data protection officer"
        assert not viewed_runs(store, run.account_id)
        assert main([*command, "--view", "inside"]) == 0
        assert viewed_runs(store, run.account_id) == {run.id}
    with zipfile.ZipFile(out) as archive:
        terms = json.loads(archive.read("release.json"))
        assert (terms["purpose"], terms["recipient"]) == ("Teaching", "A university")
        assert json.loads(archive.read("synthetic.json"))["run"] == run.id
