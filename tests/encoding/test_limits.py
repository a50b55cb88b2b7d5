"""Rules by which a person's events end, of events that are drawn one after another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.codec import Codes
from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.encoding.windows import PERSON, Windows
from core.models.first_event import with_possible_ends
from core.proposing.rule_suggestions import suggest_rules
from core.schema.column import Column, Kind, RuleDomainError
from core.schema.rules.chains import Chain
from core.schema.rules.rules import parse_rule
from core.schema.schema import Schema
from tests.encoding.test_following import DAY, FIRST, made, stays
from tests.histories import leaving

pytestmark = pytest.mark.quick
ENDS = "admitted <= died"
LIMITS = (ENDS, "discharged <= died", "seen <= consent")
OTHERS = ("born <= admitted", "born <= died", "admitted <= discharged", "consent <= left")
DATES = ("born", "admitted", "discharged", "died", "seen", "consent", "left")


def histories(*rules: str, low: int = 0, high: int = 60) -> Schema:
    """Of people who may die, or leave, and their stays."""
    dates = {"kind": Kind.DATETIME, "step": 86400.0, "missing": True, "dtype": "datetime64[ns]"}
    bounds = {
        "low": (FIRST + low * DAY).timestamp(),
        "high": (FIRST + high * DAY).timestamp(),
    }
    more = [Column(name=name, **dates, **bounds) for name in ("died", "consent", "left")]
    [admitted] = [column for column in stays().columns if column.name == "admitted"]
    seen = admitted.model_copy(update={"name": "seen"})
    schema = stays(more=(*more, seen))
    person = schema.person.model_copy(update={"constant": ("born", "died", "consent", "left")})
    return Schema(columns=schema.columns, person=person, rules=tuple(map(parse_rule, rules)))


@st.composite
def people(draw: st.DrawFn) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows as somebody might draw them: any days, some missing; what is a person's is constant."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    who = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    frame = pd.DataFrame({"who": who, "sex": "f", "stage": 1})
    for name in DATES:
        own = random.integers(-8, 61, len(sizes if name in CONSTANT else who))
        days = pd.Series(own[who] if name in CONSTANT else own)
        missing = (days < 0) & (name != "born")
        frame[name] = (FIRST + days.clip(0) * DAY).where(~missing)
    return frame, who


CONSTANT = ("born", "died", "consent", "left")


@settings(max_examples=100, deadline=None)
@given(people(), st.sets(st.sampled_from(LIMITS), min_size=1), st.sets(st.sampled_from(OTHERS)))
def test_events_end_by_what_rules_say_of_their_person(
    drawn: tuple[pd.DataFrame, np.ndarray], limits: set[str], others: set[str]
) -> None:
    schema = histories(*sorted(limits), *sorted(others))
    table = made(*drawn, schema)
    assert set(count_violations(table, schema.domain()).values()) == {0}
    assert table.groupby("who")[list(CONSTANT)].nunique(dropna=False).max().max() == 1
    there = (table[name].isna().sum() for name in DATES)
    assert list(there) == [drawn[0][name].isna().sum() for name in DATES]


def violations(schema: Schema) -> list[int]:
    """Of somebody who dies before their first stay."""
    days = {"born": 40, "admitted": 47, "discharged": 55, "died": 20, "seen": 30}
    frame = pd.DataFrame({"who": [0], "sex": "f", "stage": 1, "consent": pd.NaT, "left": pd.NaT})
    frame = frame.assign(**{name: FIRST + day * DAY for name, day in days.items()})
    table = made(frame, np.zeros(1, dtype=int), schema)
    return list(count_violations(table, schema.domain()).values())


def test_leaving_no_room_for_what_ends_later_breaks_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = histories("discharged <= died", "admitted <= discharged", "born <= admitted")
    assert violations(schema) == [0, 0, 0]
    monkeypatch.setattr(Chain, "_limit", lambda chain, bounds, there: None)
    assert violations(schema) != [0, 0, 0]


def test_models_see_when_events_are_and_until_when() -> None:
    rules = ("born <= admitted", "born <= died", ENDS)
    for kept, worth in (
        ((ENDS,), {"died": 1.0}),
        (rules[::2], {"died": 1.0, "born": -1.0}),
        (rules, {"died - born": 1.0}),
    ):
        windows = Layout(histories(*kept).domain()).windows
        [limit] = windows.limits
        unit = 86400.0 if "died" in limit else 1.0
        assert {name: one * unit for name, one in limit.items()} == pytest.approx(
            {name: one * (1.0 if kept != (ENDS,) else 86400.0) for name, one in worth.items()}
        )


def persons(windows: Windows, **days: list[float]) -> Codes:
    """People with these dates, in windows."""
    seen = windows.blank(len(next(iter(days.values()))))
    for name, own in days.items():
        block = windows.by_role[PERSON, name]
        times = FIRST.timestamp() + np.array(own) * 86400.0
        gone = np.isnan(times)
        state, value = block.snapped(np.where(gone, block.line.low, times))
        seen.states[:, block.index] = np.where(gone, block.missing_state, state)
        seen.values[:, block.number] = np.where(gone, 0.0, value)
    return seen


def test_each_person_has_a_last_day_of_their_own() -> None:
    windows = Layout(histories("born <= admitted", ENDS).domain()).windows
    seen = persons(windows, born=[0, 5, 5], died=[30, 50, np.nan])
    until = windows.until(seen, windows.of_person)
    np.testing.assert_allclose(until, [30, 45, windows.last])


def test_nobody_with_events_ends_before_any_could_be() -> None:
    windows = Layout(histories(ENDS, low=-60).domain()).windows
    seen = persons(windows, died=[-30, 10, np.nan, -1])
    made = with_possible_ends(seen, [windows], torch.Generator().manual_seed(0))
    died = (made.numbers(windows.of_person["died"]) - FIRST.timestamp()) / 86400.0
    np.testing.assert_allclose(died, [10, 10, np.nan, 10])


def test_what_a_calendar_moves_beyond_its_end_ends_there() -> None:
    windows = Layout(histories(ENDS).domain()).windows
    codec = windows.source
    frame = pd.DataFrame({name: FIRST for name in DATES} | {"sex": "f", "stage": 1}, index=range(3))
    admitted = FIRST + pd.to_timedelta([20, 40, 40], unit="D")
    frame = frame.assign(admitted=admitted, died=FIRST + 30 * DAY)
    rows = codec.encode(frame.assign(died=frame["died"].where([True, True, False])))
    windows.end(rows)
    days = (rows.numbers(codec.block("admitted")) - FIRST.timestamp()) / 86400.0
    np.testing.assert_allclose(days, [20, 30, 40])


def test_a_limit_that_no_event_could_keep_is_refused() -> None:
    with pytest.raises(RuleDomainError, match="cannot hold within the bounds"):
        histories(ENDS, low=-60, high=-30).domain()


def test_the_last_day_of_a_person_is_suggested() -> None:
    rows, schema = leaving(200)
    assert [rule.text for rule in suggest_rules(schema, rows)] == ["day <= left"]
    shuffled = rows.assign(left=200 - rows["left"])
    assert not suggest_rules(schema, shuffled)
    alone = schema.person.model_copy(update={"history": None})
    assert not suggest_rules(schema.model_copy(update={"person": alone}), rows)
