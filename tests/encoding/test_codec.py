"""Codec: what is encoded comes back to the stated resolution, and stays in the domain."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.codec import Codec, Codes, Line, concat_codes
from core.schema.column import Column, DomainColumn, Kind, Learned, Provenance
from core.schema.labels import to_numbers
from core.schema.schema import Domain, Schema
from tests.encoding.vectors import collapse


def codec_of(*columns: Column) -> Codec:
    return Codec(Schema(columns=columns).domain())


def round_trip(frame: pd.DataFrame, codec: Codec) -> pd.DataFrame:
    return codec.decode_codes(codec.encode(frame))


bounds = st.tuples(st.integers(-10_000, 10_000), st.integers(1, 2_000_000)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(bounds=bounds, share=st.lists(st.floats(0, 1), min_size=1, max_size=30), log=st.booleans())
@settings(max_examples=150, deadline=None)
def test_integers_come_back_as_the_same_integers(bounds, share, log):
    low, high = bounds
    x = np.round(low + np.array(share) * (high - low)).astype(np.int64)
    frame = pd.DataFrame({"x": x})
    codec = codec_of(
        Column(
            name="x",
            kind=Kind.INTEGER,
            low=low,
            high=high,
            step=1,
            dtype="int64",
            scale="log" if log else "linear",
        )
    )
    pd.testing.assert_frame_equal(round_trip(frame, codec), frame)


@given(
    bounds=bounds,
    share=st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=30),
    log=st.booleans(),
    spike=st.floats(0, 1),
)
@settings(max_examples=150, deadline=None)
def test_numbers_with_spikes_and_gaps_come_back(bounds, share, log, spike):
    low, high = float(bounds[0]), float(bounds[1])
    atom = low + spike * (high - low)
    x = np.array([np.nan if s is None else low + s * (high - low) for s in share])
    x[::3] = atom
    frame = pd.DataFrame({"x": x})
    column = Column(
        name="x",
        kind=Kind.NUMBER,
        low=low,
        high=high,
        dtype="float64",
        missing=True,
        scale="log" if log else "linear",
        spikes=(atom,),
    )
    back = round_trip(frame, codec_of(column))
    assert (back["x"].isna() == frame["x"].isna()).all()
    assert (back["x"][::3] == atom).all()  # an atom is exact, never smeared
    # float64 positions: 2⁻⁵² of the bent range, stretched by at most sinh' ≈ the range itself
    np.testing.assert_allclose(back["x"], frame["x"], rtol=1e-9, atol=1e-9 * (high - low))


@given(st.lists(st.sampled_from(["a", "b", "ö", "1", None]), min_size=1, max_size=40))
@settings(max_examples=80, deadline=None)
def test_categories_with_gaps_come_back(values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype="str")})
    codec = codec_of(
        Column(name="x", kind=Kind.CATEGORY, categories=("a", "b", "ö", "1"), missing=True)
    )
    pd.testing.assert_frame_equal(round_trip(frame, codec), frame)


@pytest.mark.parametrize(
    ("dtype", "categories", "values"),
    [
        ("int64", ("1", "2", "3"), [3, 1, 2, 2]),
        ("bool", ("False", "True"), [True, False, True, True]),
        ("float64", ("0.5", "1.5"), [0.5, 1.5, 1.5, 0.5]),
    ],
)
def test_listed_columns_keep_their_type(dtype, categories, values):
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    codec = codec_of(Column(name="x", kind=Kind.ORDERED, categories=categories, dtype=dtype))
    pd.testing.assert_frame_equal(round_trip(frame, codec), frame)


@given(days=st.lists(st.integers(0, 20_000), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_dates_come_back_to_the_day(days):
    dates = pd.Series(pd.to_datetime(np.array(days), unit="D", origin="unix")).astype(
        "datetime64[us]"
    )
    frame = pd.DataFrame({"x": dates})
    column = Column(
        name="x",
        kind=Kind.DATETIME,
        low=0,
        high=20_000 * 86_400.0,
        step=86_400,
        dtype="datetime64[us]",
    )
    pd.testing.assert_frame_equal(round_trip(frame, codec_of(column)), frame)


def mixed() -> Codec:
    return codec_of(
        Column(name="id", kind=Kind.IDENTIFIER, dtype="int64"),
        Column(
            name="amount",
            kind=Kind.INTEGER,
            low=0,
            high=99_999,
            step=1,
            scale="log",
            spikes=(0.0,),
            dtype="int64",
        ),
        Column(name="city", kind=Kind.CATEGORY, categories=("x", "y", "rest"), other="rest"),
        Column(
            name="score", kind=Kind.NUMBER, low=-1, high=1, step=0.01, missing=True, dtype="float64"
        ),
        Column(name="remark", kind=Kind.TEXT),
    )


def test_what_lies_outside_the_domain_is_moved_inside():
    frame = pd.DataFrame(
        {
            "id": [7, 8, 9],
            "amount": [-5, 10**7, 12],
            "city": ["x", "nowhere", "y"],
            "score": [5.0, np.nan, -0.123],
            "remark": ["secret", "words", "here"],
        }
    )
    back = round_trip(frame, mixed())
    assert list(back.columns) == list(frame.columns)
    assert back["amount"].tolist() == [0, 99_999, 12]
    assert back["city"].tolist() == ["x", "rest", "y"]
    assert back["score"][0] == 1.0 and np.isnan(back["score"][1]) and back["score"][2] == -0.12
    assert back["id"].tolist() == [1, 2, 3]  # fresh keys, not the real ones
    assert not back["remark"].isin(frame["remark"]).any()


@pytest.mark.parametrize("missing", [False, True])
def test_rare_codes_that_no_list_holds_join_their_neighbours(missing):
    column = DomainColumn(
        name="grade",
        kind=Kind.CATEGORY,
        categories=("A1", "A2", "B1", "E3", "E4"),
        missing=missing,
        provenance=Provenance.LEARNED,
        learned=Learned(domain=""),
    )
    codec = Codec(Domain(columns=(column,)))
    cells = pd.Series(["A3", "E1", "G5", "B1", "0", None], name="grade", dtype="str")
    frame = round_trip(cells.to_frame(), codec)
    assert frame["grade"].tolist()[:-1] == ["A2", "E3", "E4", "B1", "A1"]
    assert frame["grade"].isna().iloc[-1] if missing else frame["grade"].iloc[-1] == "A1"
    alone = [round_trip(cells.iloc[[i]].to_frame(), codec).iloc[0, 0] for i in range(5)]
    assert alone == frame["grade"].tolist()[:-1]  # whatever else the table holds


def test_spike_and_tail_of_a_zero_inflated_column_both_survive():
    rng = np.random.default_rng(0)
    amount = np.where(rng.random(4000) < 0.9, 0, np.exp(rng.normal(8, 1, 4000)).astype(int))
    frame = pd.DataFrame({"amount": np.minimum(amount, 99_999)})
    column = mixed().block("amount").column
    codec = codec_of(column)
    codes = codec.encode(frame)
    on_line = codes.states[:, 0] == 0
    assert (~on_line == (frame["amount"] == 0)).all()
    # on a straight scale nine tenths of the tail would share the lowest tenth of [0, 1]
    assert np.quantile(codes.values[on_line, 0], 0.9) > 0.7
    pd.testing.assert_frame_equal(codec.decode_codes(codes), frame)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_any_vector_decodes_into_the_domain(seed):
    codec = mixed()
    x = np.random.default_rng(seed).normal(0.5, 2.0, (20, codec.width))
    rows = codec.decode_codes(collapse(codec, x))
    assert rows["amount"].between(0, 99_999).all() and rows["amount"].dtype == "int64"
    assert rows["city"].isin(["x", "y", "rest"]).all()
    assert rows["score"].dropna().between(-1, 1).all()
    again = codec.encode(rows)
    pd.testing.assert_frame_equal(codec.decode_codes(again), rows)


def test_expanded_rows_decode_to_the_same_rows():
    codec = mixed()
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "amount": rng.choice([0, 3, 50, 4000], 64),
            "city": pd.Series(rng.choice(["x", "y", "rest"], 64), dtype="str"),
            "score": np.where(rng.random(64) < 0.2, np.nan, rng.integers(-100, 101, 64) / 100),
        }
    )
    codes = codec.encode(frame)
    wide = codec.expand(codes)
    assert wide.shape == (64, codec.width)
    assert float(wide.min()) >= 0.0 and float(wide.max()) <= 1.0
    again = collapse(codec, wide.double().numpy())
    np.testing.assert_array_equal(again.states, codes.states)
    np.testing.assert_allclose(again.values, codes.values, atol=1e-6)  # float32


def test_encoding_depends_on_the_row_alone():
    """Building from the domain only: any row encodes the same in any company."""
    learned = DomainColumn(
        name="code",
        kind=Kind.CATEGORY,
        categories=("10", "90", "N"),
        missing=True,
        provenance=Provenance.LEARNED,
        learned=Learned(domain="", nearest=True),
    )
    codec = codec_of(*mixed().domain.columns, learned)
    frame = pd.DataFrame(
        {
            "amount": [5, 900, 900, 900_000],
            "city": ["x", "q", "q", "y"],
            "score": [0.5, np.nan, -9.0, 0.5],
            "code": pd.Series(["80", "20", "80", None], dtype="str"),
        }
    )
    both = codec.encode(frame)
    alone = concat_codes([codec.encode(frame.iloc[[i]]) for i in range(len(frame))])
    np.testing.assert_array_equal(both.states, alone.states)
    np.testing.assert_array_equal(both.values, alone.values)


def test_constant_column():
    codec = codec_of(Column(name="x", kind=Kind.NUMBER, low=3.5, high=3.5, dtype="float64"))
    frame = pd.DataFrame({"x": [3.5, 3.5]})
    pd.testing.assert_frame_equal(round_trip(frame, codec), frame)


def test_line_is_monotone_on_both_sides_of_its_centre():
    line = Line(low=-1000.0, high=50.0, step=0.0, log=True, centre=0.0)
    x = np.linspace(-1000, 50, 501)
    assert (np.diff(line.position(x)) > 0).all()


@given(
    low=st.integers(-500, 500).map(lambda k: k / 100),
    step=st.sampled_from([0.08, 0.25, 0.3, 5.0, 7.0]),
    share=st.lists(st.floats(0, 1), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_steps_count_from_the_low_bound_wherever_it_lies(low, step, share):
    high = low + 40 * step
    codec = codec_of(
        Column(name="x", kind=Kind.NUMBER, low=low, high=high, step=step, dtype="float64")
    )
    x = low + np.array(share) * (high - low)
    back = round_trip(pd.DataFrame({"x": x}), codec)["x"].to_numpy()
    assert (np.abs(back - x) <= step / 2 + 1e-6).all()
    assert (back >= low - 1e-9).all() and (back <= high + 1e-9).all()
    assert np.allclose((back - low) / step, np.rint((back - low) / step), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "dtype", "low", "high", "step", "ends"),
    [
        (Kind.NUMBER, "float64", 0.0, 9.99, 0.1, (0.0, 9.9)),
        (Kind.NUMBER, "float64", 0.0, 11.0, 3.0, (0.0, 9.0)),
        (Kind.INTEGER, "int64", 0.5, 3.7, 1.0, (1.0, 3.0)),
        (Kind.INTEGER, "Int64", 0.5, 3.7, 0.0, (1.0, 3.0)),
        (Kind.DATETIME, "datetime64[us]", 0.0, 4.6 * 86_400, 86_400.0, (0.0, 4.0 * 86_400)),
    ],
)
def test_a_bound_between_two_steps_is_not_passed(kind, dtype, low, high, step, ends):
    column = Column(name="x", kind=kind, low=low, high=high, step=step, dtype=dtype)
    codec = codec_of(column)
    place = np.linspace(0, 1, 101)[:, None]
    back = codec.decode_codes(Codes(np.zeros((101, 1), dtype=np.int32), place))
    numbers = to_numbers(back["x"], column)
    assert (numbers.min(), numbers.max()) == ends


def test_a_projection_keeps_codes_and_the_roles_of_its_columns():
    schema = Schema(
        columns=(
            Column(name="a", kind=Kind.CATEGORY, categories=("x", "y")),
            Column(name="b", kind=Kind.NUMBER, low=0, high=9, spikes=(0.0,), dtype="float64"),
            Column(name="c", kind=Kind.CATEGORY, categories=("u", "v")),
            Column(name="d", kind=Kind.NUMBER, low=0, high=1, dtype="float64"),
        ),
        target="c",
        sensitive={"one": ("a", "d"), "two": ("c",)},
    )
    domain = schema.domain()
    part = domain.project(["d", "b", "a"])
    assert [column.name for column in part.columns] == ["d", "b", "a"]
    assert part.target is None and part.sensitive == {"one": ("a", "d")}
    assert domain.project(["c"]).target == "c"
    assert domain.project([column.name for column in domain.columns]) == domain
    with pytest.raises(KeyError):
        domain.project(["nothing"])
    frame = pd.DataFrame({"a": ["y", "x"], "b": [0.0, 4.5], "c": ["u", "v"], "d": [0.25, 1.0]})
    codec, whole = Codec(part), Codec(domain)
    projected = whole.encode(frame).project([whole.block(name) for name in ("d", "b", "a")])
    np.testing.assert_array_equal(projected.states, codec.encode(frame).states)
    np.testing.assert_array_equal(projected.values, codec.encode(frame).values)
