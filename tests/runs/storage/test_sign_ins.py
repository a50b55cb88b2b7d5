"""Signing out: what is over and what is not, on both databases, for whoever opens them next."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.runs.storage.access import end_sign_ins, record_sign_in, sign_in_ended
from core.runs.storage.store import RunStore
from core.services import runs
from tests.postgres_server import BOTH

pytestmark = BOTH


@pytest.fixture
def store(database: str, tmp_path) -> Iterator[RunStore]:
    with runs.open_store(tmp_path / "home") as opened:
        yield opened


def test_nobody_is_signed_out_who_did_not_sign_out(store):
    assert not sign_in_ended(store, "ann", 100.0)
    record_sign_in(store, "ann", 100.0)
    assert not sign_in_ended(store, "ann", 100.0)


def test_only_sign_ins_seen_until_then_are_over(store, tmp_path):
    for issued in (100.0, 300.0, 200.0):
        record_sign_in(store, "ann", issued)
    record_sign_in(store, "ada", 50.0)
    end_sign_ins(store, "ann", 100.0)
    with runs.open_store(tmp_path / "home") as other:  # another server, or this one restarted
        assert all(sign_in_ended(other, "ann", issued) for issued in (50.0, 100.0, 300.0))
        assert not sign_in_ended(other, "ann", 300.5) and not sign_in_ended(other, "ada", 50.0)
        record_sign_in(other, "ann", 400.0)
        assert not sign_in_ended(other, "ann", 400.0) and sign_in_ended(other, "ann", 300.0)


def test_a_sign_in_that_nobody_saw_before_is_over_too(store):
    end_sign_ins(store, "ann", 9e9)  # dated by a clock far ahead of ours
    assert sign_in_ended(store, "ann", 9e9)


def test_pages_that_open_at_once_record_the_newest(store):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda issued: record_sign_in(store, "ann", float(issued)), range(40)))
    end_sign_ins(store, "ann", 0.0)
    assert sign_in_ended(store, "ann", 39.0) and not sign_in_ended(store, "ann", 39.5)
