"""Tables larger than memory: brought in, changed and recognised without holding their rows."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.local import LocalFileSystem

from core.runs.accounts.people import account_choice
from core.runs.storage.errors import RunStoreError, StorageError
from core.runs.storage.records import TableRecord
from core.runs.storage.store import RunStore
from core.runs.storage.unfinished import NOTHING_KEPT
from core.runs.storage.workspace import PROJECT_ROOT
from core.services import declarations, imports, runs
from core.services import tables as table_service
from core.services.imports import import_source
from core.table.form import FileForm
from core.table.grid import grid_of
from core.table.io.cells import TableReadError
from core.table.io.parquet import ParquetParts
from core.table.person import Person
from core.table.rules import Determines
from core.table.schema import Kind
from core.table.tally import VALUES
from tests.peak_memory import peak_mb

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


class Batches:
    """A source in this process, which may break."""

    words, form, doubts = "test", FileForm(), ("Read in doubt.",)

    def __init__(self, frame: pd.DataFrame, *, size: int = 500, breaks_at: int | None = None):
        self.frame, self.size, self.breaks_at = frame, size, breaks_at

    def prepare(self, folder: Path) -> None:
        (folder / "fetched").write_text("rows")

    def batches(self) -> Iterator[pd.DataFrame]:
        for first in range(0, len(self.frame), self.size):
            if self.breaks_at is not None and first >= self.breaks_at:
                raise TableReadError("The line broke. Nothing was kept.")
            yield self.frame.iloc[first : first + self.size]


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a thousand rows are large, and reading one at once is a fault."""
    monkeypatch.setattr("core.runs.storage.records.MOST_ROWS", 1_000)
    monkeypatch.setattr(RunStore, "load_frame", lambda *_: pytest.fail("all rows were read"))
    monkeypatch.setattr(RunStore, "load_split", lambda *_, **__: pytest.fail("rows were read"))


@pytest.fixture
def large(store: RunStore, small_memory: None) -> TableRecord:
    table = import_source(store, Batches(rows()), name="visits")
    assert table.large
    return table


def left(store: RunStore) -> list[Path]:
    """Whatever lies in the workspace beside its database."""
    files = store.workspace.home.rglob("*")
    own = ("facsimile", "people.key")
    return [file for file in files if file.is_file() and not file.name.startswith(own)]


def test_in_batches_a_table_is_what_it_is_at_once(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = imports.import_frame(
        store, rows(), name="visits", source="test", doubts=Batches.doubts, people="a"
    )
    assert not import_source(store, Batches(rows()), name="visits", people="b").large
    monkeypatch.setattr("core.runs.storage.records.MOST_ROWS", 1_000)
    told: list[int] = []
    batched = import_source(store, Batches(rows()), name="visits", people="c", progress=told.append)
    assert batched.large and told == [*range(500, N + 1, 500)]
    for table in store.tables():
        assert (table.schema, table.profile, table.n) == (at_once.schema, at_once.profile, N)
        pd.testing.assert_frame_equal(store.load_frame(table.id), rows())


@pytest.mark.parametrize("breaks_at", [0, 1_500])
def test_a_source_that_breaks_leaves_nothing(store: RunStore, breaks_at: int) -> None:
    with pytest.raises((TableReadError, RunStoreError), match="Nothing was kept"):
        import_source(store, Batches(rows(), breaks_at=breaks_at), name="visits")
    assert store.tables() == [] and left(store) == []
    assert not any(store.workspace.home.glob("importing/*"))


KILLED = """
import os, secrets, signal, sys
from pathlib import Path
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import Workspace
from core.services.imports import import_source
from tests.runs.test_imports import Batches, rows
secrets.token_hex = lambda length: "0123456789"
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
import core.services.imports as imports
if sys.argv[2] == "written":
    imports.propose = die
if sys.argv[2] == "recorded":
    written = RunStore.add_written
    RunStore.add_written = lambda *a, **k: (written(*a, **k), die())
progress = die if sys.argv[2] == "first batch" else lambda rows: None
with RunStore(Workspace(Path(sys.argv[1]))) as store:
    imports.is_large = lambda *_: True
    import_source(store, Batches(rows()), name="visits", progress=progress)
"""


@pytest.mark.parametrize("killed", ["first batch", "written", "recorded"])
def test_what_a_killed_import_left_goes_when_the_workspace_is_opened(
    store: RunStore, killed: str
) -> None:
    home = store.workspace.home
    command = [sys.executable, "-m", "tests.script", KILLED, str(home), killed]
    assert subprocess.run(command, cwd=PROJECT_ROOT, check=False).returncode == -signal.SIGKILL
    assert any(home.glob("importing/*/*/fetched")) and any(home.glob("tables/*/*"))
    with runs.open_store(home) as again:
        assert [table.n for table in again.tables()] == ([N] if killed == "recorded" else [])
    kept = ["rows.parquet"] if killed == "recorded" else []
    assert [file.name for file in left(store)] == kept
    assert list(home.glob("importing/*")) == []


def test_a_fault_after_the_rows_were_written_leaves_nothing(
    store: RunStore, small_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("core.services.imports.propose", broken)
    with pytest.raises(MemoryError):
        import_source(store, Batches(rows()), name="visits")
    assert store.tables() == [] and left(store) == []


@pytest.mark.parametrize("most_rows", [1_000, 10 * N], ids=["large", "small"])
def test_a_store_that_goes_away_is_said_once(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StorageError("The store is away.")

    monkeypatch.setattr("core.runs.storage.records.MOST_ROWS", most_rows)
    monkeypatch.setattr(RunStore, "add_written", away)
    with pytest.raises(StorageError) as refused:
        import_source(store, Batches(rows()), name="visits")
    assert str(refused.value) == f"The store is away. {NOTHING_KEPT}"
    assert store.tables() == [] and left(store) == []


def test_batches_that_differ_are_refused(store: RunStore) -> None:
    class Odd(Batches):
        def batches(self) -> Iterator[pd.DataFrame]:
            yield self.frame.iloc[:10]
            yield self.changed

    for changed, words in (
        (rows().astype({"cost": "str"}), "'cost' holds another type"),
        (rows().drop(columns="cost"), "other columns"),
    ):
        source = Odd(rows())
        source.changed = changed  # type: ignore[attr-defined]
        with pytest.raises(RunStoreError, match=words):
            import_source(store, source, name="visits")
    with pytest.raises(RunStoreError, match="no records"):
        import_source(store, Batches(rows()[:0]), name="visits")
    assert left(store) == []


def test_the_same_people_are_recognised(store: RunStore, large: TableRecord) -> None:
    """Equal rows in another order, and a part of them; strangers are not."""
    mixed = rows().sample(frac=1.0, random_state=3).reset_index(drop=True)
    again = import_source(store, Batches(mixed, size=700), name="again")
    part = import_source(store, Batches(mixed.iloc[:1_400].reset_index(drop=True)), name="part")
    assert again.people == part.people == large.people
    assert "All rows" in account_choice(store, again.id).linked[0].evidence
    assert import_source(store, Batches(rows(seed=9)), name="other").people != large.people


def test_schema_changes_read_needed_columns_only(
    store: RunStore, large: TableRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    plain = RunStore.batches

    def noted(self: RunStore, table_id: str, **options: object) -> Iterator[pd.DataFrame]:
        asked.append(options["columns"])  # type: ignore[arg-type]
        return plain(self, table_id, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(RunStore, "batches", noted)
    grid = grid_of(large.schema)
    grid.loc[large.schema.names.index("age"), "kind"] = Kind.CATEGORY.value
    table = table_service.change_grid(store, large, grid)
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
    counted = {one["name"]: one for one in table.profile["columns"]}
    assert counted["name"]["misfit"] == int((~rows()["name"].isin(["north", "south"])).sum())
    assert counted["age"]["missing"] == pytest.approx(rows()["age"].isna().mean())
    assert asked and all(names is not None and len(names) <= 2 for names in asked)


def test_memory_follows_the_batch_and_not_the_rows(tmp_path: Path) -> None:
    """A process of its own brings in three times the rows; its largest size hardly grows."""
    script = (
        "import sys; from pathlib import Path\n"
        "import core.runs.storage.records as records; records.MOST_ROWS = 1_000\n"
        "import core.table.io.sources as sources; sources.BATCH_ROWS = 20_000\n"
        "from fsspec.implementations.local import LocalFileSystem\n"
        "from core.runs.storage.store import RunStore\n"
        "from core.runs.storage.workspace import Workspace\n"
        "from core.services.imports import import_source\n"
        "from core.table.io.parquet import ParquetParts\n"
        "with RunStore(Workspace(Path(sys.argv[2]))) as store:\n"
        "    source = ParquetParts([sys.argv[1]], LocalFileSystem(), 'test')\n"
        "    assert import_source(store, source, name='t').n == int(sys.argv[3])\n"
    )
    peaks = []
    for n in (300_000, 1_700_000):
        file = tmp_path / f"{n}.parquet"
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(6)})
        frame.to_parquet(file, index=False, row_group_size=50_000)
        peaks.append(peak_mb(script, file, tmp_path / f"w{n}", n))
    assert peaks[1] - peaks[0] < 60, f"{peaks} MB; the rows more are 64 MB, once"


def test_a_parquet_file_with_more_values_than_are_kept(
    store: RunStore, small_memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert VALUES >= 10_000  # of a list that may be declared
    monkeypatch.setattr("core.table.io.sources.BATCH_ROWS", 400)
    monkeypatch.setattr("core.services.imports.VALUES", 1_500)
    frame = rows()
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    source = ParquetParts([str(tmp_path / "a.parquet")], LocalFileSystem(), "test")
    table = import_source(store, source, name="t")
    column, picture = table.schema["cost"], table.profile["columns"][4]
    assert (picture["low"], picture["high"]) == (frame["cost"].min(), frame["cost"].max())
    assert column.step == 0.01 and sum(picture["counts"]) == N and picture["misfit"] == 0
