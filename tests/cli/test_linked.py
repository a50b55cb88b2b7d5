"""Two linked files → a ZIP of two whose keys match."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core import api
from core.cli.main import main
from core.privacy.discovery import planning
from tests.histories import visits

pytestmark = pytest.mark.slow
QUICK = (
    "steps=150", "members=1", "trainings=1", "components=60", "hidden=32", "preliminary_steps=20",
)  # fmt: skip
PEOPLE = 1000


@pytest.fixture(autouse=True)
def no_missing_cell_is_seen_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in all but one of a hundred runs."""
    monkeypatch.setattr(planning, "MISSING_DOUBT", 1e-9)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """People by `id`, events by `who`; one event is of nobody."""
    frame = visits(PEOPLE)
    people = frame.drop_duplicates("who")[["who", "sex"]].rename(columns={"who": "id"})
    events = frame[frame["key"].notna()][["who", "day", "kind"]].astype({"day": "int64"})
    stray = pd.DataFrame({"who": [10_000], "day": [3], "kind": ["a"]})
    paths = tmp_path / "patients.csv", tmp_path / "stays.csv"
    people.to_csv(paths[0], index=False)
    pd.concat([events, stray]).to_csv(paths[1], index=False, sep=";")
    return paths


def synth(files: tuple[Path, Path], out: Path, *more: str) -> int:
    return main(
        [
            "synth", str(files[0]), "--linked", str(files[1]), "--key", "id=who", "--order", "day",
            "--rows-per-person", "4", "--model", "scan_focus", "--epsilon", "9", "--seed", "1",
            "--out", str(out), "--quiet", "--settings", *QUICK, *more,
        ]
    )  # fmt: skip


def read(archive: zipfile.ZipFile, name: str, **options: str) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(archive.read(name)), **options)


def test_linked_files_come_out_as_they_came_in(files, tmp_path, capsys) -> None:
    assert synth(files, tmp_path / "out.zip") == 0
    said = capsys.readouterr().err
    assert "Rows of stays without a person, left out: 1." in said
    assert "Rows of patients without rows of stays, learned as such:" in said
    assert "are beyond the first 4 of their person and are not used" in said
    assert "do not fit" not in said
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        names = ["patients.csv", "stays.csv", "dictionary.csv", "certificate.json"]
        assert archive.namelist() == [*names, "synthetic.json"]
        people, events = read(archive, "patients.csv"), read(archive, "stays.csv", sep=";")
        words = read(archive, "dictionary.csv").set_index(["file", "column"])["kept"]
    assert list(people) == ["id", "sex"] and list(events) == ["who", "day", "kind"]
    assert len(people) == PEOPLE and people["id"].is_unique
    assert events["who"].isin(people["id"]).all() and events.notna().all().all()
    assert events["day"].dtype == np.int64
    without = 1.0 - events["who"].nunique() / PEOPLE
    assert 0.1 < without < 0.3  # a fifth has no event
    assert events["who"].value_counts().max() == 4
    assert (events.groupby("who")["day"].diff().dropna() >= 0).all()
    assert "row before" in words["stays.csv", "kind"]
    assert words["stays.csv", "who"] == "link: each value stands in the column id of patients.csv"


def test_rules_hold_across_files_and_rows(files, tmp_path, capsys) -> None:
    people, events = pd.read_csv(files[0]), pd.read_csv(files[1], sep=";").sort_values("day")
    first = events.drop_duplicates("who").set_index("who")["day"]
    before = np.random.default_rng(0).integers(0, 150, len(people))
    born = people["id"].map(first).fillna(40).astype(int) - before
    people.assign(born=born).to_csv(files[0], index=False)
    visit = events.groupby("who").cumcount() + 1
    after = events.groupby("who")["day"].shift(-1).fillna(200)
    left = (events["day"] + before[0] % 7).clip(upper=after).astype(int)
    events.assign(visit=visit, left=left).to_csv(files[1], index=False, sep=";")
    more = ["--counter", "visit"]
    for rule in ("born <= day", "day <= left", "day[t+1] >= left[t]"):
        more += ["--rule", rule]
    assert synth(files, tmp_path / "out.zip", *more) == 0
    said = capsys.readouterr().err
    assert "visit counts the rows of each person: --counter visit" in said
    assert "suggestion: --rule 'left[t+1] >= left[t]' (holds in the rows)" in said
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        people, events = read(archive, "patients.csv"), read(archive, "stays.csv", sep=";")
        words = read(archive, "dictionary.csv").set_index("column")["kept"]
        certificate = json.loads(archive.read("certificate.json"))
    assert list(events) == ["who", "day", "kind", "visit", "left"]
    assert (events["day"] <= events["left"]).all()
    assert not (events.groupby("who")["day"].shift(-1) < events["left"]).any()
    assert (events["visit"] == events.groupby("who").cumcount() + 1).all()
    assert (events.groupby("who")["day"].diff().dropna() >= 0).all()
    both = events.merge(people, left_on="who", right_on="id")
    assert len(both) == len(events) and (both["born"] <= both["day"]).all()
    assert words["visit"].startswith("counts the rows of a person")
    told = json.dumps(certificate)
    assert "a row of patients and all rows of stays with its id belong to one person" in told


def test_several_linked_files_keep_their_keys_and_orders(files, tmp_path) -> None:
    people, events = pd.read_csv(files[0]), visits(PEOPLE, seed=4)
    tests = events[events["key"].notna()][["who", "day", "kind"]].astype({"day": "int64"})
    tests = tests.rename(columns={"who": "pid", "day": "taken", "kind": "test"})
    tests.to_csv(tmp_path / "tests.csv", index=False)
    address = f"sqlite:///{tmp_path / 'out.db'}"
    more = ("--linked", str(tmp_path / "tests.csv"), "--key", "id=who,pid", "--order", "day,taken")
    assert synth(files, tmp_path / "out.zip", *more, "--to", address) == 0
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert archive.namelist()[:3] == ["patients.csv", "stays.csv", "tests.csv"]
        made, stays = read(archive, "patients.csv"), read(archive, "stays.csv", sep=";")
        tested = read(archive, "tests.csv")
        certificate = json.loads(archive.read("certificate.json"))
    assert list(stays) == ["who", "day", "kind"] and list(tested) == ["pid", "taken", "test"]
    assert len(made) == len(people) and made["id"].is_unique
    for rows, key, order in ((stays, "who", "day"), (tested, "pid", "taken")):
        assert rows[key].isin(made["id"]).all() and rows.notna().all().all()
        assert rows[key].value_counts().max() == 4
        assert (rows.groupby(key)[order].diff().dropna() >= 0).all()
        assert 0.1 < 1.0 - rows[key].nunique() / PEOPLE < 0.3  # a fifth has no event
        moves = pd.crosstab(rows.iloc[:, 2], rows.groupby(key).shift(-1).iloc[:, 1], normalize=0)
        assert moves.loc["a", "b"] > 0.6  # always, in the real tables
    assert "at most 4 rows of stays, tests" in json.dumps(certificate)
    with closing(sqlite3.connect(tmp_path / "out.db")) as base:
        for name, key in (("stays", "who"), ("tests", "pid")):
            links = base.execute(f"PRAGMA foreign_key_list({name})").fetchall()
            assert [link[2:5] for link in links] == [("patients", key, "id")]
        assert base.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_counter_needs_an_order(files, tmp_path, capsys) -> None:
    alone = ["synth", str(files[1]), "--person", "who", "--model", "pearl", "--out", "x.csv"]
    alone += ["--epsilon", "1"]
    assert main([*alone, "--counter", "day"]) == 2
    assert "--counter needs --order" in capsys.readouterr().err
    assert main([*alone, "--order", "day", "--counter", "day"]) == 2
    assert "cannot count a person's rows" in capsys.readouterr().err


def test_linked_tables_go_to_a_database_with_keys_that_hold(files, tmp_path, capsys) -> None:
    address = f"sqlite:///{tmp_path / 'out.db'}"
    given = ("--settings", "steps=20", "members=1", "trainings=1", "components=9", "hidden=8")
    saved = ("--save", str(tmp_path / "run"), "--to", address)
    assert synth(files, tmp_path / "out.zip", *saved, *given) == 0
    with closing(sqlite3.connect(tmp_path / "out.db")) as base:
        keys = base.execute("PRAGMA foreign_key_list(stays)").fetchall()
        assert [key[2:5] for key in keys] == [("patients", "who", "id")]
        assert base.execute("PRAGMA foreign_key_check").fetchall() == []
        (people,) = base.execute("SELECT COUNT(DISTINCT id) FROM patients").fetchone()
        kinds = {row[1]: row[2] for row in base.execute("PRAGMA table_info(stays)")}
        rows = pd.read_sql("SELECT * FROM stays", base)
        papers = dict(base.execute("SELECT * FROM patients_certificate").fetchall())
    assert people == PEOPLE and kinds["day"] == "BIGINT" and kinds["kind"] == "TEXT"
    assert json.loads(papers["certificate"])["private"] and "synthetic" in papers
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        pd.testing.assert_frame_equal(rows, read(archive, "stays.csv", sep=";"))
    drawn = ["sample", str(tmp_path / "run"), "--rows", "20", "--seed", "1", "--seed", "2"]
    assert main([*drawn, "--out", str(tmp_path / "x.csv")]) == 2
    assert main([*drawn, "--out", str(tmp_path / "x.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert len(read(archive, "seed-2/patients.csv")) == 20
        more = read(archive, "seed-1/stays.csv", sep=";")
    assert list(more) == list(rows) and more.notna().any().all()
    assert synth(files, tmp_path / "out.zip", "--to", address) == 2
    assert "has a table 'patients' already" in capsys.readouterr().err
    assert synth(files, tmp_path / "out.zip", "--to", "mysql://host/x") == 2


def test_what_follows_on_what_is_kept(files, tmp_path) -> None:
    tables = pd.read_csv(files[0]), pd.read_csv(files[1], sep=";")
    settings = {"steps": 200, "members": 2, "trainings": 1, "components": 60, "hidden": 32}
    made = api.synthesize_linked(
        *tables, epsilon=9, key="id=who", order="day", rows_per_person=4, seed=1,
        settings=settings, names=("patients", "stays"),
    )  # fmt: skip
    events = made.tables["stays"]
    after = events.groupby("who")["kind"].shift(-1)
    moves = pd.crosstab(events["kind"], after, normalize="index")
    assert moves.loc["a", "b"] > 0.8  # always, in the real table
    assert moves.loc["c", "b"] < 0.2 and moves.loc["d", "b"] < 0.2
    made.write(tmp_path / "made.zip")
    with zipfile.ZipFile(tmp_path / "made.zip") as archive:
        assert archive.namelist()[:2] == ["patients.csv", "stays.csv"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--key", "nobody"], "no column of patients is called 'nobody'"),
        (["--key", "id=kind"], "No value of 'kind' in stays is in 'id' of patients"),
        (["--order", "when"], "no column of stays is called 'when'"),
        (["--rows-per-person", "1"], "must lie in 2 to"),
        (["--sensitive", "sex"], "cannot be hidden where it is learned how a person's rows follow"),
    ],
)
def test_what_cannot_be_linked_is_refused(files, tmp_path, capsys, more, words) -> None:
    assert synth(files, tmp_path / "out.zip", *more) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out.zip").exists()


def test_other_models_say_that_they_learn_no_order(files, tmp_path, capsys) -> None:
    settings = ["--settings", "steps=10", "em_steps=2", "batch=32", "hidden=8", "dimensions=3"]
    given = [
        "synth", str(files[0]), "--linked", str(files[1]), "--key", "id=who", "--order", "day",
        "--model", "p3gm", "--epsilon", "2", "--quiet", "--out", str(tmp_path / "out.zip"),
    ]  # fmt: skip
    assert main([*given, *settings]) == 0
    assert "p3gm learns each person's rows without their order" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        people, events = read(archive, "patients.csv"), read(archive, "stays.csv", sep=";")
    assert events["who"].isin(people["id"]).all()


def test_one_table_with_an_order_is_drawn_event_by_event(tmp_path) -> None:
    frame = visits(PEOPLE)
    frame = frame[frame["key"].notna()].drop(columns="key").astype({"day": "int64"})
    frame.to_csv(tmp_path / "flat.csv", index=False)
    given = [
        "synth", str(tmp_path / "flat.csv"), "--person", "who", "--order", "day", "--constant",
        "sex", "--rows-per-person", "4", "--model", "scan_focus", "--epsilon", "9", "--seed", "1",
        "--quiet", "--out", str(tmp_path / "out.csv"), "--settings", *QUICK,
    ]  # fmt: skip
    assert main(given) == 0
    made = pd.read_csv(tmp_path / "out.csv")
    assert list(made) == list(frame) and made["who"].nunique() == frame["who"].nunique()
    assert (made.groupby("who")["sex"].nunique() == 1).all()
    assert (made.groupby("who")["day"].diff().dropna() >= 0).all()
