"""Finished runs that can be asked, with replicas and without."""

from __future__ import annotations

import pandas as pd
import pytest

from core.inference.replicas import COUNT, Replica, write_replica
from core.runs.storage.artefacts import SYNTHETIC_TABLE
from core.services.sample_tables import sample_table
from tests.pages.screen import finish, small_report

POOL = sample_table(4000)


def visits(seed: int) -> pd.DataFrame:
    return POOL.sample(400, random_state=seed).reset_index(drop=True)


@pytest.fixture
def done(store, start):
    """A finished run whose synthetic table is a sample of its kind."""
    run = start()
    finish(store, run, report=small_report(filled=True))
    with store.artefacts(run.id).replacing(SYNTHETIC_TABLE) as file:
        visits(1).to_parquet(file)
    return store.run(run.id)


@pytest.fixture
def replicated(store, done):
    for number in range(COUNT):
        source, drawn = (visits(10 + 2 * number + i) for i in (0, 1))
        write_replica(store.artefacts(done.id), number, Replica(source, drawn))
    return done
