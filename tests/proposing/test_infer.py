"""The proposed schema: kinds, bounds, scales, spikes and doubts that a steward would agree with."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.proposing.code_patterns import SENTINELS
from core.proposing.kinds import infer_tally
from core.proposing.propose import infer_schema
from core.reading.tally import Tally
from core.schema.column import Kind, Provenance, SchemaColumn
from core.schema.labels import from_labels, from_numbers, to_labels, to_numbers
from core.writing.tables import write_csv_parts
from tests.reading.files import read_table

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(7)


def column(values: object, name: str = "c", dtype: object = None) -> SchemaColumn:
    return infer_tally(Tally.of(pd.Series(values, dtype=dtype)), name)  # type: ignore[call-overload]


def test_integers() -> None:
    ages = column(RNG.integers(17, 91, 500))
    assert ages.kind is Kind.INTEGER and ages.step == 1 and ages.dtype == "int64"
    assert (ages.low, ages.high) == (0, 100) and ages.scale == "linear" and not ages.missing
    gaps = column([*range(40), None, 60] * 2, dtype="Int64")
    assert gaps.kind is Kind.INTEGER and gaps.missing and gaps.dtype == "Int64"
    whole = column([float(x) for x in range(40)] + [None])
    assert whole.kind is Kind.INTEGER and whole.dtype == "float64"


@pytest.mark.parametrize(("places", "step"), [(1, 0.1), (2, 0.01), (4, 0.0001), (9, 0.0)])
def test_the_step_is_the_last_decimal(places: int, step: float) -> None:
    values = np.round(RNG.normal(size=300), places)
    found = column(values)
    assert found.kind is Kind.NUMBER and found.step == pytest.approx(step)
    assert found.low < values.min() and found.high > values.max()
    for bound in (found.low, found.high):  # 2 < max |x| ≤ 5 in 300 normal draws
        assert abs(bound) in (2, 5)


def test_few_numbers_are_steps_of_a_scale_in_numeric_order() -> None:
    stars = column([10, 2, 3, 1] * 10)
    assert stars.kind is Kind.ORDERED and stars.categories == ("1", "2", "3", "10")
    assert stars.dtype == "int64"
    halves = column([0.5, 1.0, 1.5] * 10)
    assert halves.kind is Kind.ORDERED and halves.categories == ("0.5", "1.0", "1.5")
    assert column([3, 1, 2, 9, 5]).kind is Kind.INTEGER  # five rows prove no scale
    children = column([0] * 300 + [1] * 90 + [2] * 40 + [7])  # a list would name the one with 7
    assert children.kind is Kind.INTEGER and (children.low, children.high) == (0, 10)


@pytest.mark.parametrize(
    "pair", [[0, 1], ["yes", "no"], ["TRUE", "FALSE"], ["T", "F"], ["n", "y"], [True, False]]
)
def test_pairs_are_booleans(pair: list[object]) -> None:
    found = column(pair * 5)
    assert found.kind is Kind.BOOLEAN
    assert set(found.categories or ()) == {str(x) for x in pair}
    assert found.categories is not None and found.categories[0].lower()[0] in "0nf"


def test_other_pairs_are_categories() -> None:
    assert column(["<=50K", ">50K"] * 5).kind is Kind.CATEGORY
    flag = column([1, 2] * 10)  # neither is more
    assert flag.kind is Kind.CATEGORY and flag.categories == ("1", "2")


def test_a_missing_third_state_keeps_a_boolean() -> None:
    found = column([True, None, False] * 4, dtype="boolean")
    assert found.kind is Kind.BOOLEAN and found.missing and found.dtype == "boolean"


def test_constant_and_empty_columns() -> None:
    same = column([7] * 5)
    assert same.kind is Kind.CATEGORY and same.categories == ("7",) and "same" in same.note
    none = column([None] * 5, dtype="str")
    assert none.kind is Kind.TEXT and none.absent == 1.0 and "missing" in none.note


def test_zero_inflated_amounts_get_a_spike_and_a_log_scale() -> None:
    gains = np.where(RNG.random(2000) < 0.9, 0, np.rint(np.exp(RNG.normal(8, 1, 2000))))
    found = column(gains.astype(np.int64))
    assert found.spikes == (0.0,) and found.scale == "log" and found.low == 0


def test_a_capped_value_is_a_spike_too() -> None:
    values = np.clip(np.round(RNG.normal(500, 150, 3000), 1), 1.0, 550.0)
    found = column(values)
    assert found.spikes == (550.0,) and found.high == 550 and found.scale == "linear"
    capped = column(np.minimum(values, 500.0))  # 500 is the bound that is proposed anyway
    assert capped.high == 500 and capped.spikes == (500.0,) and not capped.note
    floor = column(-np.minimum(values, 550.0))
    assert floor.low == -550 and floor.high == 0
    coded = column(np.where(RNG.random(3000) < 0.2, 999.0, values))  # no end, but a usual code
    assert coded.spikes == (550.0, 999.0)


def test_a_frequent_value_on_a_small_grid_is_no_spike() -> None:
    hours = np.where(RNG.random(2000) < 0.5, 40, RNG.integers(1, 100, 2000))
    assert column(hours).spikes == ()


@pytest.mark.parametrize(
    ("draw", "scale"),
    [
        (RNG.normal(size=4000), "linear"),
        (RNG.random(4000), "linear"),
        (RNG.exponential(size=4000), "linear"),
        (np.exp(RNG.normal(0, 1.5, 4000)), "log"),
        (RNG.standard_cauchy(4000), "log"),
        (-np.exp(RNG.normal(0, 0.1, 4000)), "linear"),
    ],
)
def test_heavy_tails_get_a_log_scale(draw: np.ndarray, scale: str) -> None:
    assert column(draw).scale == scale


def test_a_far_away_sentinel_is_doubted() -> None:
    values = np.concatenate([RNG.integers(18, 80, 300), [999] * 5])
    assert "999" in column(values).note
    assert column(RNG.integers(18, 100, 3000)).note == ""


@pytest.mark.parametrize(
    ("text", "date_format", "step"),
    [
        (["2024-02-29", "2023-01-05"], "%Y-%m-%d", 86400),
        (["29/02/2024", "05/01/2023"], "%d/%m/%Y", 86400),
        (["02/29/2024", "01/05/2023"], "%m/%d/%Y", 86400),
        (["29.02.2024", "05.01.2023"], "%d.%m.%Y", 86400),
        (["29 Feb 2024", "05 Jan 2023"], "%d %b %Y", 86400),
        (["2024-02-29 13:45:10", "2023-01-05 00:00:01"], "%Y-%m-%d %H:%M:%S", 1),
        (["2024-02-29T13:45:10Z", "2023-01-05T00:00:00Z"], "%Y-%m-%dT%H:%M:%SZ", 1),
        (["29/02/2024 13:45", "05/01/2023 07:00"], "%d/%m/%Y %H:%M", 60),
        (["2024-02-29 13:45:10.250", "2023-01-05 00:00:00.5"], "%Y-%m-%d %H:%M:%S.%f", 0.001),
        (["2024-02", "2023-01"], "%Y-%m", 86400),
    ],
)
def test_dates_in_explicit_formats(text: list[str], date_format: str, step: float) -> None:
    found = column([*text, None] * 3, dtype="str")
    assert found.kind is Kind.DATETIME and found.date_format == date_format
    assert found.step == step and found.missing
    low, high = sorted(pd.to_datetime(pd.Series(text), format=date_format, utc=True))
    first = pd.Timestamp(year=low.year, month=1, day=1, tz="UTC")
    after = pd.Timestamp(year=high.year + 1, month=1, day=1, tz="UTC")
    assert (found.low, found.high) == (first.timestamp(), after.timestamp() - max(step, 1))


def test_a_swappable_day_and_month_is_doubted() -> None:
    found = column(["01/02/2024", "03/04/2024"] * 3)
    assert found.date_format == "%d/%m/%Y" and "%m/%d/%Y" in found.note
    assert column(["13/02/2024", "03/04/2024"] * 3).note == ""


def test_words_and_numbers_are_no_dates() -> None:
    assert column(["a1b2", "c3d4"] * 5).kind is Kind.CATEGORY
    assert column(["12:30", "14:45"] * 5).kind is Kind.CATEGORY


def test_dates_written_as_integers_and_as_dates() -> None:
    found = column([20240229, 20230105, 20221231] * 9)
    assert found.kind is Kind.DATETIME and found.date_format == "%Y%m%d" and found.dtype == "int64"
    real = column(pd.to_datetime(["2024-02-29", "2023-01-05"]))
    assert real.kind is Kind.DATETIME and real.date_format is None and real.step == 86400


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (list(range(1000, 1100)), "passenger"),
        ([f"K-{i}" for i in range(50)], "code"),
        ([7 * i**3 for i in range(40)], "patientId"),
        ([2**60 + i * 10**6 for i in range(30)], "big"),
        ([f"p{i % 30}" for i in range(900)], "person_id"),
        ([f"u{i % 9}@example.org" for i in range(90)], "contact"),
    ],
)
def test_identifiers(values: list[object], name: str) -> None:
    found = column(values, name)
    assert found.kind is Kind.IDENTIFIER and "new keys" in found.note


def test_phrases_that_many_rows_share_are_categories() -> None:
    phrases = [
        f"acute pain of the {side} part {i}" for side in ("left", "right") for i in range(99)
    ]
    diagnosis = column([phrases[i % 150] for i in range(4000)] + phrases[150:], "diagnosis")
    assert diagnosis.kind is Kind.CATEGORY and len(diagnosis.categories or ()) == 151
    assert diagnosis.other == "OTHER"
    assert column([f"{phrases[i % 150]} {i}" for i in range(4000)], "note").kind is Kind.TEXT


def test_repeated_identifiers_may_say_whose_rows() -> None:
    assert "whose row" in column([f"p{i % 30}" for i in range(900)], "person_id").note


def test_prose_is_text() -> None:
    prose = [f"the patient number {i} was seen again" for i in range(60)]
    assert column(prose).kind is Kind.TEXT
    assert column([f"w{i}" for i in range(10_001)] * 3).kind is Kind.IDENTIFIER


def test_large_lists_are_noted() -> None:
    assert "150 different" in column([f"w{i}" for i in range(150)] * 9).note


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["high", "low", "medium"], ("low", "medium", "high")),
        (["Often", "Never", "Always"], ("Never", "Often", "Always")),
        (["65+", "<18", "18-24", "25-64"], ("<18", "18-24", "25-64", "65+")),
        (["9-12", "1-4", "10-19"], ("1-4", "9-12", "10-19")),
    ],
)
def test_known_scales_and_ranges_are_ordered(values: list[str], order: tuple[str, ...]) -> None:
    found = column(values * 8)
    assert (
        found.kind is Kind.ORDERED
        and found.categories == order
        and "Is the order right?" in found.note
    )


def test_letters_before_a_digit_are_codes_without_order() -> None:
    found = column(["K4", "K10", "K1"] * 9)
    assert found.kind is Kind.CATEGORY and not found.note
    assert column(["$4", "$10", "$1"] * 9).kind is Kind.ORDERED


def test_names_of_schools_are_not_ordered() -> None:
    assert column(["10th", "11th", "Bachelors"] * 8).kind is Kind.CATEGORY


def test_ordered_categoricals_keep_their_order() -> None:
    values = pd.Categorical(["b", "a"] * 5, categories=["b", "a", "c"], ordered=True)
    assert column(values).categories == ("b", "a", "c")


def test_values_of_few_rows_are_merged() -> None:
    towns = ["Paris"] * 40 + ["Lyon"] * 10 + ["Nice"] * 9 + ["Le Mont"]
    found = column(towns)
    assert found.categories == ("Lyon", "Paris", "OTHER") and found.other == "OTHER"
    assert "2 values of fewer than ten rows" in found.note
    assert column(towns[:50]).other is None
    taken = column(["OTHER"] * 12 + towns)  # a label of that name is not listed twice
    assert taken.categories == ("Lyon", "Paris", "OTHER")


def test_names_are_no_public_list() -> None:
    """2,800 names of 20,000 rows as in a register: common ones may be learnt, rare ones not."""
    ranks = 1 / np.arange(1, 3001)
    people = RNG.choice([f"name{i}" for i in range(3000)], 20_000, p=ranks / ranks.sum())
    found = column(people, "first_name")
    rows = pd.Series(people).value_counts()
    assert (rows == 1).sum() > 100  # the danger is there
    assert found.categories is not None and found.other == "OTHER"
    assert all(rows[name] >= 10 for name in found.categories if name != "OTHER")
    codes = column(pd.Series(people).str.removeprefix("na"), "first_name")  # "me12" looks ordered
    assert codes.kind is Kind.CATEGORY and codes.other == "OTHER"
    few = column(RNG.choice([f"name{i}" for i in range(3000)], 8000), "first_name")
    assert few.kind is Kind.TEXT and few.categories is None and "fewer than ten" in few.note


def test_one_record_more_seldom_changes_a_proposal() -> None:
    """The oldest person, the richest and the only one from somewhere do not show."""
    rows = pd.DataFrame(
        {
            "age": [*range(18, 90)] * 10,
            "pay": np.round(RNG.lognormal(8, 1, 720), 2).clip(0, 90_000),
            "town": ["Paris", "Lyon"] * 360,
            "born": ["1961-03-05", "1990-12-30"] * 360,
        }
    )
    alone = {"age": 97, "pay": 99_999.99, "town": "Le Mont", "born": "1990-12-31"}
    more = pd.concat([rows, pd.DataFrame([alone])], ignore_index=True)
    rows.loc[0, "pay"] = 60_000.0  # the range is 50,000 to 100,000 without that person too
    before, after = infer_schema(rows), infer_schema(more)
    for name in ("age", "pay", "born"):
        assert before[name].fields() == after[name].fields(), name
    assert "Le Mont" not in (after["town"].categories or ())


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 60))
    sources = {
        "n": st.none() | st.integers(-(10**6), 10**6),
        "x": st.none() | st.floats(-1e6, 1e6),
        "w": st.none() | st.text("ab c-1", max_size=4),
        "b": st.none() | st.booleans(),
        "d": st.none() | st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2100, 1, 1)),
    }
    dtypes = {"n": "Int64", "x": "float64", "w": "str", "b": "boolean", "d": "datetime64[us]"}
    return pd.DataFrame(
        {
            name: pd.Series(draw(st.lists(s, min_size=rows, max_size=rows)), dtype=dtypes[name])
            for name, s in sources.items()
        }
    )


@given(frame=tables())
@settings(max_examples=60, deadline=None)
def test_every_modelled_column_can_hold_its_own_values(frame: pd.DataFrame) -> None:
    schema = infer_schema(frame)
    assert schema.names == tuple(frame.columns)
    for found in schema.columns:
        values = frame[found.name]
        assert found.missing == values.isna().any() and found.declared
        if found.kind.listed:
            labels = to_labels(values)
            listed = set(found.categories or ())
            rare = {x for x in labels.dropna() if (labels == x).sum() < 10}
            assert set(labels.dropna()) - listed <= (rare if found.other else set())
            if found.other:
                assert not rare & (listed - {found.other})
                labels = labels.where(labels.isna() | labels.isin(listed), found.other)
                values = labels
            back = from_labels(labels, found)
        elif found.kind.numeric and found.modelled:
            numbers = to_numbers(values, found)
            present = numbers[~np.isnan(numbers)]
            assert found.low <= present.min() and found.high >= present.max()
            public = {0, found.low, found.high, *SENTINELS}
            assert all(spike in present and spike in public for spike in found.spikes)
            back = from_numbers(numbers, found)
        else:
            continue
        pd.testing.assert_series_equal(back, values, check_dtype=False)


def real(name: str) -> pd.DataFrame:
    folder = os.environ.get("FACSIMILE_DATA")
    if not folder or not (Path(folder) / name).is_file():
        pytest.skip(f"FACSIMILE_DATA does not point at a folder with {name}")
    return read_table(Path(folder) / name).frame


@pytest.mark.data
def test_adult() -> None:
    frame = real("adult_train.csv")
    schema = infer_schema(frame)
    assert [c.name for c in schema.columns if c.missing] == [
        "workclass",
        "occupation",
        "native-country",
    ]
    integers = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    assert all(schema[name].kind is Kind.INTEGER for name in integers)
    assert all(c.kind is Kind.CATEGORY for c in schema.columns if c.name not in integers)
    for name in ("capital-gain", "capital-loss"):
        assert schema[name].spikes == (0.0,) and schema[name].scale == "log"
        assert schema[name].low == 0
    assert [c.name for c in schema.columns if c.scale == "log"] == ["capital-gain", "capital-loss"]
    assert (schema["education-num"].low, schema["education-num"].high) == (0, 20)
    assert (schema["age"].low, schema["age"].high) == (0, 100)
    assert (schema["capital-loss"].low, schema["capital-loss"].high) == (0, 5000)
    assert schema["native-country"].other == "OTHER"  # one person is from Holand-Netherlands
    assert "Holand-Netherlands" not in (schema["native-country"].categories or ())
    assert {c.provenance for c in schema.columns} == {Provenance.PROPOSED}
    assert schema["income"].categories == ("<=50K", ">50K")


@pytest.mark.data
def test_titanic(tmp_path: Path) -> None:
    frame = real("titanic.csv")
    schema = infer_schema(frame)
    assert schema["survived"].kind is Kind.BOOLEAN and schema["survived"].dtype == "int64"
    assert schema["pclass"].categories == ("1", "2", "3")
    assert schema["name"].kind is Kind.TEXT
    assert schema["ticket"].kind is schema["cabin"].kind is Kind.IDENTIFIER
    assert "681 of 891" in schema["ticket"].note
    assert schema["age"].missing and (schema["age"].low, schema["age"].high) == (0, 100)
    assert schema["fare"].scale == "log" and schema["age"].scale == "linear"
    write_csv_parts([frame], tmp_path / "t.csv")
    assert from_labels(to_labels(frame["survived"]), schema["survived"]).dtype == "int64"
