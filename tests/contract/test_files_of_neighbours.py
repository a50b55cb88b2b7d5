"""Two files that differ in one record or person: what `synth` writes and says is the same.

The whole command runs on each, under a schema that was declared before, in a workspace of its own.
What the door to rows releases is held fixed, so a difference came past it, through how the file is
read. What goes to stderr is for whoever holds the rows.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.cli.main import main
from core.encoding.codec import Codes
from core.encoding.person_rows import PersonRows
from core.operations.monitoring import metrics_text
from core.privacy.guarded import PrivateTable
from core.privacy.meter import Meter
from core.privacy.plan import Plan
from core.privacy.summation import Summation
from core.reading.typed_cells import typed_rows
from core.runs.execution import attempts
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import Column, SchemaColumn
from core.schema.schema import Domain, Schema
from tests.contract.fits import QUICK
from tests.contract.leaving import DECLARED, TIMES, people, repeat
from tests.privacy.deterministic_noise import DeterministicNoise

pytestmark = pytest.mark.slow

LINE = 18  # of the record that is spelled otherwise
Synth = Callable[..., dict[str, bytes]]
ODD: dict[str, dict[str, str]] = {
    "other content": {"age": "130", "cost": "79999.5", "ward": "d", "day": "1971-12-30"},
    "nothing": dict.fromkeys(("key", "remark", "age", "cost", "ward", "day", "ill"), ""),
    "marks of missing": {"age": "-99", "cost": "n/a", "ward": "NA", "day": "NULL", "ill": "?"},
    "numbers of other lands": {"age": "3.5", "cost": '"1.234,5 €"', "day": "31.12.1999"},
    "beyond all bounds": {"age": "9" * 20, "cost": "1e300", "ward": "moon", "day": "9999-12-31"},
    "words": {"key": "ABC", "age": "old", "cost": "much", "day": "1999-12-31T12:30+02:00"},
    "long text": {"key": "1" * 23, "remark": "x" * 5_000, "ward": "y" * 3_000},
    "marks of the file": {"remark": '"a\nb;c\td ""e"" \udcff\x1b[31m"', "ward": "=1+1"},
    "spaces and cases": {"key": "0001", "age": " 44", "ward": " A ", "ill": "YES"},
}


class Door:
    """The door to rows with its output fixed: it has the first table's, whatever comes later."""

    def __init__(self) -> None:
        self._first: tuple[Codes, PersonRows | None] | None = None

    def __call__(
        self,
        codes: Codes,
        domain: Domain,
        plan: Plan,
        *,
        people: PersonRows | None,
        meter: Meter,
        summation: Summation | None,
    ) -> PrivateTable:
        self._first = self._first or (codes, people)
        codes, people = self._first
        noise = DeterministicNoise(5)
        return PrivateTable(
            codes, domain, plan, people=people, noise_source=noise, meter=meter, summation=summation
        )


@pytest.fixture
def synth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Synth:
    door, homes = Door(), itertools.count()
    schema = Schema(columns=[SchemaColumn(**c.model_dump()) for c in DECLARED], target="ill")

    def run(content: str, *options: str) -> dict[str, bytes]:
        folder = tmp_path / str(next(homes))
        folder.mkdir()
        (folder / "people.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
        (folder / "schema.json").write_text(schema.model_dump_json())
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("FACSIMILE_HOME", str(folder / "home"))
            patch.setattr(attempts, "PrivateTable", door)
            repeat(patch)
            return made(folder, options, capfd)

    return run


def made(
    folder: Path, options: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> dict[str, bytes]:
    """Run the command and the ledger's; all that is for others, without times."""
    capfd.readouterr()
    settings = [f"--settings={name}={value}" for name, value in QUICK["pearl"].items()]
    command = "synth people.csv --schema=schema.json --model=pearl --epsilon=1 --rows=40 --seed=7"
    more = "--keep-out=0 --review=0.1 --score=0.1 --save=run --out=synthetic.csv --json"
    assert main([*command.split(), *more.split(), *settings, *options]) == 0
    *lines, last = capfd.readouterr().out.splitlines()
    facts = json.loads(last)
    del facts["seconds"], facts["peak_memory_mb"]
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in [folder / "synthetic.csv", *(folder / "run").rglob("*")]
        if path.is_file()
    }
    certificate = json.loads(found["run/certificate.json"])
    timeless = {name: value for name, value in certificate.items() if name not in TIMES}
    assert main(["ledger", "show", "--json"]) == 0
    told = capfd.readouterr().out
    with RunStore(Workspace(folder / "home")) as store:
        metrics = [line for line in metrics_text(store).splitlines() if b"process_" not in line]
    return found | {
        "run/certificate.json": json.dumps(timeless).encode(),
        "said": "\n".join([*lines, json.dumps(facts)]).encode(),
        "ledger": re.sub(r'"(time|hash|previous)": ("\w*"|[\d.]+)|\d+-\d+-\d+ \d+:\d+', "", told)
        .encode(),
        "metrics": b"\n".join(metrics),
    }  # fmt: skip


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Names of what differs."""
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


def spelled(cells: dict[str, str]) -> str:
    """The file with some cells of one record written so."""
    frame = people()
    lines = [line.split(",") for line in frame.to_csv(index=False).splitlines()]
    for name, text in cells.items():
        lines[LINE][list(frame.columns).index(name)] = text
    return "".join(",".join(line) + "\n" for line in lines)


def test_however_one_record_is_spelled_all_files_are_the_same(synth: Synth) -> None:
    first = synth(spelled({}))
    assert {"synthetic.csv", "run/outside.html", "run/run.json", "said"} <= first.keys()
    for name, cells in ODD.items():
        assert differing(first, synth(spelled(cells))) == [], name


def rows_of_people() -> pd.DataFrame:
    """80 people with one to three rows each."""
    rng = np.random.default_rng(4)
    keys = np.repeat(np.arange(100, 180), rng.integers(1, 4, 80))
    n = len(keys)
    return pd.DataFrame(
        {
            "key": keys,
            "remark": [f"remark {i}" for i in range(n)],
            "age": rng.integers(0, 99, n),
            "cost": rng.integers(0, 99, n) * 0.5,
            "ward": rng.choice(["a", "b"], n),
            "day": pd.to_datetime(rng.integers(0, 366, n), unit="D"),
            "ill": rng.choice(["no", "yes"], n),
        }
    )


def test_whatever_rows_one_person_has_all_files_are_the_same(synth: Synth) -> None:
    rows = rows_of_people()
    mine, others = rows[rows["key"] == 117], rows[rows["key"] != 117]
    neighbours = {
        "one row": pd.concat([others, mine.iloc[:1]]),
        "first in the file": pd.concat([mine, others]),
        "forty rows": pd.concat([others, *(mine.iloc[:1].assign(age=i) for i in range(40))]),
        "other content": pd.concat([others, mine.assign(ward="moon", age=1_000, remark="=1")]),
        "another order": rows.sample(frac=1.0, random_state=1),
    }
    options = ("--person=key", "--rows-per-person=3")
    first = synth(rows.to_csv(index=False), *options)
    for name, frame in neighbours.items():
        assert differing(first, synth(frame.to_csv(index=False), *options)) == [], name


def test_a_type_that_all_cells_decide_is_caught(
    synth: Synth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: a table that is written as its own cells were read, not as the schema declares."""

    def as_read(rows: pa.Table, columns: Iterable[Column]) -> pd.DataFrame:
        ages = pd.to_numeric(rows["age"].to_pandas())
        print("age is", ages.dtype)  # to where everybody sees it
        return typed_rows(rows, columns).assign(age=ages)

    monkeypatch.setattr("core.services.synthesis.table_files.typed_rows", as_read)
    first, odd = synth(spelled({})), synth(spelled({"age": "3.5"}))
    assert "said" in differing(first, odd)
