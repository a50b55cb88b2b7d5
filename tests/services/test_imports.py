"""Tables brought in, changed and recognised without holding their rows; faults leave nothing."""

import io
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

from core.importing.apart import Request
from core.importing.raw_table import RawTable
from core.importing.reading_process import read_or_refuse
from core.reading.cells import TableReadError
from core.runs.accounts.people import account_choice
from core.runs.errors import StorageError
from core.runs.records import TableRecord
from core.runs.storage.processes.unfinished import NOTHING_KEPT
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT
from core.schema.column import Kind
from core.schema.form import FileForm
from core.schema.person import Person
from core.schema.rules.rules import Determines
from core.services import declarations, imports, runs
from core.services import tables as table_service
from core.services.schema_grid import grid_of
from tests.peak_memory import peak_mb

pytestmark = pytest.mark.slow

N = 3_000


def rows(n: int = N, seed: int = 0) -> pd.DataFrame:
    """A table with a rule, people and many values."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 4, n)
    return pd.DataFrame(
        {
            "who": [f"P{i:05d}" for i in rng.integers(0, n // 3, n)],
            "ward": ward,
            "name": np.array(["north", "south", "east", "west"])[ward],
            "age": pd.Series(rng.integers(0, 90, n), dtype="Int64").mask(rng.random(n) < 0.1),
            "cost": np.round(rng.normal(500, 90, n), 2),
            "day": (np.datetime64("2020-01-01") + rng.integers(0, 900, n)).astype("datetime64[us]"),
        }
    ).astype({"name": "str", "who": "str"})


def parquet(frame: pd.DataFrame) -> BinaryIO:
    """A file that was just opened."""
    return io.BytesIO(frame.to_parquet(index=False, row_group_size=500))


def bring(store: RunStore, frame: pd.DataFrame, name: str = "visits", **more: Any) -> TableRecord:
    return imports.import_file(store, parquet(frame), name=name, source="test", **more)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, five hundred rows at a time."""

    def read(
        request: Request, place: Path, *, content: BinaryIO, progress: imports.Progress
    ) -> RawTable:
        (place.parent / "content").write_bytes(content.read())
        request = replace(request, path=place.parent / "content")
        raw = read_or_refuse(request, place, 1024, progress)
        if isinstance(raw, str):
            raise TableReadError(raw)
        return raw

    monkeypatch.setattr("core.reading.raw_cells.BATCH_ROWS", 500)
    monkeypatch.setattr("core.services.imports.read_apart", read)


@pytest.fixture
def never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading all rows of a stored table at once is a fault."""
    monkeypatch.setattr(RunStore, "load_frame", lambda *_: pytest.fail("all rows were read"))


def left(store: RunStore) -> list[Path]:
    """Whatever lies in the workspace beside its database."""
    files = store.workspace.home.rglob("*")
    own = ("facsimile", "people.key")
    return [file for file in files if file.is_file() and not file.name.startswith(own)]


def test_a_table_is_the_same_however_it_comes_in(store: RunStore, tmp_path: Path) -> None:
    frame, told = rows(), list[int]()
    file = tmp_path / "visits.parquet"
    file.write_bytes(parquet(frame).read())
    text = frame.to_csv(index=False).encode()
    made = [
        imports.import_frame(store, frame, name="visits", source="test", account_id="a"),
        bring(store, frame, account_id="b", progress=told.append),
        imports.import_address(store, str(file), account_id="c"),
        imports.import_file(store, io.BytesIO(text), name="v.csv", source="test", account_id="d"),
    ]
    assert told[-1] == N
    first = made[0]
    for table in made[:3]:
        kinds = [{**column.fields(), "form": None} for column in table.schema.columns]
        assert kinds == [{**column.fields(), "form": None} for column in first.schema.columns]
        table.profile.pop(imports.FORM, None)
        assert table.profile == first.profile and table.n == N
        pd.testing.assert_frame_equal(store.load_frame(table.id), frame)
    assert [c.kind for c in made[3].schema.columns] == [c.kind for c in first.schema.columns]
    read = store.load_frame(made[3].id)
    pd.testing.assert_frame_equal(read.drop(columns="day"), frame.drop(columns="day"))


@pytest.mark.parametrize("line", [2, N])
def test_a_file_that_cannot_be_read_leaves_nothing(store: RunStore, line: int) -> None:
    lines = rows().to_csv(index=False).splitlines()
    lines[line] += ",more"
    content = io.BytesIO("\n".join(lines).encode())
    with pytest.raises(TableReadError, match=f"Line {line + 1} has 7 values"):
        imports.import_file(store, content, name="visits.csv", source="test")
    assert store.tables() == [] and left(store) == []
    assert not any(store.workspace.home.glob("importing/*"))


def test_how_a_file_is_written_may_be_said_beforehand(store: RunStore) -> None:
    content = io.BytesIO("street;town;size,rest\nx;Zürich;1,2\n".encode("latin-1"))
    form = FileForm(delimiter=",", encoding="cp437")
    table = imports.import_file(store, content, name="t.csv", source="test", form=form)
    assert table.columns == ("street;town;size", "rest") and table.schema.encoding == "cp437"
    assert store.load_frame(table.id).iloc[0, 0] == "x;Zⁿrich;1"


KILLED = """
import io, os, secrets, signal, sys
from pathlib import Path
import core.services.imports as imports
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from tests.services.test_imports import parquet, rows
secrets.token_hex = lambda length: "0123456789"
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "read":
    imports.choose_account = die
if sys.argv[2] == "written":
    RunStore.add_written = die
if sys.argv[2] == "recorded":
    written = RunStore.add_written
    RunStore.add_written = lambda *a, **k: (written(*a, **k), die())
progress = die if sys.argv[2] == "first batch" else lambda rows: None
with RunStore(Workspace(Path(sys.argv[1]))) as store:
    imports.import_file(store, parquet(rows()), name="visits", source="test", progress=progress)
"""


@pytest.mark.parametrize("killed", ["first batch", "read", "written", "recorded"])
def test_opening_a_workspace_removes_a_killed_import(store: RunStore, killed: str) -> None:
    home = store.workspace.home
    command = [sys.executable, "-m", "tests.script", KILLED, str(home), killed]
    assert subprocess.run(command, cwd=PROJECT_ROOT, check=False).returncode == -signal.SIGKILL
    assert any(home.glob("importing/*/*/content"))
    assert any(home.glob("tables/*/*")) is (killed in ("written", "recorded"))
    with runs.open_store(home) as again:
        assert [table.n for table in again.tables()] == ([N] if killed == "recorded" else [])
    kept = ["rows.parquet"] if killed == "recorded" else []
    assert [file.name for file in left(store)] == kept
    assert list(home.glob("importing/*")) == []


def test_a_fault_after_the_rows_were_read_leaves_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("core.services.imports.choose_account", broken)
    with pytest.raises(MemoryError):
        bring(store, rows())
    assert store.tables() == [] and left(store) == []


@pytest.mark.parametrize(
    "take",
    [bring, lambda store, frame: imports.import_frame(store, frame, name="t", source="test")],
    ids=["file", "frame"],
)
def test_a_store_that_goes_away_is_said_once(
    store: RunStore,
    monkeypatch: pytest.MonkeyPatch,
    take: Callable[[RunStore, pd.DataFrame], TableRecord],
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StorageError("The store is away.")

    monkeypatch.setattr(RunStore, "add_written", away)
    with pytest.raises(StorageError) as refused:
        take(store, rows())
    assert str(refused.value) == f"The store is away. {NOTHING_KEPT}"
    assert store.tables() == [] and left(store) == []


@pytest.mark.usefixtures("in_process", "never_whole")
@pytest.mark.parametrize("most", [1_000, N])
def test_the_same_people_are_recognised(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Equal rows in another order, and a part of them; strangers are not."""
    monkeypatch.setattr("core.importing.record_hashes.COMPARED", most)
    first = bring(store, rows())
    mixed = rows().sample(frac=1.0, random_state=3).reset_index(drop=True)
    again, part = bring(store, mixed, "again"), bring(store, mixed.iloc[:1_400], "part")
    assert again.account_id == part.account_id == first.account_id
    assert "All rows" in account_choice(store, again.id).linked[0].evidence
    assert bring(store, rows(seed=9), "other").account_id != first.account_id


def test_people_are_recognised_in_a_file_of_another_kind(store: RunStore) -> None:
    """Decimal commas, units and words for missing are read before rows are compared."""
    frame = rows(400)
    first = bring(store, frame)
    written = frame.assign(
        cost=[f"{cost:,.2f} €".translate(str.maketrans(",.", ".,")) for cost in frame["cost"]],
        age=frame["age"].astype("str").fillna("n/a"),
    )[["cost", "age", "who", "name"]]
    content = io.BytesIO(written.to_csv(index=False, sep=";").encode())
    again = imports.import_file(store, content, name="visits.csv", source="test")
    assert again.account_id == first.account_id


def test_a_second_table_of_one_name_is_numbered(store: RunStore) -> None:
    names = [bring(store, rows(30), name=name).name for name in ("v.csv", "v.csv", "w", "w")]
    assert names == ["v.csv", "v 2.csv", "w", "w 2"]


@pytest.mark.usefixtures("never_whole")
def test_schema_changes_read_needed_columns_only(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    plain, table = RunStore.raw_batches, bring(store, rows())

    def noted(self: RunStore, table_id: str, **options: Any) -> Iterator[pa.Table]:
        asked.append(options["columns"])
        return plain(self, table_id, **options)

    monkeypatch.setattr(RunStore, "raw_batches", noted)
    grid = grid_of(table.schema)
    grid.loc[table.schema.names.index("age"), "kind"] = Kind.CATEGORY.value
    table = table_service.change_grid(store, table, grid)
    assert table.schema["age"].kind is Kind.CATEGORY
    table = declarations.change_person(store, table, Person(columns=("who",), rows=5))
    assert table.training_n == rows()["who"].nunique()
    counts = table_service.label_counts(store, table, "name").set_index("label")
    assert counts["rows"].to_dict() == rows()["name"].value_counts().to_dict()
    assert counts["people"].to_dict() == rows().groupby("name")["who"].nunique().to_dict()
    rule = Determines(source="ward", result="name")
    table = declarations.change_rules(store, table, [rule])
    table = declarations.declare_values(store, table, rule)
    assert table.schema.rules[0].mapping == dict(  # type: ignore[union-attr]
        zip("0123", ["north", "south", "east", "west"], strict=True)
    )
    assert declarations.broken_rules(table) == {table.schema.rules[0].text: 0}
    table = table_service.change_list(store, table, "name", ["north", "south"])
    assert declarations.broken_rules(table) == {}, "counted for other labels"
    counted = {one["name"]: one for one in table.profile["columns"]}
    assert counted["name"]["misfit"] == int((~rows()["name"].isin(["north", "south"])).sum())
    assert counted["age"]["missing"] == pytest.approx(rows()["age"].isna().mean())
    assert asked and all(names is not None and len(names) <= 2 for names in asked)


def test_people_are_recounted_when_their_key_is_retyped(store: RunStore) -> None:
    """As numbers 7 and 7.0 are one person, as labels they are two."""
    content = b"who,x\n" + b"7,1\n7.0,2\n8.5,3\n" * 10
    table = imports.import_file(store, io.BytesIO(content), name="t.csv", source="test")
    table = declarations.change_person(store, table, Person(columns=("who",), rows=20))
    people = {}
    for dtype in ("float64", "str"):
        key = table.schema["who"].model_copy(update={"kind": Kind.IDENTIFIER, "dtype": dtype})
        table = table_service.confirm_schema(store, table.id, table.schema.replace(key))
        people[dtype] = table.training_n
    assert people == {"float64": 2, "str": 3}


def test_memory_follows_the_batch_and_not_the_rows(tmp_path: Path) -> None:
    """A process of its own reads five times the rows; its largest size hardly grows."""
    script = (
        "import sys; from pathlib import Path\n"
        "import core.reading.raw_cells as cells; cells.BATCH_ROWS = 20_000\n"
        "from core.reading.opening import open_path\n"
        "from core.importing.raw_table import keep_rows\n"
        "source = open_path(Path(sys.argv[1]), Path())\n"
        "raw = keep_rows(source, Path(sys.argv[2]), proposing=True)\n"
        "assert raw.n == int(sys.argv[3])\n"
    )
    for ending in ("parquet", "csv"):
        peaks = []
        for n in (300_000, 1_500_000):
            file = tmp_path / f"{n}.{ending}"
            rng = np.random.default_rng(0)
            frame = pd.DataFrame({f"x{i}": rng.normal(size=n).round(4) for i in range(4)})
            if ending == "csv":
                write_csv(pa.Table.from_pandas(frame), file)
            else:
                frame.to_parquet(file, index=False, row_group_size=50_000)
            peaks.append(peak_mb(script, file, tmp_path / f"rows{n}", n))
        assert peaks[1] - peaks[0] < 60, f"{ending}: {peaks} MB"


@pytest.mark.usefixtures("in_process", "never_whole")
def test_a_file_with_more_values_than_are_kept(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.proposing.propose.VALUES", 1_500)
    frame = rows()
    table = bring(store, frame)
    column, picture = table.schema["cost"], table.profile["columns"][4]
    assert (picture["low"], picture["high"]) == (frame["cost"].min(), frame["cost"].max())
    assert column.step == 0.01 and sum(picture["counts"]) == N and picture["misfit"] == 0
