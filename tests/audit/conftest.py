"""Audits are kept in a workspace of the test, never in the developer's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace's folder, not made yet."""
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
