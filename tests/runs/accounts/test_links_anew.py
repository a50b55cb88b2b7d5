"""Of two tables about the same people none leaves their account without a word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.runs.accounts import people
from core.runs.errors import RunStoreError
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.services import imports
from core.services.sample_tables import sample_table


def bring(store: RunStore, frame: pd.DataFrame, name: str) -> TableRecord:
    return imports.import_frame(store, frame, name=name, source="test")


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return sample_table(300)


def test_the_first_of_two_tables_needs_words_as_the_second_does(
    store: RunStore, visits: pd.DataFrame
) -> None:
    """Else each of the two would have the whole limit, and no certificate would say so."""
    first = bring(store, visits, "first.csv")
    assert people.account_choice(store, first.id).linked == ()
    second = bring(store, visits.iloc[9:].rename(columns=str.upper), "second.csv")
    assert second.account_id == first.account_id
    with pytest.raises(RunStoreError, match="Say in words"):
        people.change_account(store, first.id, people.NEW)
    assert store.table(first.id).account_id == second.account_id
    (link,) = people.account_choice(store, first.id).linked  # from now on the page asks
    assert link.account_id == second.account_id and "'second.csv'" in link.evidence
    answer = people.change_account(store, first.id, people.NEW, "another town")
    said = {entry.account_id for entry in store.ledger.entries()}
    assert said == {second.account_id, answer.account_id} and answer.account_id != second.account_id


def test_a_table_that_comes_in_meanwhile_is_compared_too(
    store: RunStore, visits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, look, came = bring(store, visits, "first.csv"), people.link_anew, []

    def look_and_let_in(*given: object) -> object:
        found = look(*given)  # type: ignore[arg-type]
        if not came:
            came.append(bring(store, visits, "second.csv"))
        return found

    monkeypatch.setattr(people, "link_anew", look_and_let_in)
    with pytest.raises(RunStoreError, match="Say in words"):
        people.change_account(store, first.id, people.NEW)
    assert len({table.account_id for table in store.tables()}) == 1


def test_other_people_move_without_a_word(store: RunStore, visits: pd.DataFrame) -> None:
    first = bring(store, visits, "first.csv")
    bring(store, sample_table(200), "strangers.csv")
    assert people.change_account(store, first.id, people.NEW).linked == ()


def test_a_table_of_few_values_is_known_in_any_column_order(store: RunStore) -> None:
    """No row of it is single, so nothing but all its rows together tells whose they are."""
    draws = np.random.default_rng(0)
    frame = pd.DataFrame({name: draws.integers(0, 2 + i, 400) for i, name in enumerate("abcd")})
    first = bring(store, frame, "first.csv")
    again = frame.iloc[::-1, [2, 0, 3, 1]].set_axis(list("wxyz"), axis=1)
    assert bring(store, again, "again.csv").account_id == first.account_id
    with pytest.raises(RunStoreError, match="Say in words"):
        people.change_account(store, first.id, people.NEW)
    other = pd.DataFrame({name: draws.integers(0, 2 + i, 400) for i, name in enumerate("abcd")})
    assert bring(store, other, "other.csv").account_id != first.account_id
