"""Boosting: critics in one pass, weights by hand, and a mixture that leaves bad generators out."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from core.encoding.codec import Codec
from core.models.pgb.marginal_queries import MarginalQueries
from core.models.pgb.multiplicative_weights import (
    BoostedMixture,
    CalibratedCritics,
    MultiplicativeWeights,
    WeightsState,
    rates,
)
from core.models.pgb.plan import BASES, BOOST, Pgb
from core.models.planning import plan_fit
from core.models.ppem.energy import as_critics
from core.models.ppem.plan import PpemSettings
from core.models.ppem.tagged_first import TaggedFirst
from core.models.step import FitContext
from core.models.steps.training.heads import Heads
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble, unpacked
from core.privacy.accounting.accountant import epsilon
from core.privacy.dpsgd.dense import Dense
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from tests.models.tables import Watcher, coded, domain

pytestmark = pytest.mark.slow

CODEC, CODES = coded(300)
HEADS = Heads(CODEC)
WIDTHS = (HEADS.critic_width, 8, 4, 1)
AGE = CODEC.block("age")


def critic(seed):
    return Dense({"c": WIDTHS}, generator=torch.Generator().manual_seed(seed))


def old_age(sign):
    """A critic whose output is the age's position, or its opposite."""
    networks = critic(0)
    with torch.no_grad():
        networks.flat.zero_()
        for layer, (out, into) in zip(
            networks.layers, ((0, AGE.start), (0, 0), (0, 0)), strict=True
        ):
            layer.views(networks.flat)[0][out, into] = 1.0
        networks.layers[-1].views(networks.flat)[0][0, 0] = sign
    return networks.flat.detach().clone()


def emit(flat, rows, random):
    """A generator with one parameter: how old its records are."""
    bins = HEADS.bins[AGE.index]
    logits = torch.zeros(rows, HEADS.total)
    start = sum(column.count for column in HEADS.bins[: AGE.index])
    places = torch.as_tensor(bins.centres, dtype=torch.float32)
    logits[:, start : start + bins.cells] = -200.0 * (places - flat[0]) ** 2
    return logits


def ensemble(places, critics=None):
    critics = [old_age(1.0), old_age(-1.0)] if critics is None else critics
    layers = unpacked(torch.stack(critics), WIDTHS)
    return SnapshotEnsemble(HEADS, torch.tensor(places).unsqueeze(1), emit, layers)


def test_all_critics_at_once_score_as_each_does_alone():
    alone = [critic(seed) for seed in range(5)]
    records = HEADS.critic_view(CODES.to("cpu"))
    together = ensemble([0.5] * 5, [c.flat.detach() for c in alone]).critic_outputs(records)
    for j, one in enumerate(alone):
        assert torch.allclose(together[:, j], one["c"](records)[:, 0], atol=1e-5)


def test_memory_is_bounded_and_the_answer_is_the_same(monkeypatch):
    import core.models.steps.training.snapshot_ensemble as module

    records = HEADS.critic_view(CODES.to("cpu"))
    whole = ensemble([0.5, 0.5]).critic_outputs(records)
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 64)
    assert torch.allclose(ensemble([0.5, 0.5]).critic_outputs(records), whole, atol=1e-6)


class Honest:
    """Selections by the true means, without noise."""

    def __init__(self, critics, codes):
        self.means = critics.scores(codes.to("cpu")).double().mean(0).numpy()

    def select(self, offsets):
        return int((self.means + offsets).argmax())


def pool(places):
    """400 candidates of two generators, as critics see them."""
    both = ensemble(places)
    random = torch.Generator().manual_seed(1)
    drawn = [both.draw(j, 200, random) for j in range(len(both))]
    return HEADS.critic_input(torch.cat(drawn)), both


def played(places, rounds=200, queries=0):
    candidates, both = pool(places)
    critics = CalibratedCritics.calibrate(both, candidates, MarginalQueries(CODEC, queries))
    weights = MultiplicativeWeights(critics, critics(candidates), Honest(critics, CODES))
    for _ in range(rounds):
        weights.step()
    return critics, weights


def ages(boosted, rows=4000):
    one_hot = boosted.draw(rows, torch.Generator().manual_seed(2))
    random = torch.Generator().manual_seed(3)
    codes = HEADS.draw((one_hot - 1.0) * 1e4, generator=random)
    return HEADS.codec.decode_codes(codes)["age"]


def test_the_mixture_prefers_generators_like_the_table():
    real = HEADS.codec.decode_codes(CODES)["age"].mean()  # 47 of 99 years
    critics, weights = played([0.45, 0.95])
    flat = replace(weights.state, rate=0.0)
    before, after = (
        ages(BoostedMixture(critics, state, rejection=False)).mean()
        for state in (flat, weights.state)
    )
    assert abs(after - real) < 0.7 * abs(before - real)


def test_a_rate_of_nothing_leaves_the_candidates_as_they_are():
    critics, played_weights = played([0.3, 0.6], rounds=10)
    state = WeightsState(0.0, played_weights.state.chosen, [math.log(400)] * 10)
    boosted = BoostedMixture(critics, state, rejection=False)
    _, records = boosted.candidates(500, torch.Generator().manual_seed(5))
    weights = boosted.weights(records)
    assert torch.allclose(weights, weights[0].expand_as(weights))


def test_weights_are_the_average_of_the_plays_by_hand():
    critics, weights = played([0.3, 0.6], rounds=5)
    state, scores = weights.state, weights.scores.double()
    boosted = BoostedMixture(critics, state, rejection=False)
    total = torch.zeros(len(scores), dtype=torch.float64)
    log = torch.zeros(len(scores), dtype=torch.float64)
    for step, j in zip(rates(state.rate, 5).tolist(), state.chosen, strict=True):
        total += (log - torch.logsumexp(log, 0)).exp()
        log = log + step * scores[:, j]
    assert torch.allclose(boosted.weights(pool([0.3, 0.6])[0]), total, rtol=1e-4)


def test_every_option_has_its_opposite():
    critics, _ = played([0.3, 0.6], rounds=1, queries=30)
    scores = critics(HEADS.critic_view(CODES.to("cpu")))
    half = critics.options // 2
    assert scores.shape[1] == critics.options == 2 * (2 + 30)
    assert torch.allclose(scores[:, :half] + scores[:, half:], torch.ones(1))
    assert float(scores.min()) >= 0.0 and float(scores.max()) <= 1.0  # the selection's sensitivity
    assert [critics.snapshot(j) for j in (0, 1, 2, half, half + 1, half + 2)] == [
        0, 1, None, 0, 1, None,
    ]  # fmt: skip


def test_opposites_bring_back_weight_that_went_too_far():
    critics, weights = played([0.4, 0.6], rounds=1500)
    real = critics.scores(CODES.to("cpu")).double().mean(0)
    gap = (real - weights.weights @ weights.scores.double()).abs()
    assert float(gap.max()) < 0.02
    even = (real - weights.scores.double().mean(0)).abs()
    assert float(even.max()) > 0.08  # there was something to bring together


def test_queries_answer_as_by_hand():
    queries = MarginalQueries(CODEC, 400, seed=3)
    records = HEADS.binned_view(CODES.to("cpu"))
    answers = queries(records)
    assert answers.shape == (300, 400) and set(answers.unique().tolist()) == {0.0, 1.0}
    again = MarginalQueries(CODEC, 400, seed=3)(records)
    assert torch.equal(again, answers)  # public: the same seed gives the same
    always = len(queries._lows)
    left, right = queries._pairs
    assert 0.1 < float((right == always).float().mean()) < 0.4
    for j in range(0, 400, 37):
        want = torch.ones(300, dtype=torch.bool)
        for index in (int(left[j]), int(right[j])):
            if index == always:
                continue
            x = records[:, queries._columns[index]]
            want &= (x >= queries._lows[index]) & (x < queries._highs[index])
            if queries._guards[index] >= 0:
                want &= records[:, queries._guards[index]] == 1.0
        assert torch.equal(answers[:, j].bool(), want)


def test_no_queries_leave_the_learned_critics_alone():
    assert MarginalQueries(CODEC, 0)(HEADS.critic_view(CODES.to("cpu"))).shape == (300, 0)


def test_real_records_are_scored_on_the_generators_grid():
    codes = CODES.to("cpu")
    rounded = HEADS.binned_view(codes)
    bins = HEADS.view(codes)[:, HEADS.width :].long()
    one_hot = torch.zeros(300, HEADS.total).scatter_(1, bins, 1.0)
    assert torch.equal(rounded, HEADS.critic_input(one_hot))
    gap = (rounded - HEADS.critic_view(codes))[:, : HEADS.width].abs()
    assert float(gap.max()) <= 0.5 / 64 + 1e-6  # half a cell


def test_any_number_of_rows_without_copies_of_a_pool():
    critics, weights = played([0.3, 0.6], rounds=20)
    boosted = BoostedMixture(critics, weights.state, rejection=True)
    one_hot = boosted.draw(3000, torch.Generator().manual_seed(2))  # the pool holds 400
    assert len(one_hot) == 3000
    assert len(np.unique(one_hot.numpy(), axis=0)) > 1500


def test_base_and_selections_share_one_budget():
    plan = plan_fit(Pgb(), domain(), 2000, Budget(epsilon=1.0, delta=1e-5), {"rounds": 100})
    assert plan.phases[-1].name == BOOST
    assert plan.guarantee.epsilon <= 1.0
    assert plan.guarantee.epsilon > 0.98
    assert plan.phases[-1].share == pytest.approx(0.15)
    alone = epsilon(plan.phases[-1:], 1e-5)[0]
    assert 0.10 < alone <= 0.15 * (1 + 1e-6)
    auto = plan_fit(
        Pgb(),
        domain(),
        2000,
        Budget(epsilon=1.0, delta=1e-5),
        {"base": "dp_auto_gan", "rounds": 100, "count_share": 0.0},
    )
    assert [p.name for p in auto.phases] == ["autoencoder", "critic", BOOST]


def test_boosting_needs_snapshots():
    with pytest.raises(ValueError, match="snapshots"):
        plan_fit(Pgb(), domain(), 2000, Budget(epsilon=1.0, delta=1e-5), {"snapshots": 0})


def test_snapshots_are_kept_for_boosting_alone():
    budget = Budget(epsilon=1.0, delta=1e-5)
    for base in BASES.values():
        assert plan_fit(base, domain(), 2000, budget).settings["snapshots"] == 0
        plan = plan_fit(Pgb(), domain(), 2000, budget, {"base": base.card.id})
        assert plan.settings["snapshots"] == 32


TAGS = ({}, {"g": ("age",)}, {"g": ("age",), "h": ("ward", "ill")})
SMALL = {"steps": 8, "batch": 64, "fakes": 32, "hidden": 16, "latent": 4, "rounds": 10,
         "candidates": 16, "snapshots": 2, "count_share": 0.0}  # fmt: skip
OWN = {
    "dp_gan": {"critic_steps": 2, "critic_hidden": 16},
    "dp_auto_gan": {"critic_steps": 2, "critic_hidden": 16, "encoder_steps": 8, "noise": 4},
    "ppem": {"marginal_steps": 8, "energy_steps": 2, "energy_hidden": 16},
}


@pytest.mark.parametrize("base", sorted(BASES))
@pytest.mark.parametrize("tags", TAGS, ids=["none", "one group", "two groups"])
def test_any_adversarial_model_can_be_boosted(base, tags, tmp_path):
    where = domain().model_copy(update={"sensitive": tags})
    settings = {**SMALL, **OWN[base], "base": base}
    plan = plan_fit(Pgb(), where, 300, Budget(epsilon=1.0, delta=1e-5), settings)
    table = PrivateTable(CODES, where, plan)
    fitted = Pgb().fit(table, plan, FitContext(on_event=Watcher(), folder=tmp_path, seed=1))
    assert {phase.name: table.meter.runs(phase.name) for phase in plan.phases} == {
        phase.name: phase.count for phase in plan.phases
    }
    assert len(fitted.base.critics.ensemble) == 2
    fitted.save(tmp_path / "saved")
    again = Pgb().load(tmp_path / "saved").sample(50, seed=3)
    assert again.equals(fitted.sample(50, seed=3))


@pytest.mark.parametrize("tags", [*TAGS, {"g": ("age",), "h": tuple(
    column.name for column in domain().modelled if column.name != "age")}])  # fmt: skip
def test_energies_side_by_side_are_minus_their_sum(tags):
    codec = Codec(domain().model_copy(update={"sensitive": tags}))
    model = TaggedFirst(codec, PpemSettings(energy_hidden=8), seed=3)
    networks, energies, places = model.last_energies()
    flats = torch.stack([networks.flat, 1.5 * networks.flat]).detach()
    critics = as_critics(energies, flats, places)
    records = HEADS.critic_view(CODES.to("cpu"))
    groups = [group for group in (model.others, model.tagged) if group is not None]
    rows = torch.cat([group.view(CODES.to("cpu")) for group in groups], dim=1)
    outputs = SnapshotEnsemble(HEADS, flats, emit, critics).critic_outputs(records)
    for j, factor in enumerate((1.0, 1.5)):
        with torch.no_grad():
            networks.flat.mul_(factor)
        assert torch.allclose(outputs[:, j], -sum(e(rows) for e in energies)[:, 0], atol=1e-4)
