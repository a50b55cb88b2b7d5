"""Plan: what is shown before anything is spent, and what is spent when asked."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from core.models.registry import cards
from core.runs.accounts.account import DEFAULT_LIMIT, set_limit, table_account
from core.runs.events import State
from core.runs.request import RunRequest
from core.schema.column import DomainSource
from core.schema.rounding_up import round_up
from core.services import imports, planning
from core.services.estimates import forecast
from core.services.sample_tables import sample_table
from pages.plan import budget_choice
from pages.server import guard
from pages.shared import widgets as shared
from tests.pages.screen import button, buttons, press, whole, words

pytestmark = pytest.mark.slow


def numbers(at):
    return {metric.label: metric.value for metric in at.metric}


def helps(at):
    return {metric.label: metric.help for metric in at.metric}


def test_the_first_screen_needs_few_words(table, show):
    at = show("plan", table=table.id)
    at.session_state["details"] = False
    at = whole(at.run())
    shown = [e.value for kind in (at.title, at.caption, at.markdown) for e in kind]
    shown += [f"{metric.label} {metric.value}" for metric in at.metric]
    folded = " ".join(e.value for box in at.expander for e in (*box.markdown, *box.caption))
    assert len(" ".join(shown).split()) - len(folded.split()) <= 150
    assert len(at.get("plotly_chart")) == 1


def test_quality_attacker_and_time_move_with_epsilon(table, show):
    at = whole(show("plan", table=table.id))
    strong, labels = numbers(at), ("Pairs in common", "Attacker guesses right")
    weak = numbers(whole(at.select_slider(key="epsilon").set_value(3.0).run()))
    for label in labels:
        low, high = (int(re.findall(r"\d+", one[label])[-1]) for one in (strong, weak))
        assert low < high
    assert strong["Attacker guesses right"] == "≤ 55%" and " – " in weak["Time"]


def test_every_phase_is_shown_with_its_noise(table, show):
    at = whole(show("plan", table=table.id).pills[0].set_value("pearl").run())
    plan = planning.make_plan(table.schema, table.n, RunRequest(model="pearl", epsilon=1.0))
    said = words(at)
    for phase in plan.phases:
        assert phase.title in said and f"{phase.noise_multiplier:.2f}" in said
    assert (
        f"replace-one, the same run has ε = {round_up(plan.guarantee.epsilon_replace, '.2f'):.2f}"
        in said
    )
    assert len(at.get("plotly_chart")) == 2  # every ε, the stages
    assert "This first release opens" in said
    assert "Estimated from benchmark runs and" in helps(at)["Time"]


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_epsilon_changes_plan_meaning_and_price(table, show, epsilon):
    at = show("plan", table=table.id)
    before = words(at)
    at = whole(at.select_slider[0].set_value(epsilon).run())
    assert float(numbers(at)["ε"]) == pytest.approx(epsilon, rel=0.01)
    assert f"Train: spends ε = {epsilon:g} of this table's budget" in buttons(at)
    assert words(at) != before


def test_every_epsilon_has_a_meaning():
    for epsilon in budget_choice.EPSILONS:
        assert next(text for limit, text in budget_choice.MEANING if epsilon <= limit)


def test_training_starts_as_asked(store, table, show, gone):
    at = show("plan", table=table.id)
    at.text_input[0].set_value("my run")
    next(n for n in at.number_input if n.label == "Synthetic rows").set_value(123)
    next(n for n in at.number_input if n.label.startswith("Seed")).set_value(7)
    at.radio[0].set_value("cpu")
    at.run()
    whole(press(at, "Train: spends ε = 1 of this table's budget"))
    (run,) = store.runs()
    assert (run.name, run.rows, run.request.seed, run.request.device) == ("my run", 123, 7, "cpu")
    assert run.state is State.QUEUED and run.private and run.request.without_privacy == ""
    assert gone == [("training", {"run": run.id})]


def test_a_run_without_privacy_keeps_the_typed_words(store, table, show, gone):
    at = show("plan", table=table.id)
    at = whole(at.toggle[0].set_value(True).run())
    assert "Nothing is protected" in at.error[0].value and not at.select_slider
    for typed in ("yes", "private", ""):
        at.text_input(key=f"confirm_not_private_{table.id}").set_value(typed).run()
        assert button(at, "Train without differential privacy").disabled
    at.text_input(key=f"confirm_not_private_{table.id}").set_value(" Not Private ").run()
    whole(press(at, "Train without differential privacy"))
    (run,) = store.runs()
    assert not run.private and run.request.without_privacy.strip() == "Not Private"
    assert math.isinf(run.plan.budget.epsilon) and gone


def test_a_wrong_setting_is_a_plain_error(table, show, monkeypatch):
    def refuse(*_, **__):
        raise ValueError("steps: input should be greater than 0, not 0")

    monkeypatch.setattr(planning, "make_plan", refuse)
    at = whole(show("plan", table=table.id))
    assert at.error[0].value.startswith("steps") and "Back to the table" in buttons(at)
    assert not any(label.startswith("Train") for label in buttons(at))


def test_the_way_back_leads_to_the_table(store, table, show, gone):
    bare = {"source": DomainSource.DECLARED, "low": None}
    age = table.schema["age"].model_copy(update=bare)
    store.save_schema(table.id, table.schema.replace(age))
    store.attest(table.id)
    at = whole(press(show("plan", table=table.id), "Back to the table"))
    assert "age" in at.error[0].value
    assert gone == [("tables", {"table": table.id})]


def test_the_newest_table_is_offered_without_an_address(store, table, show):
    other = imports.import_frame(store, sample_table(60), name="other", source="test")
    store.attest(other.id)
    at = whole(show("plan"))
    assert at.selectbox[0].options == ["other", table.name]
    assert f"{other.n:,} rows" in words(at)
    at = whole(show("plan", table="gone"))
    # a table that is gone is not planned for by another one
    assert "outdated" in at.warning[0].value and buttons(at) == ["Show what is available"]


def test_a_limit_is_shown(store, table, show):
    set_limit(store, table.id, epsilon=3.0)
    assert "0.00% of the limit of ε 3 is used" in words(whole(show("plan", table=table.id)))


def test_the_first_plan_sets_the_limit(store, table, show, gone):
    at = show("plan", table=table.id)
    box = next(n for n in at.number_input if n.label.startswith("Limit on ε"))
    assert box.value == DEFAULT_LIMIT
    at = whole(box.set_value(0.5).run())
    label = "Not possible: the limit of ε = 0.5 is below this run's ε"
    assert button(at, label).disabled
    next(n for n in at.number_input if n.label.startswith("Limit on ε")).set_value(4.0).run()
    whole(press(at, "Train: spends ε = 1 of this table's budget"))
    assert table_account(store, table.id).limit == 4.0 and gone
    at = whole(show("plan", table=table.id))
    assert not [n for n in at.number_input if n.label.startswith("Limit on ε")]


def test_the_usual_limit_opens_with_the_release_itself(store, table, show, gone):
    whole(press(show("plan", table=table.id), "Train: spends ε = 1 of this table's budget"))
    assert table_account(store, table.id).limit is None  # the worker's debit opens the account


def test_who_may_set_no_limit_is_not_asked(table, show, monkeypatch):
    monkeypatch.setattr(guard, "sets_limits", lambda: False)
    at = whole(show("plan", table=table.id))
    assert not [n for n in at.number_input if n.label.startswith("Limit on ε")]


def test_earlier_runs_say_how_long_it_takes(store, table, start, show):
    run = start()
    store.record(run.id, seconds={"training": 90.0})
    store.set_state(run.id, State.DONE)
    at = whole(show("plan", table=table.id).pills[0].set_value("pearl").run())
    low, high = numbers(at)["Time"].split(" – ")
    assert low == "1 min" and int(high.split()[0]) >= 3
    assert "earlier runs" in helps(at)["Time"]


def test_two_tables_of_one_name_can_be_told_apart(store, table, show):
    other = imports.import_frame(store, sample_table(60), name=table.name, source="test")
    at = show("plan")
    at = whole(at.selectbox[0].select_index(1).run())
    assert f"{table.n:,} rows" in words(at) and f"{other.n:,} rows" not in words(at)


@pytest.mark.parametrize("base", ["dp_gan", "dp_auto_gan", "ppem"])
def test_one_switch_boosts_an_adversarial_model(store, table, show, gone, base):
    at = show("plan", table=table.id)
    assert not any(toggle.label.startswith("Boost") for toggle in at.toggle)
    at.pills[0].set_value(base).run()
    next(t for t in at.toggle if t.label.startswith("Boost")).set_value(True).run()
    at = whole(at)
    assert "Choosing among all generators" in words(at)
    whole(press(at, "Train: spends ε = 1 of this table's budget"))
    (run,) = store.runs()
    assert (run.plan.model, run.plan.settings["base"]) == ("pgb", base) and gone


def test_boosting_offers_its_bases(table, show):
    at = show("plan", table=table.id)
    at.pills[0].set_value("pgb").run()
    (bases,) = [g for g in at.segmented_control if g.label == "Base model"]
    at = whole(bases.set_value("ppem").run())
    assert "Training on the tagged columns" in words(at)


@pytest.mark.parametrize("model", [card.id for card in cards()])
def test_every_model_can_be_planned(table, show, model):
    at = show("plan", table=table.id)
    at.pills[0].set_value(model).run()
    at = whole(at)
    card = next(card for card in cards() if card.id == model)
    plan = planning.make_plan(table.schema, table.n, RunRequest(model=model, epsilon=1.0))
    said = words(at)
    assert card.summary in said and len(at.get("plotly_chart")) == 2
    for phase in plan.phases:
        noise = f"{phase.noise_multiplier:.2f}" if phase.rho is None else "the odds of a choice"
        assert phase.title in said and noise in said
        assert phase.sampling_rate is None or "random batches" in said
    free = any(not stage.private for stage in card.stages)
    assert ("use no private data" in said.replace("  \n", " ")) == free


def test_switches_are_switches(table, show):
    at = show("plan", table=table.id)
    at.pills[0].set_value("p3gm").run()
    switch = next(t for t in at.toggle if t.label == "Learn uncertainty")
    switch.set_value(False).run()
    whole(at)


def test_what_is_declared_stands_on_the_plan_with_its_origin(table, show):
    text = words(show("plan", table=table.id))
    assert "age: integer from 0 to 100 in steps of 1, never missing" in text
    assert "as proposed from the rows" in text


def test_the_forecast_reads_no_row(store, table, show):
    store.table_artefacts(table.id).delete("rows.parquet")
    at = whole(show("plan", table=table.id))
    source = helps(at)["Pairs in common"]
    assert "Expected distance" in source and "not from your rows" in source
    at = whole(at.pills[0].set_value("ppem").run())
    assert "There is no quality forecast for PPEM" in words(at)
    assert "Pairs in common" not in numbers(at) and numbers(at)["Time"] == "—"


@pytest.mark.parametrize(("n", "epsilon", "drowns"), [(5_000, 0.1, True), (30_000, 1.0, False)])
def test_noise_that_drowns_a_table_is_said(table, show, monkeypatch, n, epsilon, drowns):
    longer = dataclasses.replace(table, n=n)
    monkeypatch.setattr(shared, "chosen_table", lambda: longer)
    at = whole(show("plan", table=table.id).select_slider[0].set_value(epsilon).run())
    assert ("Too much noise for this table" in words(at)) is drowns


def test_without_privacy_only_time_is_forecast(table, show):
    at = whole(show("plan", table=table.id).toggle[0].set_value(True).run())
    assert set(numbers(at)) == {"Time"}


def test_the_advised_model_is_chosen_until_another_is_taken(table, show):
    at = whole(show("plan", table=table.id))
    advice = forecast.advise_for(table.schema, n=table.training_n, epsilon=budget_choice.USUAL)
    assert at.pills[0].value == advice.model and "recommended for this table" in words(at)
    at = whole(at.pills[0].set_value("p3gm").run())
    assert "recommended for this table" not in words(at)
    press_it = button(at, "Take Scan and focus, which is recommended")
    assert press_it.help == advice.sentence
    at = whole(press_it.click().run())
    assert at.pills[0].value == advice.model
