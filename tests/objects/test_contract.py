"""What every `ArtefactStore` promises, wherever artefacts lie."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.runs.errors import NotFoundError
from core.runs.storage.artefacts import CHECKPOINT, METER, MODEL, ArtefactStore, LocalArtefacts
from core.runs.storage.storages import open_storage
from core.runs.workspace import Workspace, private_folder

LARGE = 3 * 2**14  # more than a manifest holds itself


@pytest.fixture(params=["local", "memory", "s3"])
def artefacts(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ArtefactStore:
    if request.param == "local":
        monkeypatch.delenv("FACSIMILE_STORAGE", raising=False)
    elif request.param == "memory":
        monkeypatch.setenv("FACSIMILE_STORAGE", f"memory://{uuid.uuid4().hex}")
    else:
        request.getfixturevalue("bucket")
    private_folder(tmp_path / "home" / "runs" / "abcdef")
    return open_storage(Workspace(tmp_path / "home")).run("abcdef")


def put(artefacts: ArtefactStore, name: str, content: bytes) -> None:
    with artefacts.replacing(name) as file:
        file.write(content)


def get(artefacts: ArtefactStore, name: str) -> bytes:
    with artefacts.open(name) as file:
        return file.read()


def test_what_was_put_is_there_until_it_is_deleted(artefacts):
    assert not artefacts.exists("a.json")
    with pytest.raises(FileNotFoundError):
        artefacts.open("a.json")
    before = time.time() - 2  # stores tell whole seconds
    put(artefacts, "a.json", b"one")
    assert artefacts.exists("a.json") and get(artefacts, "a.json") == b"one"
    assert before <= artefacts.modified("a.json") <= time.time() + 2
    put(artefacts, "a.json", b"another")
    assert get(artefacts, "a.json") == b"another"
    artefacts.delete("a.json")
    artefacts.delete("a.json")
    assert not artefacts.exists("a.json")


def test_a_block_that_fails_leaves_what_was_there(artefacts):
    put(artefacts, "a.json", b"whole")
    with pytest.raises(RuntimeError), artefacts.replacing("a.json") as file:
        file.write(b"ha")
        raise RuntimeError
    assert get(artefacts, "a.json") == b"whole"
    with pytest.raises(RuntimeError), artefacts.replacing("b.json") as file:
        file.write(b"ha")
        raise RuntimeError
    assert not artefacts.exists("b.json")


@pytest.mark.parametrize("name", ["", "..", "a/b", "../a", "/etc/passwd"])
def test_a_name_that_is_a_path_is_refused(artefacts, name):
    for ask in (
        artefacts.open,
        artefacts.replacing,
        artefacts.readable,
        artefacts.local,
        artefacts.filling,
        artefacts.exists,
        artefacts.modified,
        artefacts.names,
        artefacts.delete,
        artefacts.within,
    ):
        with pytest.raises(NotFoundError):
            answer = ask(name)
            if hasattr(answer, "__enter__"):
                answer.__enter__()


def test_folders_hold_artefacts_of_their_own(artefacts):
    assert artefacts.names("exports") == []
    exports = artefacts.within("exports")
    put(exports, "a.csv", b"1")
    with exports.filling("b.csv") as out:
        out.write_bytes(b"2")
    assert sorted(artefacts.names("exports")) == ["a.csv", "b.csv"]
    assert not artefacts.exists("a.csv") and exports.exists("a.csv")
    assert exports.local("b.csv").read_bytes() == b"2"
    artefacts.delete("exports")
    assert artefacts.names("exports") == [] and not exports.exists("a.csv")


def test_a_file_on_this_machine_is_the_artefact_as_it_is_now(artefacts):
    with pytest.raises(FileNotFoundError):
        artefacts.local("a.csv").read_bytes()
    put(artefacts, "a.csv", b"1")
    path = artefacts.local("a.csv")
    assert path.name == "a.csv" and path.read_bytes() == b"1"
    put(artefacts, "a.csv", b"22")
    assert artefacts.local("a.csv").read_bytes() == b"22"


def test_parquet_is_read_by_columns_and_row_groups(artefacts):
    frame = pd.DataFrame({"a": range(5000), "b": np.random.default_rng(0).random(5000)})
    with artefacts.replacing("rows.parquet") as file:
        frame.to_parquet(file, index=False, row_group_size=1000)
    with artefacts.readable("rows.parquet") as rows:
        pd.testing.assert_frame_equal(pd.read_parquet(rows, columns=["b"]), frame[["b"]])
    with artefacts.readable("rows.parquet") as rows, pq.ParquetFile(rows) as parquet:
        third = parquet.read_row_group(2, columns=["a"]).to_pandas()
    assert third["a"].tolist() == list(range(2000, 3000))


@pytest.mark.parametrize("artefacts", ["local", "s3"], indirect=True)
def test_many_may_read_a_model_and_a_file_at_once(artefacts):
    """Not from fsspec's memory: two who open a file there read from one place in it."""
    with artefacts.filling(MODEL) as folder:
        (private_folder(folder) / "w.safetensors").write_bytes(b"w" * LARGE)
    put(artefacts, "a.csv", b"1" * LARGE)

    def look(_: int) -> tuple[bytes, bytes]:
        model = (artefacts.local(MODEL) / "w.safetensors").read_bytes()
        return model, artefacts.local("a.csv").read_bytes()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(look, range(24))) == {(b"w" * LARGE, b"1" * LARGE)}


def test_a_model_is_a_folder_with_folders(artefacts):
    assert not artefacts.exists(MODEL)
    with artefacts.filling(MODEL) as folder:
        (private_folder(folder) / "model.json").write_text("{}")
        (private_folder(folder / "base") / "w.safetensors").write_bytes(b"w" * LARGE)
    assert artefacts.exists(MODEL)
    assert sorted(artefacts.names(MODEL)) == ["base", "model.json"]
    copy = artefacts.local(MODEL)
    assert (copy / "base" / "w.safetensors").read_bytes() == b"w" * LARGE
    assert (copy / "model.json").read_text() == "{}"
    artefacts.delete(MODEL)
    assert not artefacts.exists(MODEL) and artefacts.names(MODEL) == []


@pytest.fixture
def at_work(artefacts: ArtefactStore) -> Iterator[ArtefactStore]:
    """A run in the middle: a meter, and a checkpoint of two files."""
    with artefacts.working() as working_folder:
        checkpoint = private_folder(working_folder.folder / CHECKPOINT)
        (working_folder.folder / METER).write_text("3 runs")
        working_folder.publish()
        (checkpoint / "fit.pt").write_bytes(b"s" * LARGE)
        (private_folder(checkpoint / "attempt-2") / METER).write_text("1 run")
        (checkpoint / ".fit.pt.half.part").write_bytes(b"half")
        working_folder.publish()
    yield artefacts


def test_a_fit_goes_on_from_what_was_published(at_work):
    assert at_work.exists(METER) and sorted(at_work.names(CHECKPOINT)) == ["attempt-2", "fit.pt"]
    with at_work.working() as working_folder:
        assert (working_folder.folder / METER).read_text() == "3 runs"
        assert (working_folder.folder / CHECKPOINT / "fit.pt").read_bytes() == b"s" * LARGE
        assert (working_folder.folder / CHECKPOINT / "attempt-2" / METER).read_text() == "1 run"
        put(working_folder, "certificate.json", b"{}")
        working_folder.delete(CHECKPOINT)
        assert working_folder.names(CHECKPOINT) == [] and working_folder.exists(METER)
    assert at_work.names(CHECKPOINT) == [] and at_work.exists(METER)
    assert get(at_work, "certificate.json") == b"{}"


def test_checkpoint_and_meter_are_deleted_alone(at_work):
    at_work.delete(CHECKPOINT)
    assert at_work.names(CHECKPOINT) == [] and at_work.exists(METER)
    at_work.delete(METER)
    assert not at_work.exists(METER)
    with at_work.working() as working_folder:
        left = [path for path in working_folder.folder.rglob("*") if path.is_file()]
        assert left == []


def test_clearing_one_run_leaves_those_whose_ids_begin_alike(artefacts, tmp_path):
    other = open_storage(Workspace(tmp_path / "home")).run("abcdef12")
    if isinstance(other, LocalArtefacts):
        private_folder(other.folder)
    for one in (artefacts, other):
        put(one, "a.json", b"1")
    artefacts.clear()
    assert not artefacts.exists("a.json")
    assert get(other, "a.json") == b"1"


def test_clearing_leaves_nothing(at_work):
    put(at_work, "a.json", b"1")
    with at_work.filling(MODEL) as folder:
        (private_folder(folder) / "model.json").write_text("{}")
    at_work.clear()
    assert not at_work.exists("a.json") and not at_work.exists(MODEL)
    assert at_work.names(CHECKPOINT) == [] and not at_work.exists(METER)
    if isinstance(at_work, LocalArtefacts):
        assert not at_work.folder.exists()
    else:
        assert at_work.bucket.keys() == []
    at_work.clear()
