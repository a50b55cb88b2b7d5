"""Columns counted some rows at a time come to what all rows at once come to."""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.proposing.profile import Profile
from core.proposing.propose import Counts, propose_table
from core.reading.raw_cells import as_written, raw_frame
from core.reading.tally import VALUES, Tally, TallyBuilder, quantile
from core.schema.column import Column, Kind
from core.schema.labels import to_labels
from core.schema.schema import Schema

pytestmark = pytest.mark.slow


def tables(seeds: int = 8) -> Iterator[pd.DataFrame]:
    """Random tables with every kind of column and of doubt."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 7, 90, 1500, 3000]))
        days = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
        frame = pd.DataFrame(
            {
                "whole": rng.integers(0, int(rng.choice([3, 20, 10**9])), n),
                "serial": rng.permutation(n),
                "number": np.round(rng.normal(0, 100, n), int(rng.integers(0, 9))),
                "spiked": np.where(rng.random(n) < 0.6, 0, np.exp(2 * rng.normal(size=n))),
                "coded": np.where(rng.random(n) < 0.2, -99, rng.integers(0, 90, n)),
                "gaps": pd.Series(rng.integers(0, 40, n)).astype("Int64").mask(rng.random(n) < 0.3),
                "holes": pd.Series(rng.normal(size=n)).mask(rng.random(n) < 0.3),
                "words": rng.choice([f"w{i}" for i in range(int(rng.choice([1, 2, 300])))], n),
                "yes": rng.choice(["yes", "no"], n),
                "level": rng.choice(["low", "medium", "high"], n),
                "key": [f"P{i:06d}" for i in rng.permutation(n)],
                "day": days.astype("datetime64[us]"),
                "written": np.datetime_as_string(days, unit="D"),
                "compact": [int(str(day).replace("-", "")) for day in days],
                "zoned": pd.Series(days.astype("datetime64[us]")).dt.tz_localize("Europe/Berlin"),
                "true": rng.random(n) < 0.5,
                "maybe": pd.Series(rng.random(n) < 0.5, dtype="boolean").mask(rng.random(n) < 0.3),
                "nothing": pd.Series([None] * n, dtype="str"),
            }
        )
        frame["words"] = frame["words"].astype("str").mask(rng.random(n) < 0.1)
        yield frame


def in_parts(rows: pa.Table, most: int) -> list[pa.Table]:
    """The table in parts of at most so many rows."""
    return [rows.slice(first, most) for first in range(0, rows.num_rows, most)]


def text_of(frame: pd.DataFrame) -> pa.Table:
    """The table as a text file has it."""
    text = pd.DataFrame({name: to_labels(frame[name]).fillna("") for name in frame})
    return as_written(pa.Table.from_pandas(text, preserve_index=False))


def counts_of(batches: list[pa.Table], most: int = VALUES) -> Counts:
    """Counts that keep so many different values of a column at most."""
    with patch("core.proposing.propose.VALUES", most):
        return Counts.of(batches)


def streamed(rows: pa.Table, part: int = 10**6, most: int = VALUES) -> tuple[Schema, Profile]:
    """Schema and picture of a table that passes by in parts."""
    batches = in_parts(rows, part)
    counts = counts_of(batches, most)
    return propose_table(counts, lambda names: [batch.select(list(names)) for batch in batches])


@pytest.mark.parametrize("rows", [1, 33, 1000])
def test_schema_and_picture_are_those_of_the_whole_table(rows: int) -> None:
    for frame in tables(4 if rows > 1 else 2):
        frame = frame.head(60) if rows == 1 else frame
        for raw in (raw_frame(frame), text_of(frame)):
            assert streamed(raw, rows) == streamed(raw)


def test_numpy_agrees_on_quantiles() -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 9, 1000):
        values = np.round(rng.normal(size=n), 1)
        tally = Tally.of(pd.Series(values)).numbers(Column(name="x", kind=Kind.NUMBER))
        for share in (0.0, 0.05, 0.31, 0.5, 0.95, 1.0):
            assert quantile(tally, share) == np.quantile(values, share)


# -- columns with more values than are kept ------------------------------------------------------

N = 24_000
MOST = 2_500  # values of each column that are kept


def wide_columns(order: str) -> pd.DataFrame:
    """Columns of very many values, in several orders."""
    rng = np.random.default_rng(1)
    numbers = np.round(rng.normal(50, 10, N), 3)
    numbers[:3] = -7.125, 0.0001, 93.5
    spiked = np.where(rng.random(N) < 0.4, 0.0, np.exp(rng.normal(5, 2, N)))
    seconds = rng.integers(0, 10**9, N).astype("timedelta64[s]") + np.datetime64("2001-01-01", "us")
    frame = pd.DataFrame(
        {
            "number": numbers,
            "spiked": spiked,
            "coded": np.where(rng.random(N) < 0.1, -99, rng.integers(0, 10**6, N)),
            "moment": seconds,
            "written": np.datetime_as_string(seconds.astype("datetime64[s]")),
            "key": [f"K{i:06d}" for i in rng.permutation(N)],
            "ward": rng.choice(["a", "b", "c"], N, p=[0.9, 0.0999, 0.0001]),
        }
    )
    return frame.sort_values(order, ignore_index=True) if order else frame


@pytest.mark.parametrize("order", ["", "number", "spiked", "coded"])
@pytest.mark.parametrize("raw", [raw_frame, text_of])
def test_what_must_be_exact_is_where_values_are_left_out(order: str, raw) -> None:  # type: ignore[no-untyped-def]
    rows = raw(wide_columns(order))
    whole, told = streamed(rows)
    schema, picture = streamed(rows, 2_000, MOST)
    for column in schema.columns:
        exact, name = whole[column.name], column.name
        assert (column.kind, column.low, column.high) == (exact.kind, exact.low, exact.high), name
        assert (column.step, column.scale, column.spikes) == (
            exact.step,
            exact.scale,
            exact.spikes,
        ), name
        assert (column.categories, column.codes) == (exact.categories, exact.codes), name
        one, other = picture[name], told[name]
        for fact in ("missing", "low", "high", "edges", "misfit", "listed", "rare", "single"):
            assert getattr(one, fact) == getattr(other, fact), (name, fact)
        if one.edges is not None:
            assert one.counts == other.counts, name  # every row is in its bar
            spread = (other.high or 0) - (other.low or 0)
            assert abs((one.median or 0) - (other.median or 0)) < 0.02 * spread
        assert one.distinct == pytest.approx(other.distinct, rel=0.1), name


def counted(rows: pa.Table, part: int) -> dict[str, Tally]:
    return counts_of(in_parts(rows, part), MOST).tallies()


def test_few_values_are_held_and_all_rows_counted() -> None:
    frame = wide_columns("")
    tallies = counted(raw_frame(frame), 2_000)
    assert all(len(tally.rows) <= MOST for tally in tallies.values())
    assert not tallies["key"].exact and tallies["ward"].exact
    assert {tally.known + tally.absent for tally in tallies.values()} == {N}
    assert tallies["key"].unique and tallies["key"].distinct == N
    assert abs(tallies["spiked"].weights.sum() - N) < 1e-6
    rows = tallies["ward"].labels()
    assert rows.to_dict() == frame["ward"].value_counts().to_dict()


def test_sampled_values_do_not_depend_on_row_order() -> None:
    frame = wide_columns("")
    kept = []
    for rows in (frame[["key"]], frame[["key"]].iloc[::-1]):
        tally = counted(raw_frame(rows), 900)["key"]
        kept.append(set(tally.values[~tally.sure]))
    assert kept[0] == kept[1]


def test_one_late_fraction_makes_a_column_of_numbers() -> None:
    """The step is that of all rows, not of those whose values are kept: one of 24,000 tells."""
    values = pd.Series(np.arange(N, dtype=np.float64) * 7)
    values.iloc[N - 2] = 0.25
    text = values.astype("int64").astype("str")
    text.iloc[N - 2] = "0.25"
    for rows in (raw_frame(values.to_frame("x")), text_of(text.to_frame("x"))):
        schema, _ = streamed(rows, 2_000, MOST)
        assert schema["x"].kind is Kind.NUMBER and schema["x"].step == 0.01
        assert schema["x"].dtype == "float64"


def test_a_batch_without_values_changes_no_type() -> None:
    gaps = pd.DataFrame({"x": pd.Series([None] * 50, dtype="Int64")})
    some = pd.DataFrame({"x": pd.Series([1, 2, None], dtype="Int64")})
    tally = Counts.of(map(raw_frame, [gaps, some, gaps])).tallies()["x"]
    assert (tally.dtype, tally.absent, tally.known) == ("int64", 101, 2)
    with pytest.raises(ValueError, match="no rows"):
        TallyBuilder().tally()
