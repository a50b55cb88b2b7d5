"""The picture of a plan's stages: every private one with its cost, free ones marked as such."""

import math

import pytest

from core.figures.stages import stages_figure, stages_text
from core.language.catalogue import ENGLISH, say_figure
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.privacy.discovery.open_domain import as_learned
from core.privacy.plan import Budget
from core.proposing.propose import infer_schema
from core.runs.request import RunRequest
from core.services import planning
from core.services.sample_tables import sample_table
from tests.models.tables import domain

pytestmark = pytest.mark.slow


def drawn(model, epsilon=1.0, **settings):
    made = synthesizer(model)
    plan = plan_fit(made, domain(), 5000, Budget(epsilon=epsilon, delta=1e-6), settings)
    stages = [stage.model_dump() for stage in made.card.stages]
    return plan, stages, plan.model_dump(mode="json")


def test_what_a_run_learns_first_is_in_the_picture():
    table = as_learned(infer_schema(sample_table(400)))
    plan = planning.make_plan(table, 5000, RunRequest(model="scan_focus", epsilon=1.0))
    stages = [stage.model_dump() for stage in synthesizer("scan_focus").card.stages]
    said = texts(stages_figure(stages, plan.model_dump(mode="json")))
    assert said.index("Lists of labels") < said.index("Histogram of each column")
    assert all(phase.title in said for phase in plan.phases)


def notes(figure):
    return say_figure(figure, ENGLISH)["layout"]["annotations"]


def texts(figure):
    return " ".join(note["text"] for note in notes(figure)).replace("<br>", " ")


@pytest.mark.parametrize("model", [card.id for card in cards()])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_every_private_access_is_in_the_picture(model, epsilon):
    plan, stages, dumped = drawn(model, epsilon)
    said = texts(stages_figure(stages, dumped))
    titles = [stage["title"] for stage in stages]
    for phase in plan.phases:
        stage = next(s for s in stages if s["name"] == phase.name)
        assert stage["private"] and stage["title"] in said
        noise = f"noise {phase.noise_multiplier:.3g}" if math.isfinite(epsilon) else "no noise"
        if phase.rho is not None:
            noise = "random choice"
        assert noise in said and noise in stages_text(stages, dumped)
    assert said.index("Real table") < said.index(titles[-1]) < said.index("Synthetic table")
    assert ("uses no real rows" in said) == any(not s["private"] for s in stages)


def test_a_stage_the_plan_leaves_out_is_left_out():
    _, stages, dumped = drawn("pearl")
    assert "Typical distance" not in texts(stages_figure(stages, dumped))
    _, stages, dumped = drawn("pearl", distance_share=0.2)
    assert "Typical distance" in texts(stages_figure(stages, dumped))
    assert "20.0% of the budget" in texts(stages_figure(stages, dumped))


def test_random_batches_are_counted():
    _, stages, dumped = drawn("dp_gan", steps=30, critic_steps=2, batch=100)
    assert "60 random batches of 100" in texts(stages_figure(stages, dumped))


def test_arrows_join_boxes():
    plan, stages, dumped = drawn("p3gm")
    arrows = [note for note in notes(stages_figure(stages, dumped)) if note["showarrow"]]
    assert len(arrows) == len(plan.phases) + 1  # all of its stages are private
    assert all(arrow["ay"] > arrow["y"] for arrow in arrows)


def test_hidden_distributions_are_in_the_picture():
    _, stages, dumped = drawn("pearl")
    phase = dumped["phases"][-1] | {
        "name": "certificate: g", "mechanism": "laplace", "noise_multiplier": 10.0, "share": 0.1,
    }  # fmt: skip
    dumped["phases"].append(phase)
    dumped["protection"] = {"groups": {"g": ["age"], "unpaid": ["ill"]}, "shift": 0.75}
    said = texts(stages_figure(stages, dumped))
    assert "Shift of hidden columns" in said and "Certificate for “g”" in said
    assert "unpaid" not in said and "noise 10" in said
