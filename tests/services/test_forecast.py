"""What Plan foretells: never worse with more ε, loud where noise drowns, and from no row."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.generated_tables import TUNING
from core.models.registry import cards, synthesizer
from core.privacy.accounting.attacker import best_attack
from core.privacy.discovery.open_domain import as_learned
from core.proposing.propose import infer_schema
from core.runs.request import RunRequest
from core.schema.column import DomainSource
from core.services import planning
from core.services.estimates import forecast, run_progress
from core.services.estimates.domain_forecast import forecast_sentence, rarest_kept
from core.services.sample_tables import sample_table

FACTS = json.loads(forecast.FILE.read_text(encoding="utf-8"))
MODELS = sorted({row["model"] for row in FACTS["curves"]})
EPSILONS = np.geomspace(0.02, 50.0, 40)


def plan(**asked):
    request = RunRequest(**({"model": "pearl", "epsilon": 1.0} | asked))
    return planning.make_plan(infer_schema(sample_table()), 2_000, request)


def test_it_was_measured_on_tables_to_choose_on_alone():
    assert {fit["table"] for fit in FACTS["fits"]} <= set(TUNING)
    assert set(MODELS) == {"scan_focus", "pearl", "p3gm"} and FACTS["versions"]["torch"]


def test_every_timed_setting_is_one_of_the_model():
    for row in FACTS["pace"]:
        assert set(row["per_step"]) <= set(synthesizer(row["model"]).settings_class.model_fields)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("n", [50, 1_000, 7_000, 20_000, 3_000_000])
@pytest.mark.parametrize("columns", [2, 12, 500])
def test_more_epsilon_never_promises_less(model, n, columns):
    every = [forecast.expect(model, n=n, columns=columns, epsilon=e) for e in EPSILONS]
    for figure, sign in (("tvd_1way", -1), ("tvd_2way", -1), ("learnt", 1)):
        for part in ("mean", "low", "high"):
            values = [getattr(getattr(one, figure), part) for one in every]
            assert all(
                sign * b >= sign * a - 1e-12 for a, b in zip(values[:-1], values[1:], strict=True)
            )
            assert 0.0 <= min(values) and max(values) <= 1.0


def test_more_records_than_measured_promise_no_less():
    sizes = [20_000, 50_000, 1_000_000]
    every = [forecast.expect("pearl", n=n, columns=12, epsilon=0.2).tvd_2way.mean for n in sizes]
    assert every == sorted(every, reverse=True) and every[0] > every[-1]


def test_a_forecast_lies_between_the_measured_tables():
    one = forecast.expect("pearl", n=5_000, columns=12, epsilon=1.0)
    own = [
        fit["tvd_2way"]
        for fit in FACTS["fits"]
        if (fit["model"], fit["n"], fit["epsilon"]) == ("pearl", 5_000, 1.0)
    ]
    assert min(own) - 0.02 <= one.tvd_2way.low <= one.tvd_2way.mean <= one.tvd_2way.high
    assert one.tvd_2way.high <= max(own) + 0.02


@pytest.mark.parametrize("columns", [8, 15, 40])
def test_noise_that_hides_the_table_is_recognised(columns):
    assert forecast.drowned(n=5_000, columns=columns, epsilon=0.1)
    assert not forecast.drowned(n=30_000, columns=columns, epsilon=1.0)


def test_advice_does_not_rank_models_that_noise_decides():
    advice = forecast.advise(n=60, columns=8, epsilon=1.0, target=False)
    assert advice.model == forecast.USUAL and "noise decides" in str(advice.sentence)
    clear = forecast.advise(n=30_000, columns=8, epsilon=1.0, target=False)
    assert "noise decides" not in str(clear.sentence)


@pytest.mark.parametrize("model", ["scan_focus", "pearl"])
def test_fewer_columns_keep_what_a_smaller_plan_keeps(model):
    request = RunRequest(model=model, epsilon=1.0)
    schema = as_learned(infer_schema(sample_table(2_000)))
    words = forecast_sentence(planning.make_plan(schema, 2_000, request), schema).values["part1"]
    columns = forecast.modelled_columns(schema)
    assert words.values["n"] == columns and words.values["half"] == columns // 2
    named = [column for column in schema.columns if column.modelled and column.kind.listed]
    smaller = schema
    for column in [c for c in schema.columns if c.modelled and c not in named[:2]]:
        if forecast.modelled_columns(smaller) > columns // 2:
            left_out = {"source": DomainSource.DROP}
            smaller = smaller.replace(column.model_copy(update=left_out))
    plan = planning.make_plan(smaller, 2_000, request)
    assert words.values["count"] == pytest.approx(rarest_kept(plan, smaller), rel=0.05)
    assert forecast_sentence(plan, infer_schema(sample_table(2_000))) is None


def test_the_forecast_of_each_epsilon_rises_together():
    made = plan(epsilon=2.0)
    points = forecast.prospects(made, columns=9, epsilons=(0.5, 2.0, 8.0), claim=made.guarantee)
    for key in ("pairs", "learnt", "attacker"):
        means = [point[key][0] for point in points]
        assert means == sorted(means) and all(0.0 <= mean <= 1.0 for mean in means)
        assert all(point[key][1] <= point[key][0] <= point[key][2] for point in points)
    own = forecast.expect("pearl", n=2_000, columns=9, epsilon=forecast.effective_epsilon(made))
    assert points[1]["pairs"][0] == pytest.approx(1.0 - own.tvd_2way.mean)
    told, ran = points[1]["attacker"][0], best_attack(made.charged, 2.0, made.budget.delta).right
    assert ran <= told <= ran + 1e-3 < best_attack(None, 2.0, made.budget.delta).right
    sampled = plan(model="p3gm", epsilon=2.0)
    point = forecast.prospects(sampled, columns=9, epsilons=(2.0,), claim=sampled.guarantee)[0]
    assert point["attacker"][0] == best_attack(None, 2.0, sampled.budget.delta).right


def test_minutes_are_a_range_that_a_busy_machine_widens(monkeypatch):
    monkeypatch.setattr(forecast.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(forecast.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    low, high = forecast.seconds_range(100.0, measured=True)
    assert low < 100.0 < high and high / low <= 4.0  # within twice of the forecast
    assert forecast.seconds_range(100.0, measured=False)[1] > high
    monkeypatch.setattr(forecast.os, "getloadavg", lambda: (7.0, 7.0, 7.0))
    assert forecast.seconds_range(100.0, measured=True) == (low, pytest.approx(4 * high))


def test_models_that_were_not_measured_are_not_guessed():
    for card in cards():
        one = forecast.expect(card.id, n=5_000, columns=9, epsilon=1.0)
        assert (one is not None) == (card.id in MODELS)
    assert forecast.expected_seconds(plan(model="ppem"), columns=9, speed=1.0) is None


def test_other_payments_and_people_of_many_rows_leave_less():
    whole = forecast.effective_epsilon(plan())
    assert whole == pytest.approx(1.0)
    assert forecast.effective_epsilon(plan(review=0.2)) == pytest.approx(0.8, rel=0.02)
    assert forecast.effective_epsilon(plan().model_copy(update={"attempts": 2})) == whole / 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
def test_what_is_advised_was_not_clearly_worse_than_any_other(epsilon):
    for n, columns in ((1_000, 9), (5_000, 17), (50_000, 12), (20_000, 900)):
        asked = {"n": n, "columns": columns, "epsilon": epsilon}
        advice = forecast.advise(**asked, target=False)
        if forecast.drowned(**asked):
            continue
        mine = forecast.expect(advice.model, **asked).tvd_2way.mean
        best = min(forecast.expect(model, **asked).tvd_2way.mean for model in MODELS)
        assert mine <= best + forecast.CLEARLY
        assert "no other model came clearly closer" in advice.sentence


def test_more_rows_a_person_need_a_longer_table():
    one = forecast.advise(n=5_000, columns=12, epsilon=3.0, target=True, rows_of_one=10)
    assert one == forecast.advise(n=5_000, columns=12, epsilon=0.3, target=True)


def test_seconds_follow_steps_and_the_machine():
    few, many = (
        forecast.expected_seconds(plan(settings={"steps": steps}), columns=9, speed=1.0)
        for steps in (100, 1_000)
    )
    each = next(r for r in FACTS["pace"] if r["model"] == "pearl")["per_step"]["steps"]
    assert many > few
    twice = forecast.expected_seconds(plan(settings={"steps": 100}), columns=9, speed=2.0)
    assert twice == pytest.approx(2 * few) and each > 0.0


def test_a_machine_is_timed_once_and_another_one_anew(tmp_path: Path, monkeypatch):
    times = iter([0.5, 0.25, 0.125])
    monkeypatch.setattr(run_progress, "matrix_seconds", lambda: next(times))
    assert [run_progress.machine_seconds(tmp_path) for _ in range(2)] == [0.5, 0.5]
    monkeypatch.setattr(run_progress.platform, "node", lambda: "another")
    assert run_progress.machine_seconds(tmp_path) == 0.25
    (tmp_path / run_progress.FILE).write_text("[1")
    assert run_progress.machine_seconds(tmp_path) == 0.125
