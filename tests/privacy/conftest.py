"""A ledger with one account."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from core.privacy.ledger.ledger import Ledger
from tests.privacy.toys import N


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    """(3, 1e-5) for the account "people"."""
    opened = Ledger(engine)
    opened.register("people", 3.0, 1e-5, n=N)
    return opened
