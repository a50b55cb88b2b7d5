"""Made-up keys have room for everybody, and for every event, before anything is spent."""

from __future__ import annotations

import pytest

from core.schema.column import Column, Kind, SchemaError
from core.schema.person import History, Person
from core.schema.surrogates import check_room

PERSON = Person(columns=("who",), rows=20, constant=("card",), history=History())


def key(name: str) -> Column:
    return Column(name=name, kind=Kind.IDENTIFIER, pattern="K-###")


@pytest.mark.parametrize("name", ["who", "card"])
def test_what_is_a_persons_needs_one_value_each(name: str) -> None:
    check_room([key(name)], 1000, PERSON)
    with pytest.raises(SchemaError, match="1,001 rows may need one each"):
        check_room([key(name)], 1001, PERSON)


def test_what_is_an_events_needs_one_for_each_event() -> None:
    check_room([key("stay")], 50, PERSON)
    with pytest.raises(SchemaError, match="1,020 rows may need one each"):
        check_room([key("stay")], 51, PERSON)
    check_room([key("stay")], 1000)  # of rows that are no events
