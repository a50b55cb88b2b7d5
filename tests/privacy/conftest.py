"""A ledger with one account."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from core.privacy.ledger.ledger import Ledger
from tests.ledger_files import ledger_files
from tests.privacy.toys import N


@pytest.fixture
def engine(tmp_path: Path, database: str) -> Iterator[Engine]:
    (tmp_path / "home").mkdir()
    opened = create_engine(database)
    yield opened
    opened.dispose()


@pytest.fixture
def ledger(engine: Engine, tmp_path: Path) -> Ledger:
    """(3, 1e-5) for the account "people"."""
    opened = Ledger(engine, ledger_files(tmp_path / "home"))
    opened.register("people", 3.0, 1e-5, n=N)
    return opened
