"""Tables to databases: typed, linked, all of them or none."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sql

from core.reading.cells import TableReadError
from core.schema.column import Column, Kind
from core.writing.sql import SqlTable, SqlTarget

pytestmark = pytest.mark.slow
DATES = {"date_format": "%d.%m.%Y", "low": 0, "high": 2e9, "step": 86400}
COLUMNS = (
    Column(name="who", kind=Kind.IDENTIFIER, dtype="int64"),
    Column(name="on (day)", kind=Kind.DATETIME, **DATES),
    Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b")),
    Column(name="cost", kind=Kind.NUMBER, low=0, high=9, dtype="float64"),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'out.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def tables(who: int) -> list[SqlTable]:
    people = SqlTable("my.people", pd.DataFrame({"id": [1, 2]}), (), key="id")
    rows = {"who": [1, who], "on (day)": ["02.03.2024", None], "ward": ["a", None], "cost": [1, 2]}
    link = ("who", "my.people", "id")
    return [people, SqlTable("stays", pd.DataFrame(rows), COLUMNS, link=link)]


def test_rows_have_types_and_keys_that_hold(address: str) -> None:
    target = SqlTarget(address)
    target.check(["my.people", "stays"])
    target.write(tables(2))
    engine = sql.create_engine(address)
    with engine.connect() as connection:
        known = sql.inspect(connection)
        (key,) = known.get_foreign_keys("stays")
        assert (key["referred_table"], key["referred_columns"]) == ("my.people", ["id"])
        assert known.get_pk_constraint("my.people")["constrained_columns"] == ["id"]
        stays = sql.Table("stays", sql.MetaData(), autoload_with=engine)
        rows = connection.execute(sql.select(stays).order_by(stays.c.who)).all()
    engine.dispose()
    assert rows[0][0] == 1 and str(rows[0][1])[:10] == str(datetime.date(2024, 3, 2))
    assert rows[0][2:] == ("a", 1.0) and rows[1][1:3] == (None, None)
    with pytest.raises(TableReadError, match="has a table 'stays' already"):
        target.check(["stays"])


def test_tables_that_fail_midway_are_not_there(address: str) -> None:
    with pytest.raises(TableReadError, match="took none of the tables"):
        SqlTarget(address).write(tables(3))
    SqlTarget(address).check(["my.people", "stays"])


@pytest.mark.parametrize("address", ["mysql://u@h/x", "sqlite://", "nowhere"])
def test_addresses_of_other_databases_are_refused(address: str) -> None:
    with pytest.raises(TableReadError):
        SqlTarget(address)


def test_a_database_out_of_reach_is_said(tmp_path: Path) -> None:
    with pytest.raises(TableReadError, match="cannot be reached"):
        SqlTarget(f"sqlite:///{tmp_path / 'none' / 'out.db'}").check([])
