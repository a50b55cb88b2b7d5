"""What a name says of keys, and what many rows share; dates written as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from core.schema.column import Kind
from tests.proposing.test_infer import column


def test_keys_that_many_rows_share_are_labels() -> None:
    teams = column([f"T{i % 30}" for i in range(9000)], "teamID")
    assert teams.kind is Kind.CATEGORY and "keys of people" in teams.note
    shops = column([i % 77 + 1 for i in range(20_000)], "shop_id")
    assert shops.kind is Kind.CATEGORY and len(shops.categories or ()) == 77
    assert shops.categories is not None and shops.categories[:2] == ("1", "2")
    years = column([1985 + i % 30 for i in range(9000)], "yearID")
    assert years.kind is Kind.INTEGER and years.low is not None and years.low <= 1985


@pytest.mark.parametrize("name", ["patient_id", "ID", "userId", "card key"])
def test_keys_of_people_are_identifiers_always(name: str) -> None:
    for values in ([i % 30 for i in range(9000)], [f"P{i % 30}" for i in range(9000)]):
        assert column(values, name).kind is Kind.IDENTIFIER


def test_numbers_of_people_are_keys_and_counts_are_not() -> None:
    numbers = [135 + 37 * (i % 7000) for i in range(10_000)]
    for name in ("patient_nbr", "Kundennummer", "Konto-Nr", "contract no"):
        assert column(numbers, name).kind is Kind.IDENTIFIER
    for name in ("number_of_patients", "house_number"):
        assert column(numbers, name).kind is Kind.INTEGER
    children = column([i % 6 + 1 for i in range(9000)], "child number")
    assert children.kind not in (Kind.IDENTIFIER, Kind.TEXT)


def test_few_keys_of_people_are_no_labels() -> None:
    for values in ([i % 12 for i in range(9000)], [f"P{i % 12}" for i in range(9000)]):
        assert column(values, "patient_id").kind is Kind.IDENTIFIER
        assert column(values, "customer_type_id").kind is Kind.CATEGORY
    assert column(["android", "ios", "web"] * 100, "phone").kind is Kind.CATEGORY


def test_a_pattern_of_keys_has_room_for_every_row() -> None:
    assert column([f"{a}{b}" for a in "ABCDE" for b in "VWXYZ"] * 400, "user id").pattern is None
    assert column([f"K{i:05}" for i in range(300)] * 4, "user id").pattern == "K#####"


def test_what_most_rows_hold_names_nobody() -> None:
    """As an area of the first floor's porch, X3Ssn, which hardly any house has."""
    random = np.random.default_rng(3)
    areas = np.where(random.random(3_000) < 0.05, random.integers(50, 400, 3_000), 0)
    assert column(areas, "X3Ssn.Porch").kind is Kind.INTEGER
    assert column(random.integers(1, 500, 3_000), "X3Ssn.Porch").kind is Kind.IDENTIFIER
