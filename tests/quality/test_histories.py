"""Histories in the report: measures by hand, ends that hold, and what people outside see."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.export.page_html import page
from core.figures.histories import choices, history_columns
from core.figures.report_figure import report_figures
from core.privacy.mechanisms.histograms import Histograms
from core.quality.event_table import kaplan_meier, transition_counts, transition_distance
from core.quality.metrics.histories import METRICS, in_order, opened
from core.quality.report.build_report import build_report
from core.quality.report.outside import outside_report
from core.quality.report.types import ReleasedHistograms, Report
from tests.histories import KINDS, schema, three_levels, two_files, visits

pytestmark = pytest.mark.slow
PEOPLE = 1_500


@pytest.fixture(scope="module")
def reports():
    real = visits(PEOPLE, 1)
    return {
        name: build_report(real, made, schema())
        for name, made in (("same law", visits(PEOPLE, 2)), ("dealt", dealt(visits(PEOPLE, 2))))
    }


def dealt(rows):
    """Events of people at random: nothing follows from the event before."""
    mixed = rows[["day", "kind"]].sample(frac=1.0, random_state=0, ignore_index=True)
    return rows.assign(
        day=mixed["day"], kind=mixed["kind"], key=rows["who"].where(mixed["day"] >= 0)
    )


def scores(report):
    return {score.key: score for score in report.scores if score.key.startswith("history_")}


def test_histories_of_one_law_are_as_near_as_halves(reports):
    found = scores(reports["same law"])
    assert set(found) == {metric.key for metric in METRICS.values()}
    for score in found.values():
        assert score.value <= 2 * score.ceiling + 0.02
        if score.key != "history_parents":  # sex says nothing of the events
            assert score.ceiling < score.dealt


def test_dealt_events_are_as_far_as_the_worst_end(reports):
    found = scores(reports["dealt"])
    for key in ("gaps", "transitions", "next"):
        score = found[f"history_{key}"]
        assert score.value > 5 * score.ceiling and score.value > 0.6 * score.dealt


def test_events_without_a_time_leave_a_report_that_can_be_read():
    declared, random = schema(), np.random.default_rng(4)
    declared = declared.replace(declared["day"].model_copy(update={"missing": True}))
    real, made = (
        table.assign(day=table["day"].where(random.random(len(table)) < 0.5))
        for table in (visits(PEOPLE, 1), visits(PEOPLE, 2))
    )
    report = build_report(real, made, declared)
    again = Report.model_validate_json(report.model_dump_json())
    assert again.histories and all(map(len, again.histories[0].people))


def test_what_follows_and_how_long_by_hand():
    who, states = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 0, 1, 1, 1])
    counts = transition_counts(who, states, 2)
    assert counts.tolist() == [[0, 1, 1], [1, 1, 2]]
    assert transition_distance(counts, counts) == 0.0
    until, seen = np.array([1.0, 1.0, 2.0, 3.0, 3.0]), np.array([True, False, True, False, True])
    survival = kaplan_meier(until, seen, np.array([0.5, 1.0, 2.5, 3.0]))
    assert survival == pytest.approx([1.0, 0.8, 0.8 * 2 / 3, 0.8 * 2 / 3 * 0.5])


def test_times_to_an_event_are_censored_at_the_last_one():
    rows = pd.DataFrame(
        {
            "who": [1, 1, 2, 2, 3],
            "sex": "f",
            "key": [1, 1, 2, 2, 3],
            "day": [10, 30, 0, 5, 7],
            "kind": ["a", "b", "a", "a", "b"],
        }
    )
    ((_, (table,)),) = opened(schema(), rows)
    states = table.events.values["kind"].astype(int)
    label = table.events.features["kind"].labels.index("b")
    times = np.array([0.0, 5.0, 20.0])  # somebody at once, somebody censored at 5, somebody at 20
    assert table.not_yet(states, label, times) == pytest.approx([2 / 3, 2 / 3, 0.0])
    assert table.run_lengths(states).tolist() == [1, 1, 2, 1]
    assert table.counts.tolist() == [2, 2, 1] and table.gaps.tolist() == [20.0, 5.0]


def test_each_file_in_order_has_histories_of_its_own():
    linked = two_files(300)
    found = build_report(linked.rows, linked.rows, linked.schema)
    assert [one.file for one in found.histories] == ["visits", "tests"]
    assert [[s.column for s in one.states] for one in found.histories] == [["kind"], ["test"]]
    assert all(score.value == pytest.approx(0.0) for score in scores(found).values())
    dumped = found.model_dump(mode="json")
    drawn = [one for one in report_figures() if one.tab == "histories"]
    assert choices(dumped) == [(0, 0), (1, 0)]
    for figure in drawn:
        first, second = (figure.drawn(dumped | {"history": one}) for one in choices(dumped))
        assert first and second and first != second


def test_rows_of_rows_have_histories_too():
    """Of members: those without a visit, and what holds for the member and the home."""
    linked = three_levels(200)
    assert in_order(linked.schema) == (1,)
    rows = linked.rows
    ((at, (table,)),) = opened(linked.schema, rows)
    assert at == 1
    members = rows[rows["member"].notna()]
    assert table.people == len(members) and table.own == ("date", "reason")
    assert set(table.constant) == {"sex", "age", "kind"}
    counts = members["member"].map(rows["visits.member"].value_counts()).fillna(0)
    assert table.counts.tolist() == counts.tolist()
    kinds = table.events.features["kind"].labels
    reasons = table.events.features["reason"].labels
    pairs = {
        (kinds[int(a)], reasons[int(b)])
        for a, b in zip(table.events.values["kind"], table.events.values["reason"], strict=True)
    }
    assert pairs == set(zip("abcd", "wxyz", strict=True))
    twice = rows.assign(member=rows["member"].where(rows["member"] != "M1", "M0"))
    ((_, (merged,)),) = opened(linked.schema, twice)  # a table from elsewhere, with a key twice
    assert merged.people == table.people - 1
    report = build_report(linked.rows, linked.rows, linked.schema)
    assert [one.file for one in report.histories] == ["visits"]
    found = scores(report)
    assert found["history_parents"].dealt > 5 * found["history_parents"].ceiling
    html = page(report.model_dump(), "homes")
    assert "first event · visits" in html


def test_outside_shows_synthetic_histories_alone(reports):
    report = outside_report(visits(200, 3), schema())
    (found,) = report.histories
    assert all(not one.real and one.tvd is None for one in found.pictures.values())
    assert all(not (one.real or one.real_not_yet or one.runs.real) for one in found.states)
    dumped = report.model_dump(mode="json")
    drawn = [one for one in report_figures() if one.tab == "histories"]
    assert len(drawn) == 3 and all(one.drawn(dumped) and one.describe(dumped) for one in drawn)
    inside = reports["same law"].model_dump(mode="json")
    assert (
        "real" in json.dumps(drawn[0].drawn(inside)) and len(inside["histories"][0]["people"]) == 10
    )


def released_of(real, schema):
    """Exact histograms, as if they had been released."""
    layout = Layout(schema.domain())
    codes, people = encoded_records(real, layout, schema.person)
    counted = Histograms.of(Codec(layout.domain), [c.name for c in layout.domain.columns])
    exact = counted.statistic(codes.to("cpu"), torch.from_numpy(people.weights))
    return ReleasedHistograms(n=people.n, noise_std=1.0, counts=counted.split(exact.tolist()))


def test_outside_shows_released_numbers_of_each_file():
    linked = two_files(300)
    released = released_of(linked.rows, linked.schema)
    found = outside_report(linked.rows, linked.schema, released=released).histories
    assert [one.file for one in found] == ["visits", "tests"]
    for one in found:
        assert {key: picture.tvd for key, picture in one.pictures.items()} == {
            "events": 0.0, "gaps": 0.0, "first": 0.0,
        }  # fmt: skip


def test_outside_shows_released_numbers_of_real_histories():
    real, made = visits(400, 4), visits(400, 5)
    (found,) = outside_report(made, schema(), released=released_of(real, schema())).histories
    pictures = found.pictures
    shares = dict(zip(pictures["events"].labels, pictures["events"].real, strict=True))
    assert shares["0"] == pytest.approx(0.2) and pictures["events"].tvd < 0.2
    assert sum(pictures["gaps"].real) + pictures["gaps"].missing_real == pytest.approx(
        1.0, abs=1e-3
    )


def test_exported_report_shows_histories(reports):
    report = reports["same law"].model_dump()
    html = page(report, "visits")
    for word in ("What follows what", "Time to an event", "time between events"):
        assert word in html
    assert {f"{title}" for title in history_columns(report)} == {
        "events per person", "time between events", "first event", "equal events in a row",
    }  # fmt: skip
    assert set(report["histories"][0]["states"][0]["labels"]) == set(KINDS)
