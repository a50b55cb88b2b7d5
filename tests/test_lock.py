"""The lock holds what the requirements ask for, with hashes, and every licence is named."""

from __future__ import annotations

from pathlib import Path

from docs import make_lock

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCKED = make_lock.pinned(LOCK)


def test_the_lock_holds_what_the_requirements_pin():
    asked = make_lock.pinned((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    assert asked and {name: LOCKED.get(name) for name in asked} == asked


def test_every_locked_package_has_hashes():
    entries = [entry for entry in LOCK.replace("\\\n", " ").splitlines() if "==" in entry]
    assert len(entries) >= len(LOCKED) > 60  # of some packages a version for each Python
    assert [entry[:40] for entry in entries if "--hash=sha256:" not in entry] == []


def test_every_locked_package_has_a_licence():
    rows = [line.strip("| ").split(" | ") for line in make_lock.PAGE.read_text().splitlines()[4:]]
    named = {row[0]: row[1:] for row in rows if len(row) > 1 and row[0] in LOCKED}
    assert {name: row[0] for name, row in named.items()} == LOCKED
    unknown = [name for name, row in named.items() if len(row) < 2]
    assert all(name.startswith(("nvidia-", "cuda-", "triton")) for name in unknown), unknown
