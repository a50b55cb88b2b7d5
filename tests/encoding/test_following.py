"""Rules from one event of a person to the next, which no row breaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from core.encoding.codec import Codec
from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.encoding.person_rows import encoded_records
from core.proposing.rule_suggestions import suggest_rules
from core.schema.column import Column, Kind, SchemaError
from core.schema.person import History, Person
from core.schema.rules import following
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from tests.histories import two_files

pytestmark = pytest.mark.quick
NEXT = "admitted[t+1] >= discharged[t]"
DAY = pd.Timedelta(days=1)
FIRST = pd.Timestamp("2020-01-01")


def stays(
    *rules: str, high: str = "2020-03-01", order: str | None = "admitted", more: tuple = ()
) -> Schema:
    """Of people with stays in hospital."""
    dates = {"kind": Kind.DATETIME, "step": 86400.0, "missing": True, "dtype": "datetime64[ns]"}
    bounds = {"low": FIRST.timestamp(), "high": pd.Timestamp(high).timestamp()}
    columns = (
        Column(name="who", kind=Kind.IDENTIFIER, dtype="int64"),
        Column(name="born", **dates | bounds | {"missing": False}),
        Column(name="admitted", **dates, **bounds),
        Column(name="discharged", **dates, **bounds),
        Column(name="stage", kind=Kind.INTEGER, low=1, high=9, step=1, dtype="int64"),
        Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m")),
        *more,
    )
    constant = ("born",)
    person = Person(
        columns=("who",),
        rows=6,
        constant=constant,
        order=order,
        history=History() if order else None,
    )
    return Schema(columns=columns, person=person, rules=tuple(map(parse_rule, rules)))


def drawn(days: Sequence[Sequence[int]], sizes: list[int]) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of people as somebody might draw them; a negative day is a missing one."""
    who = np.repeat(np.arange(len(sizes)), sizes)[: len(days)]
    numbers = np.array(days)[: len(who)]
    dates = [pd.Series(FIRST + day * DAY).where(pd.Series(day) >= 0) for day in numbers.T[:2]]
    frame = pd.DataFrame({"who": who, "admitted": dates[0], "discharged": dates[1]})
    return frame.assign(born=FIRST, sex="f", stage=numbers[:, 2] % 9 + 1), who


RULES = (NEXT, "admitted <= discharged", "born <= admitted", "stage[t] <= stage[t+1]")


def made(frame: pd.DataFrame, who: np.ndarray, schema: Schema) -> pd.DataFrame:
    """What comes out where a model draws these rows."""
    layout = Layout(schema.domain())
    own = Codec(layout.windows.source.domain)
    seen = own.decode_codes(own.encode(layout.to_model(frame)))
    file = np.zeros(len(who), dtype=int)
    return layout.from_events(seen, who, file, file - 1, 0)


def check(table: pd.DataFrame, schema: Schema) -> None:
    assert set(count_violations(table, schema.domain()).values()) <= {0}
    by = table.groupby("who", sort=False)
    later = by["admitted"].shift(-1)
    assert not (later < table["discharged"]).any()
    assert not (later < table["admitted"]).any()
    assert not (by["stage"].shift(-1) < table["stage"]).any()


@pytest.mark.parametrize("seed", range(4))
def test_no_row_breaks_a_rule_with_the_row_before(seed) -> None:
    schema, random = stays(*RULES), np.random.default_rng(seed)
    sizes = random.integers(1, 7, 300).tolist()
    days = random.integers(-1, (61, 61, 9), (sum(sizes), 3))
    frame, who = drawn(days, sizes)
    table = made(frame, who, schema)
    check(table, schema)
    assert table["who"].nunique() == len(sizes) and len(table) > len(frame) / 2


def test_rules_of_one_row_alone_are_caught(monkeypatch) -> None:
    monkeypatch.setattr(
        following.Following, "settle", lambda self, cells, who: ({}, np.ones(len(who), dtype=bool))
    )
    with pytest.raises(AssertionError):
        test_no_row_breaks_a_rule_with_the_row_before(0)


def test_events_without_room_go_and_others_stay() -> None:
    stay = Column(name="stay", kind=Kind.INTEGER, low=3, high=5, step=1, missing=True)
    schema = stays(NEXT, "stay = discharged - admitted", high="2020-01-08", more=(stay,))
    frame, who = drawn([(0, 3, 0), (4, 7, 0), (4, 7, 0), (1, 4, 0)], [3, 1])
    table = made(frame.assign(stay=3), who, schema)
    assert table["who"].value_counts().to_list() == [2, 1]
    assert (table["discharged"] - table["admitted"] == 3 * DAY).all()
    assert table["admitted"].to_list() == [FIRST, FIRST + 4 * DAY, FIRST + DAY]


def test_rows_that_keep_the_rules_stay_as_they_are() -> None:
    schema = stays(*RULES)
    days = [(1, 4, 0), (4, 9, 1), (30, 30, 1), (2, 3, 5), (3, 60, 6)]
    frame, who = drawn(days, [3, 2])
    table = made(frame, who, schema)
    own = [name for name in frame if name != "who"]
    pd.testing.assert_frame_equal(table[own], frame[own], check_dtype=False)


def test_waits_count_from_the_end_before() -> None:
    schema = stays(*RULES[:3])
    layout = Layout(schema.domain())
    assert layout.windows.waits_from == ("discharged - admitted", 1.0)  # both in days
    frame, _ = drawn([(1, 4, 0), (9, 12, 0), (10, 11, 0)], [3])
    codes, _ = encoded_records(frame, layout, schema.person)
    seen = layout.windows.codec.decode_codes(codes)
    name = layout.windows.names("gap")[0]
    assert seen[name].round().to_list() == [5.0, 0.0]  # the third breaks the rule


def test_real_rows_suggest_rules_and_are_counted() -> None:
    random = np.random.default_rng(0)
    sizes, days = [4] * 60, []
    for _ in sizes:
        ends = np.sort(random.choice(60, 8, replace=False))
        days += [(a, b, i) for i, (a, b) in enumerate(zip(ends[::2], ends[1::2], strict=True))]
    frame, _ = drawn(days, sizes)
    frame = frame.sample(frac=1.0, random_state=1, ignore_index=True)
    found = {rule.text for rule in suggest_rules(stays(), frame)}
    assert {NEXT, "stage[t+1] >= stage[t]"} <= found
    assert NEXT not in {rule.text for rule in suggest_rules(stays(order=None), frame)}
    late = frame["admitted"].where(frame["stage"] != 2, FIRST)
    counts = count_violations(frame.assign(discharged=late), stays(NEXT).domain())
    assert counts[NEXT] == 0
    wrong = frame.assign(
        discharged=frame["discharged"].where(frame["stage"] != 2, FIRST + 60 * DAY)
    )
    assert count_violations(wrong, stays(NEXT).domain())[NEXT] > 40


@pytest.mark.parametrize(
    ("rules", "order", "words"),
    [
        ((NEXT,), None, "which one sorts their rows"),
        (("stage[t] <= admitted[t+1]",), "admitted", "dates and numbers do not go together"),
        (("sex[t] <= sex[t+1]",), "admitted", "neither a number nor a date"),
        ((NEXT, "if stage = 1 then discharged is missing"), "admitted", "cannot both be kept"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rules, order, words) -> None:
    with pytest.raises(SchemaError, match=words):
        stays(*rules, order=order).domain()


def test_rules_of_a_second_file_are_refused() -> None:
    _, declared, _ = two_files(9)
    rule = parse_rule("when[t] <= when[t+1]")
    with pytest.raises(SchemaError, match="only in the first table that was linked"):
        Layout(declared.model_copy(update={"rules": (rule,)}).domain())
