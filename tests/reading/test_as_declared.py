"""What one record's cells look like changes how nobody else's are encoded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.cli import review
from core.cli.common import synthesis_options
from core.cli.main import command_line
from core.cli.synth import read_with_schema
from core.encoding.codec import Codec, Codes
from core.encoding.holdout import split_rows
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.schema.column import DomainColumn, Kind
from core.schema.person import Person
from core.schema.schema import Domain, Schema
from core.services.synthesis.options import RefusedError
from tests.reading.files import read_table

pytestmark = pytest.mark.slow

ROWS, ONE = 120, 17
ODD = ("3.5", "n.a.", "1e5", "1,5", "€", "12 %", "2020", "")


def people() -> pd.DataFrame:
    """Rows as a file has them: text. Nobody else's cell is odd."""
    rng = np.random.default_rng(4)
    amounts = rng.gamma(2.0, 900.0, ROWS)
    return pd.DataFrame(
        {
            "who": [str(100 + place // 2) for place in range(ROWS)],
            "rating": rng.choice(["1", "2", "3"], ROWS),
            "dose": rng.choice(["0.5", "1.0", "2.5"], ROWS),
            "rate": rng.choice(["5%", "7%", "19%"], ROWS),
            "price": [f"{x:,.2f} €" for x in amounts],
            "preis": [f"{x:.2f}".replace(".", ",") for x in amounts],
            "day": rng.choice(["20200131", "20210730", "20211231"], ROWS),
        }
    )


@pytest.fixture
def read(tmp_path: Path) -> Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]]:
    """Read a file of such rows as the command line does with `--schema`."""

    def run(rows: pd.DataFrame, schema: Schema) -> tuple[pd.DataFrame, Schema]:
        rows.to_csv(tmp_path / "rows.csv", index=False)
        (tmp_path / "schema.json").write_text(schema.model_dump_json())
        words = ["plan", str(tmp_path / "rows.csv"), "--model", "pearl", "--epsilon", "1"]
        options = command_line().parse_args([*words, "--schema", str(tmp_path / "schema.json")])
        return read_with_schema(options, synthesis_options(options))

    return run


def declared(rows: pd.DataFrame, folder: Path, *, together: bool) -> Schema:
    rows.to_csv(folder / "first.csv", index=False)
    schema = read_table(folder / "first.csv").schema
    columns = tuple(
        column.model_copy(update={"kind": Kind.IDENTIFIER} if column.name == "who" else {})
        for column in schema.columns
    )
    columns = tuple(
        column.model_copy(update={"missing": True}) if column.modelled else column
        for column in columns
    )
    person = Person(columns=("who",), rows=2) if together else None
    return schema.model_copy(update={"columns": columns, "person": person})


def without(codes: Codes, place: int) -> tuple[np.ndarray, np.ndarray]:
    kept = np.arange(len(codes)) != place
    return codes.states[kept], codes.values[kept]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_record_moves_nobody_else(
    odd: str,
    read: Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]],
    tmp_path: Path,
) -> None:
    """Whole numbers, fractions, units, decimal commas and dates; the record is there or left out.

    A column's type follows from all of its cells, so one odd cell used to make every other row's
    cells unknown labels or missing.
    """
    rows = people()
    schema = declared(rows, tmp_path, together=False)
    layout = Layout(schema.domain())
    kinds = {column.name: column.kind for column in schema.columns}
    assert kinds["rating"].listed and kinds["dose"].listed and kinds["price"] is Kind.NUMBER
    before = encoded_records(read(rows, schema)[0], layout, None)[0]
    changed = rows.copy()
    changed.loc[ONE, rows.columns[1:]] = odd
    after = encoded_records(read(changed, schema)[0], layout, None)[0]
    gone = encoded_records(read(rows.drop(index=ONE), schema)[0], layout, None)[0]
    for one, other in zip(without(before, ONE), without(after, ONE), strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(without(after, ONE), (gone.states, gone.values), strict=True):
        assert np.array_equal(one, other)


def test_an_odd_key_moves_nobody_else(
    read: Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]], tmp_path: Path
) -> None:
    """Keys decide who comes first and who is held out; 101.0 is the person 101 is."""
    rows = people()
    schema = declared(rows, tmp_path, together=True)
    odd = rows.copy()
    odd.loc[ONE, "who"] = "3.5"
    plain = read(rows, schema)[0]["who"].astype(str)
    keys = read(odd, schema)[0]["who"].astype(str)
    assert keys[ONE] == "3.5" and plain.drop(index=ONE).equals(keys.drop(index=ONE))


def test_a_record_that_made_a_column_text_may_go(
    read: Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]], tmp_path: Path
) -> None:
    """The other way round: declared with the odd record, which is left out afterwards."""
    rows = people()
    rows["price"] = np.resize(["12.50 €", "7.00 €"], ROWS)
    rows.loc[ONE, ["rating", "dose", "rate", "price"]] = "unknown"
    schema = declared(rows, tmp_path, together=False)
    layout = Layout(schema.domain())
    assert schema["price"].kind.listed and schema["price"].dtype == "str"
    before = encoded_records(read(rows, schema)[0], layout, None)[0]
    gone = encoded_records(read(rows.drop(index=ONE), schema)[0], layout, None)[0]
    for one, other in zip(without(before, ONE), (gone.states, gone.values), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("date_format", [None, "%Y-%m-%d %H:%M:%S.%f"])
def test_a_moment_in_nanoseconds_moves_no_other_date(date_format: str | None) -> None:
    """It had made every other 9999-12-31 missing, since nanoseconds end in 2262."""
    others = ["9999-12-31 00:00:00.0", "0001-01-01 00:00:00.0", "2020-05-05 10:00:00.25"]
    column = DomainColumn(
        name="end", kind=Kind.DATETIME, low=-62_135_596_800.0, high=253_402_300_799.0,
        missing=True, date_format=date_format,
    )  # fmt: skip
    codec = Codec(Domain(columns=(column,)))
    alone = codec.encode(pd.DataFrame({"end": others}))
    cells = [*others, "2020-01-01 00:00:00.123456789"]
    beside = codec.encode(pd.DataFrame({"end": cells}))
    assert np.array_equal(alone.states, beside.states[:3]) and not beside.states.any()
    assert np.array_equal(alone.values, beside.values[:3])


def test_rows_that_are_as_declared_are_left_alone(
    read: Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]], tmp_path: Path
) -> None:
    rows = people()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    plain = read_table(tmp_path / "rows.csv").frame
    pd.testing.assert_frame_equal(read(rows, declared(rows, tmp_path, together=False))[0], plain)


def words_for_missing() -> pd.DataFrame:
    """NA is Namibia here, ten rows say N/A of a number, Null is somebody's name."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        {
            "country": rng.choice(["DE", "FR", "NA"], ROWS),
            "visits": [str(count) for count in rng.integers(0, 400, ROWS)],
            "name": rng.choice(["Smith", "Jones", "Null"], ROWS),
            "ward": rng.choice(["A1", "B2", "None"], ROWS),
        }
    )
    rows.loc[20:39, "visits"] = ""
    rows.loc[ONE, "visits"] = "N/A"
    rows.loc[40:48, "visits"] = "N/A"
    return rows


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_missing_words_follow_from_the_schema_alone(ending: str, tmp_path: Path) -> None:
    """A longer name among codes of two letters had made every Namibian's country missing."""
    rows = words_for_missing()
    file = tmp_path / f"rows{ending}"

    def written(table: pd.DataFrame) -> Path:
        table.to_csv(file, index=False) if ending == ".csv" else table.to_excel(file, index=False)
        return file

    schema = read_table(written(rows)).schema
    assert "NA" in (schema["country"].categories or ())
    assert schema["visits"].codes == ("N/A",) and "Null" in (schema["name"].categories or ())
    odd = rows.copy()
    odd.loc[ONE] = ["Germany", "four", "Smith 2", "?"]
    layout = Layout(schema.domain())

    def cells(table: pd.DataFrame) -> Codes:
        frame = read_table(written(table), schema=schema).frame
        return encoded_records(frame, layout, None)[0]

    before, after, gone = cells(rows), cells(odd), cells(rows.drop(index=ONE))
    for one, other in zip(without(before, ONE), without(after, ONE), strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(without(after, ONE), (gone.states, gone.values), strict=True):
        assert np.array_equal(one, other)
    assert len({tuple(row) for row in before.states}) > 9  # Namibia and N/A are states of their own
    beside = read_table(written(odd)).frame["country"]  # a proposal looks at all cells
    assert beside.isna().sum() == (rows["country"].drop(index=ONE) == "NA").sum()


def test_a_review_holds_out_the_records_that_the_run_did_not_see(
    read: Callable[[pd.DataFrame, Schema], tuple[pd.DataFrame, Schema]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who is held out follows from a record's cells, which one 3.5 had made others' floats."""
    rows = people()
    schema = declared(rows, tmp_path, together=False).model_copy(update={"holdout": 0.3})
    rows.loc[ONE, ["rating", "day"]] = ["3.5", "unknown"]
    frame, schema = read(rows, schema)
    trained, _ = split_rows(frame, schema.holdout, None)
    compared: list[pd.DataFrame] = []

    def record(real: pd.DataFrame, *others: Any, test: pd.DataFrame, **options: Any) -> None:
        compared.extend((real, test))
        raise RefusedError("seen")

    monkeypatch.setattr(review, "build_report", record)
    files = [str(tmp_path / "rows.csv")] * 2
    words = ["review", *files, "--schema", str(tmp_path / "schema.json"), "--out"]
    options = command_line().parse_args([*words, str(tmp_path / "report.html")])
    with pytest.raises(RefusedError, match="seen"):
        review.review(options)
    assert compared[0].equals(trained) and len(compared[1]) == ROWS - len(trained) > 20
