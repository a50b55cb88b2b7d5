"""Made-up identifiers look like the originals, differ where they did, and have enough room."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from pydantic import ValidationError

from core.schema.column import Column, Kind, SchemaError
from core.schema.surrogates import check_room, room, surrogate


def identifier(pattern: str, dtype: str = "str", kind: Kind = Kind.IDENTIFIER) -> Column:
    return Column(name="visit", kind=kind, pattern=pattern, dtype=dtype)


@pytest.mark.parametrize(
    ("pattern", "form", "values"),
    [
        ("V######", r"V\d{6}", 10**6),
        ("@@-aa##", r"[A-Z]{2}-[a-z]{2}\d{2}", 26**4 * 100),
        ("****************", r"[A-Z0-9]{16}", 36**16),
        ("###", r"\d{3}", 1000),
    ],
)
def test_values_have_the_pattern_and_differ(pattern: str, form: str, values: int) -> None:
    column = identifier(pattern)
    assert room(column) == values
    made = surrogate(column, 1000)
    assert made.is_unique and all(re.fullmatch(form, value) for value in made)
    assert made.tolist() != sorted(made)  # no count of rows
    pd.testing.assert_series_equal(made, surrogate(column, 1000))


def test_whole_numbers_keep_their_length_and_type() -> None:
    made = surrogate(identifier("######", "int64"), 5000)
    assert made.dtype == "int64" and made.between(100_000, 999_999).all() and made.is_unique
    with pytest.raises(ValidationError, match="1 to 18 times #"):
        identifier("V###", "int64")


def test_too_short_a_pattern_is_refused_with_its_room() -> None:
    with pytest.raises(SchemaError, match="100 different values and 101 rows"):
        check_room([identifier("W-##")], 101)
    check_room([identifier("W-##")], 100)
    check_room([identifier("W-##", kind=Kind.TEXT)], 101)  # text repeats itself
    with pytest.raises(SchemaError, match="Make the pattern longer"):
        surrogate(identifier("W-##"), 101)


def test_without_a_pattern_made_up_values_are_numbered() -> None:
    plain = Column(name="visit", kind=Kind.IDENTIFIER)
    assert Column.model_validate(identifier("V#").model_dump()).pattern == "V#"
    assert surrogate(plain, 2).tolist() == ["visit-000001", "visit-000002"]
