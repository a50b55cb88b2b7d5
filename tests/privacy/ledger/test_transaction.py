"""Transactions that are cut off are done again; refused ones are not."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from core.privacy.ledger.transaction import TRIES, repeatable


class ServerError(Exception):
    def __init__(self, sqlstate: str | None) -> None:
        self.sqlstate = sqlstate


def count(sqlstate: str | None, *, failures: int, cut_off: bool = False) -> tuple[int, bool]:
    """How often a transaction is tried that fails so often, and whether it ends well."""
    tries = 0

    @repeatable
    def transaction() -> str:
        nonlocal tries
        tries += 1
        if tries <= failures:
            raise DBAPIError("COMMIT", {}, ServerError(sqlstate), connection_invalidated=cut_off)
        return "kept"

    try:
        kept = transaction() == "kept"
    except DBAPIError:
        kept = False
    return tries, kept


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_what_the_server_could_not_put_in_order_is_done_again(sqlstate: str) -> None:
    assert count(sqlstate, failures=TRIES - 1) == (TRIES, True)
    assert count(sqlstate, failures=TRIES) == (TRIES, False)


def test_a_broken_connection_is_tried_again() -> None:
    assert count(None, failures=1, cut_off=True) == (2, True)


@pytest.mark.parametrize("sqlstate", ["23505", "55P03", "42501", None])
def test_what_was_refused_is_not_asked_again(sqlstate: str | None) -> None:
    assert count(sqlstate, failures=1) == (1, False)
