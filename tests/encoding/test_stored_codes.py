"""Codes on disk: the same rows in the public order, to the last bit, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.encoding import stored_codes
from core.encoding.codec import Codec, Codes
from core.encoding.holdout import split_rows, training_batches
from core.encoding.key_groups import positions_in_order, public_order
from core.encoding.stored_codes import StoredCodes, bytes_needed, store_codes
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema

pytestmark = pytest.mark.slow

N = 1009


def domain(*, labels: int = 5) -> Domain:
    names = tuple(f"v{i}" for i in range(labels))
    columns = (
        Column(name="kind", kind=Kind.CATEGORY, categories=names, missing=True, dtype="str"),
        Column(name="x", kind=Kind.NUMBER, low=0.0, high=9.0, spikes=(0.0,), dtype="float64"),
        Column(name="y", kind=Kind.NUMBER, low=-1.0, high=1.0, missing=True, dtype="float64"),
    )
    return Schema(columns=columns).domain()


def rows(n: int = N, *, labels: int = 5) -> pd.DataFrame:
    random = np.random.default_rng(n)
    return pd.DataFrame(
        {
            "kind": pd.Series([f"v{i}" for i in random.integers(labels, size=n)], dtype="str"),
            "x": random.random(n) * 9 * (random.random(n) < 0.7),
            "y": np.where(random.random(n) < 0.2, np.nan, random.normal(size=n)),
        }
    )


def batches(frame: pd.DataFrame, size: int) -> Iterator[pd.DataFrame]:
    for start in range(0, len(frame), size):
        yield frame.iloc[start : start + size]


def stored(frame: pd.DataFrame, folder: Path, *, size: int = 100, labels: int = 5) -> StoredCodes:
    codec = Codec(domain(labels=labels))
    parts = (codec.encode(part) for part in batches(frame, size))
    codes = store_codes(parts, codec, len(frame), folder)
    assert codes is not None
    return codes


def same(a: Codes, b: Codes) -> bool:
    """Whether statistics see the same numbers, to the last bit."""
    a, b = a.to("cpu"), b.to("cpu")
    return bool((a.states == b.states).all()) and bool((a.values == b.values).all())


@pytest.mark.parametrize("size", [1, 100, 5000])
@pytest.mark.parametrize("pile", [1, 7, 300, 10**6])
def test_rows_lie_as_they_would_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, pile: int
) -> None:
    codec = Codec(domain())
    monkeypatch.setattr(stored_codes, "PILE_BYTES", pile * bytes_needed(codec, 1))
    in_memory = codec.encode(rows()).take(public_order(N))
    on_disk = stored(rows(), tmp_path, size=size)
    assert len(on_disk) == N and same(on_disk.to("cpu"), in_memory)
    assert same(on_disk.slice(17, 620), in_memory.slice(17, 620))
    index = np.array([5, 1000, 5, 0])
    assert same(on_disk.take(index), in_memory.take(index))


@pytest.mark.parametrize("labels", [2, 255, 256, 300, 5000])
def test_states_are_kept_whole_however_many_there_are(tmp_path: Path, labels: int) -> None:
    frame = rows(labels=labels)
    frame.loc[0, "kind"], frame.loc[1, "kind"] = f"v{labels - 1}", None
    in_memory = Codec(domain(labels=labels)).encode(frame).take(public_order(N))
    assert same(stored(frame, tmp_path, labels=labels).to("cpu"), in_memory)


def test_places_are_the_inverse_of_the_order() -> None:
    assert (positions_in_order(N)[public_order(N)] == np.arange(N)).all()
    assert (public_order(N) != np.arange(N)).any()


@pytest.mark.parametrize("given", [N - 1, N + 1, 3 * N])
def test_another_number_of_rows_is_refused(tmp_path: Path, given: int) -> None:
    codec = Codec(domain())
    parts = (codec.encode(part) for part in batches(rows(given), 100))
    assert store_codes(parts, codec, N, tmp_path) is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("size", [1, 64, 5000])
def test_the_holdout_is_that_of_the_whole_table(share: float, size: int) -> None:
    trained, _ = split_rows(rows(), share)
    parts = list(training_batches(batches(rows(), size), N, share))
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), trained)


def test_the_file_has_no_name_and_goes_with_its_process(tmp_path: Path) -> None:
    stored(rows(), tmp_path)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
from tests.encoding.test_stored_codes import rows, batches, domain
from core.encoding.codec import Codec
from core.encoding.stored_codes import store_codes
codec, folder = Codec(domain()), Path(sys.argv[1])

def parts():
    for part in batches(rows(), 100):
        yield codec.encode(part)
        if sys.argv[2] == "writing":
            print("ready", flush=True); time.sleep(60)

codes = store_codes(parts(), codec, 1009, folder)
print("ready", flush=True); time.sleep(60)
"""


@pytest.mark.parametrize("when", ["writing", "written"])
def test_a_kill_leaves_nothing(tmp_path: Path, when: str) -> None:
    command = [sys.executable, "-m", "tests.script", KILLED, str(tmp_path), when]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        held = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in _open_files(process.pid)]
        assert any(name.startswith(str(tmp_path)) for name in held)  # else nothing is tested
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.rglob("*")) == []


def _open_files(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except FileNotFoundError:
        pytest.skip("open files of another process cannot be listed on this system")


def test_a_failure_while_reading_leaves_nothing(tmp_path: Path) -> None:
    codec = Codec(domain())

    def parts() -> Iterator[Codes]:
        yield codec.encode(rows(100))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        store_codes(parts(), codec, N, tmp_path)
    assert list(tmp_path.iterdir()) == []
