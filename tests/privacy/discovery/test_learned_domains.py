"""What is learned holds the rows: bounds on awkward columns, lists, atoms, mappings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from core.privacy.discovery.grids import (
    SINGLE,
    fine_grid,
    grid_of,
    single_values,
    value_grid,
)
from core.privacy.discovery.open_domain import as_learned, open_domain, stand_in, without_proposals
from core.privacy.discovery.planning import BOUNDS, FINE, Levels, forecasts
from core.privacy.discovery.ranges import FirstLook
from core.privacy.discovery.release import release_domain
from core.privacy.discovery.second_look import FineLook
from core.privacy.meter import Meter
from core.proposing.propose import infer_schema
from core.schema.column import DomainSource, Kind, SchemaError, UndeclaredDomainError
from core.schema.labels import to_numbers
from core.schema.rules.rules import Combinations, Determines
from core.schema.schema import Schema
from core.services.sample_tables import sample_table
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.learned_tables import by_name, learn, planned, schema_for, to_learn

RNG = np.random.default_rng(5)
OWN = np.random.default_rng(6)  # of steps
N = 5000
DAY = 86_400.0


def column_of(values, epsilon=1.0, **kinds):
    frame = pd.DataFrame({"x": values})
    schema = schema_for(frame, **kinds)
    return frame, by_name(learn(frame, schema, epsilon))["x"]


def dates(first: str, days: int) -> pd.Series:
    day = pd.Timestamp(first) + pd.to_timedelta(RNG.integers(0, days, N), "D")
    return pd.Series(day).astype("datetime64[us]")


@pytest.mark.parametrize(
    ("values", "within", "inside"),
    [
        (RNG.lognormal(8, 1.5, N), (0.0, 1e6), 0.98),
        (RNG.standard_cauchy(N) * 1e-7, (-1e-3, 1e-3), 0.98),
        (-RNG.lognormal(3, 0.5, N), (-200.0, 0.0), 0.98),
        (np.full(N, 7.5), (0.0, 10.0), 1.0),
        (np.zeros(N), (0.0, 0.0), 1.0),
        (RNG.integers(1951, 2025, N), (1900.0, 2100.0), 1.0),
        (RNG.integers(-40, 3, N), (-50.0, 5.0), 0.98),
        (np.full(N, 2 * 10**18), (0.0, 1e19), 1.0),
    ],
)
def test_bounds_are_round_and_hold_nearly_all_rows(values, within, inside):
    _, column = column_of(values)
    assert column.source is DomainSource.LEARNED and not column.missing
    assert within[0] <= column.low <= column.high <= within[1]
    assert np.mean((values >= column.low) & (values <= column.high)) >= inside


def test_dates_end_with_whole_years():
    frame, column = column_of(dates("1931-05-05", 25_000))  # to October 1999
    seconds = to_numbers(frame["x"], column)
    assert ((seconds >= column.low) & (seconds <= column.high)).all()
    assert column.high + DAY == pd.Timestamp("2000-01-01").timestamp()
    assert column.low in [pd.Timestamp(f"{year}-01-01").timestamp() for year in (1930, 1931)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_years_are_left_out_only_where_they_surely_hold_nothing(epsilon):
    column = column_of(dates("2022-01-01", 730), epsilon)[1]
    assert column.low == pd.Timestamp("2022-01-01").timestamp()
    assert column.high + DAY == pd.Timestamp("2024-01-01").timestamp()
    spread, column = column_of(dates("1931-01-01", 28_854), epsilon)  # sixty or so a year
    seconds = to_numbers(spread["x"], column)
    assert ((seconds < column.low) | (seconds > column.high)).mean() < 0.02


def test_no_year_of_many_records_is_left_out():
    """A fifth of the records lie in the first year of a decade that is empty otherwise."""
    days = dates("2016-01-01", 1827)
    frame = pd.DataFrame({f"x{i}": days for i in range(6)})
    for seed in range(15):
        for column in by_name(learn(frame, schema_for(frame), 0.3, seed)).values():
            assert column.high >= pd.Timestamp("2020-12-31").timestamp()


def test_records_in_years_left_out_are_told():
    held = {1995: 850, 1996: 2320, 1997: 870, 1998: 400, 1999: 230, 2000: 140, 2001: 100, 2003: 90}
    days = np.repeat([f"{year}-06-01" for year in held], [*held.values()])
    frame = pd.DataFrame({"x": pd.to_datetime(days).astype("datetime64[us]")})
    schema, outside, told = schema_for(frame), [], []
    for seed in range(10):
        column = by_name(learn(frame, schema, 0.3, seed))["x"]
        seconds = to_numbers(frame["x"], column)
        outside.append(((seconds < column.low) | (seconds > column.high)).mean())
        told.append(column.learned.outside)
        assert abs(told[-1] - outside[-1]) <= 3.0 * column.learned.error
    assert max(outside) < 0.07
    assert np.mean(told) == pytest.approx(np.mean(outside), abs=0.01)  # about 0.03


def test_noise_alone_finds_no_cell():
    """A bound where nobody is would ruin its column: less than once in ten thousand runs."""
    wanted, plan = planned(schema_for(pd.DataFrame({"x": [1.0]})), N, 1.0)
    levels, bins = Levels.of(plan, wanted), grid_of(wanted.numeric[0]).size
    assert bins * norm.sf(levels.cell / levels.std[BOUNDS]) < 1e-4


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (OWN.uniform(60.0, 80.0, N), 58.0, 82.0),
        (OWN.normal(-73.95, 0.05, N), -74.6, -73.4),  # a longitude
        (OWN.integers(1955, 2015, N), 1940.0, 2020.0),  # years
        (2016.5 + OWN.random(N), 2000.0, 2024.0),
        (OWN.integers(15, 40, N) * 1e6 + 1.4e9, 1.41e9, 1.45e9),  # seconds since 1970
    ],
)
def test_a_second_look_finds_what_lies_far_from_zero(values, low, high):
    _, column = column_of(values)
    assert low <= column.low <= np.quantile(values, 0.01)
    assert np.quantile(values, 0.99) <= column.high <= high


def test_what_a_second_look_leaves_out_is_told():
    values = np.where(OWN.random(N) < 0.02, OWN.uniform(21.0, 50.0, N), OWN.uniform(20.0, 21.0, N))
    frame = pd.DataFrame({"x": values})
    shares = []
    for seed in range(8):
        column = by_name(learn(frame, schema_for(frame), 2.0, seed))["x"]
        shares.append((column.learned.outside, float(np.mean(values > column.high))))
    assert np.mean([real for _, real in shares]) > 0.01
    assert np.mean([said - real for said, real in shares]) == pytest.approx(0.0, abs=0.004)


def test_a_second_look_finds_a_narrow_range_under_much_noise():
    values, noise = OWN.normal(40.7, 0.08, 5000).clip(40.5, 40.9), 170.0
    grid = fine_grid(20.0, 50.0, 0.0)
    counts = np.histogram(values, np.array(grid.edges))[0]
    look = FirstLook(20.0, 50.0, (20.0, 50.0), 5000.0, (), (), {}, False, False, (0.0, 0.0))
    looks = [FineLook(counts + OWN.normal(0.0, noise, len(counts)), noise, 0.0) for _ in range(40)]
    found = [one.narrowed(look) for one in looks]
    assert sum(one is None for one in found) <= 5
    lows, highs = zip(*((one.low, one.high) for one in found if one is not None), strict=True)
    assert np.median(lows) >= 40.0 and np.median(highs) <= 42.0
    lost = [
        np.mean((values < low) | (values > high)) for low, high in zip(lows, highs, strict=True)
    ]
    assert np.mean(lost) < 0.05


def test_a_second_look_leaves_a_thin_tail_where_it_was():
    values = np.where(OWN.random(N) < 0.9, OWN.uniform(20.0, 21.0, N), OWN.uniform(21.0, 50.0, N))
    _, column = column_of(values, 0.3)
    assert column.low <= 20.0 and column.high == 50.0


def test_a_second_look_leaves_few_records_below_a_frequent_value():
    """As of a test that gives 45 where nothing was found."""
    values = np.where(OWN.random(N) < 0.94, 45.0, OWN.uniform(20.0, 45.0, N))
    for _ in range(5):
        _, column = column_of(values, 0.5)
        assert column.low == 20.0 and 45.0 in column.spikes


def test_a_second_look_is_as_planned_where_nothing_needs_it():
    frame = pd.DataFrame({"x": RNG.uniform(0.0, 80.0, N)})
    wanted, plan = planned(schema_for(frame), N, 1.0)
    assert [phase.name for phase in plan.phases] == ["bounds", FINE]
    meter = Meter(plan)
    release_domain(frame, wanted, plan, meter, noise_source=DeterministicNoise(1))
    assert meter.runs("bounds") == meter.runs(FINE) == 1


def test_atoms_codes_and_missing_cells_are_found():
    values = np.where(RNG.random(N) < 0.4, 0.0, RNG.lognormal(6, 1, N))
    values[RNG.random(N) < 0.1] = -999.0
    values[RNG.random(N) < 0.1] = np.nan
    _, column = column_of(values)
    assert set(column.spikes) == {0.0, -999.0} and column.missing and column.low <= -999.0
    _, rare = column_of(np.where(np.arange(N) < 1, np.nan, 3.3), 0.2)
    assert not rare.missing  # fewer than can be told from noise: declared complete


SHARES = OWN.integers(0, 501, N)


@pytest.mark.parametrize(
    ("values", "high", "spikes"),
    [
        (np.where(OWN.random(N) < 0.4, 501, SHARES), 501.0, (501.0,)),
        (np.minimum(OWN.lognormal(10, 1, N).round(), 50_000), 50_000.0, (50_000.0,)),
        (np.where(OWN.random(N) < 0.2, 40, OWN.integers(1, 900, N)), 1000.0, (40.0,)),
        (np.where(OWN.random(N) < 0.4, 550, SHARES + 400), 900.0, (550.0,)),  # no cap: more beyond
        (SHARES, 500.0, ()),
        (np.where(OWN.random(N) < 0.4, 1234, 3 * SHARES), 2000.0, (1234.0,)),
        (np.where(OWN.random(N) < 0.4, 40, OWN.integers(1, 99, N)), 100.0, ()),  # each has a bin
        (np.where(OWN.random(N) < 0.4, 12345, 30 * SHARES), 20_000.0, ()),
    ],
)
def test_common_numbers_are_spikes_and_caps_bounds(values, high, spikes):
    schema = schema_for(frame := pd.DataFrame({"x": values}))
    found = [learn(frame, schema, 1.0, seed).columns[0] for seed in range(5)]
    assert {one.spikes for one in found} == {spikes}
    assert np.median([one.high for one in found]) == high  # noise may add a cell
    assert all(np.mean((values >= one.low) & (values <= one.high)) >= 0.98 for one in found)


def test_single_numbers_are_counted_in_exact_cells():
    x = np.array([501.0, 0.3, 75.5, 1e6, 1234.0, 12.34, 12345.0, 0.0, -5.0, np.nan, 1e9, 0.001])
    cells = single_values(x)
    assert np.isnan(cells[5:]).all() and SINGLE[cells[:5].astype(int)].tolist() == x[:5].tolist()
    assert value_grid().bins == len(SINGLE) == 17_100
    many = tuple(to_learn(f"c{i}", Kind.NUMBER) for i in range(51))
    assert not open_domain(Schema(columns=many)).single


def test_zero_inflated_amounts_get_a_heavy_tail():
    values = np.where(RNG.random(N) < 0.7, 0.0, RNG.lognormal(7, 1, N))
    assert column_of(values)[1].scale == "log"
    assert column_of(RNG.normal(0, 1, N))[1].scale == "linear"


@pytest.mark.parametrize("values", [np.full(N, np.nan), 10.0 ** RNG.uniform(-30, 149, N)])
def test_a_column_that_noise_hides_keeps_its_place(values):
    _, column = column_of(values, epsilon=0.1)
    assert column.declared and column.low <= column.high
    assert column.missing == bool(np.isnan(values).all())


def test_a_range_that_noise_hides_is_of_a_usual_magnitude():
    frame = pd.DataFrame({"x": OWN.normal(100.0, 50.0, 30)})
    for seed in range(20):
        column = by_name(learn(frame, schema_for(frame), 0.05, seed))["x"]
        assert 1e-3 <= max(abs(column.low), abs(column.high)) <= 1e8


def test_a_list_of_rare_labels_keeps_its_missing_share():
    labels = [None if i % 3 else f"own {i}" for i in range(N)]
    frame = pd.DataFrame({"text": labels}).astype("str")
    released = learn(frame, schema_for(frame), 1.0)
    (column,) = released.columns
    assert column.categories == ("OTHER",) and column.missing
    states = released.counts["text"]
    assert states.counts == pytest.approx([N / 3, N * 2 / 3], abs=5 * states.std.max())


def test_counts_of_a_list_are_of_its_states_in_order():
    frame = pd.DataFrame({"text": ["b"] * 3000 + ["a"] * 1500 + ["rare"] * 500 + [None] * 800})
    released = learn(frame.astype("str"), schema_for(frame.astype("str")), 2.0)
    (column,) = released.columns
    assert column.categories == ("a", "b", "rare") and column.missing
    counts = released.counts["text"]
    assert counts.counts == pytest.approx([1500, 3000, 500, 800], abs=5 * counts.std.max())


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_what_lies_outside_is_estimated_from_released_counts(share):
    rare = [f"rare {i}" for i in range(round(N * share))]
    frame = pd.DataFrame({"text": [*rare, *(["a", "b"] * N)][:N]})
    (column,) = learn(frame, schema_for(frame), 2.0).columns
    assert (column.other is None) == (share == 0.0)
    assert column.learned.outside == pytest.approx(share, abs=4 * column.learned.error)


def test_lists_keep_order_numbers_and_their_known_pair():
    frame = pd.DataFrame(
        {
            "step": RNG.choice(["low", "high", "medium"], N),
            "odd": RNG.choice(["zeta", "alpha"], N),
            "class": RNG.choice([10, 9, 2], N),
            "yes": RNG.choice([0, 1], N),
            "rare": RNG.choice(["a", "b", None], N, p=[0.4995, 0.5, 0.0005]),
        }
    )
    schema = schema_for(
        frame, step=Kind.ORDERED, odd=Kind.ORDERED, **{"class": Kind.ORDERED, "yes": Kind.BOOLEAN}
    )
    pair = to_learn("yes", Kind.BOOLEAN, categories=("0", "1"), dtype="int64")
    schema = schema.replace(pair).replace(to_learn("class", Kind.ORDERED, dtype="int64"))
    made = by_name(learn(frame, schema, 2.0))
    assert made["step"].categories == ("low", "medium", "high")
    assert made["step"].kind is Kind.ORDERED and made["odd"].kind is Kind.CATEGORY
    assert made["odd"].categories == ("alpha", "zeta")
    assert made["class"].categories == ("2", "9", "10") and made["class"].other is None
    assert made["yes"].categories == ("0", "1") and made["yes"].kind is Kind.BOOLEAN
    assert made["rare"].other is None and not made["rare"].missing


def test_rules_found_are_those_enough_records_hold():
    code = RNG.choice(["c1", "c2", "c3"], N)
    label = np.array([{"c1": "one", "c2": "two", "c3": "three"}[c] for c in code])
    label[:30] = "slip"
    code[30] = "single"
    frame = pd.DataFrame({"code": code, "label": label})
    rules = (Determines(source="code", result="label"), Combinations(names=("code", "label")))
    schema = schema_for(frame).model_copy(update={"rules": rules})
    mapping, combinations = learn(frame, schema, 2.0).rules
    assert mapping.mapping == {"c1": "one", "c2": "two", "c3": "three"} and mapping.learned
    assert combinations.allowed == (("c1", "one"), ("c2", "two"), ("c3", "three"))
    hidden = schema.model_copy(update={"sensitive": {"g": ("label",)}})
    assert open_domain(hidden).rules == ()


def test_what_is_foretold_is_made_of_public_numbers():
    frame = pd.DataFrame({"name": ["a", "b"] * 500, "amount": np.arange(1000.0)})
    schema = schema_for(frame)
    wanted, plan = planned(schema, 1000, 1.0)
    lines = forecasts(plan, wanted)
    assert [line.name for line in lines] == ["amount", "name"]
    shares = sum(phase.share for phase in plan.phases)
    assert sum(line.share for line in lines) == pytest.approx(shares)
    first = Levels.of(plan, wanted)
    level = first.averaged(plan, wanted, 1.0, sensitivity=1.0, lists=1)[1].label
    assert level < first.label
    assert f"{level:,.0f} records ({level / 1000:.1%})" in lines[1].words


# -- marking --------------------------------------------------------------------------------------

PROPOSED = infer_schema(sample_table(400))


def test_proposals_are_forgotten_where_a_run_learns():
    marked = as_learned(PROPOSED)
    read = without_proposals(marked)
    for column in read.columns:
        if not column.modelled:
            assert column.kind.surrogate and not column.absent
            continue
        assert column.source is DomainSource.LEARNED and not column.declared
        assert (column.low, column.high, column.spikes, column.missing) == (None, None, (), False)
        assert column.categories is None or column.kind is Kind.BOOLEAN
    with pytest.raises(UndeclaredDomainError, match="let the run learn them"):
        marked.domain()
    assert as_learned(marked) == marked and marked.as_proposed() == PROPOSED
    assert stand_in(marked).domain()


def test_a_plan_is_the_same_whatever_the_rows_propose():
    """Bounds, lists and marks of open columns are unknown to the plan."""
    other = infer_schema(sample_table(400).sample(frac=0.5, random_state=1))
    for name in PROPOSED.names:
        if PROPOSED[name].modelled and other[name].kind is PROPOSED[name].kind:
            assert stand_in(as_learned(PROPOSED))[name].domain_digest == (
                stand_in(as_learned(other))[name].domain_digest
            )


def test_marking_by_hand_forgets_too():
    """A page or a file may only change the source; what the rows proposed is not declared by it."""
    by_hand = Schema(
        columns=tuple(
            column.model_copy(update={"source": DomainSource.LEARNED})
            for column in PROPOSED.columns
        )
    )
    wanted, marked = open_domain(by_hand), open_domain(as_learned(PROPOSED))
    assert wanted == marked and len(wanted.numeric) + len(wanted.listed) > 8
    with pytest.raises(UndeclaredDomainError):
        by_hand.domain()


def test_set_values_are_unmarked_and_unbuyable_ones_refused():
    set_by_hand = PROPOSED.replace(PROPOSED["age"].model_copy(update={"high": 120.0}))
    assert as_learned(set_by_hand)["age"].source is DomainSource.DECLARED
    assert as_learned(set_by_hand, ["age"])["age"].source is DomainSource.LEARNED
    surrogate = next(c.name for c in PROPOSED.columns if c.kind.surrogate)
    with pytest.raises(SchemaError, match="Nothing can be learned"):
        as_learned(PROPOSED, [surrogate])
    tagged = PROPOSED.model_copy(update={"sensitive": {"g": ("age",)}})
    assert as_learned(tagged)["age"].source is DomainSource.DECLARED
    with pytest.raises(SchemaError, match="tagged"):
        as_learned(tagged, ["age"])
    stepped = without_proposals(as_learned(PROPOSED))["cost"].model_copy(update={"step": 0.01})
    learned = open_domain(PROPOSED.replace(stepped)).numeric[0]
    assert learned.step == 0.01  # the steward's word stays
