"""Boosting: critics in one pass, weights by hand, and a mixture that leaves bad generators out."""

import math

import numpy as np
import pytest
import torch

from core.models.pgb.marginal_queries import Questions
from core.models.pgb.multiplicative_weights import Boosted, Judge, Rounds, rates
from core.models.pgb.plan import BASES, BOOST, Pgb
from core.models.planning import plan_fit
from core.models.ppem.energy import as_critics
from core.models.ppem.plan import PpemSettings
from core.models.ppem.trainer import Chain
from core.models.shared.heads import Heads
from core.models.shared.snapshot_ensemble import Players, unpacked
from core.models.synthesizer import FitContext
from core.privacy.accounting.accountant import epsilon
from core.privacy.dpsgd.dense import Dense
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from core.table.codec import Codec
from tests.models.tables import Watcher, coded, domain

CODEC, CODES = coded(300)
HEADS = Heads(CODEC)
WIDTHS = (HEADS.critic_width, 8, 4, 1)
AGE = CODEC.block("age")


def critic(seed):
    return Dense({"c": WIDTHS}, generator=torch.Generator().manual_seed(seed))


def old_age(sign):
    """A critic whose word is the age's position, or its opposite."""
    made = critic(0)
    with torch.no_grad():
        made.flat.zero_()
        for layer, (out, into) in zip(made.layers, ((0, AGE.start), (0, 0), (0, 0)), strict=True):
            layer.views(made.flat)[0][out, into] = 1.0
        made.layers[-1].views(made.flat)[0][0, 0] = sign
    return made.flat.detach().clone()


def emit(flat, rows, random):
    """A generator with one parameter: how old its records are."""
    slots = HEADS.slots[AGE.index]
    logits = torch.zeros(rows, HEADS.total)
    start = sum(s.count for s in HEADS.slots[: AGE.index])
    places = torch.as_tensor(slots.centres, dtype=torch.float32)
    logits[:, start : start + slots.cells] = -200.0 * (places - flat[0]) ** 2
    return logits


def players(places, critics=None):
    critics = [old_age(1.0), old_age(-1.0)] if critics is None else critics
    layers = unpacked(torch.stack(critics), WIDTHS)
    return Players(HEADS, torch.tensor(places).unsqueeze(1), emit, layers)


def test_all_critics_at_once_say_what_each_says_alone():
    made = [critic(seed) for seed in range(5)]
    seen = HEADS.critic_view(CODES.to("cpu"))
    together = players([0.5] * 5, [m.flat.detach() for m in made]).judge(seen)
    for j, one in enumerate(made):
        assert torch.allclose(together[:, j], one["c"](seen)[:, 0], atol=1e-5)


def test_memory_is_bounded_and_the_answer_is_the_same(monkeypatch):
    import core.models.shared.snapshot_ensemble as module

    seen = HEADS.critic_view(CODES.to("cpu"))
    whole = players([0.5, 0.5]).judge(seen)
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 64)
    assert torch.allclose(players([0.5, 0.5]).judge(seen), whole, atol=1e-6)


class Honest:
    """Selections by the true means, without noise."""

    def __init__(self, judge, codes):
        self.means = judge.scores(codes.to("cpu")).double().mean(0).numpy()

    def select(self, offsets):
        return int((self.means + offsets).argmax())


def played(places, rounds=200, questions=0):
    both = players(places)
    random = torch.Generator().manual_seed(1)
    pool = torch.cat([both.draw(j, 200, random) for j in range(len(both))])
    judge = Judge.calibrate(both, HEADS.seen(pool), Questions(CODEC, questions))
    game = Rounds.fresh(judge, HEADS.seen(pool))
    selection = Honest(judge, CODES)
    for _ in range(rounds):
        game.play(selection)
    return judge, game


def ages(boosted, rows=4000):
    slots = boosted.draw(rows, torch.Generator().manual_seed(2))
    random = torch.Generator().manual_seed(3)
    codes = HEADS.draw((slots - 1.0) * 1e4, generator=random)
    return HEADS.codec.decode_codes(codes)["age"]


def test_the_mixture_leans_to_generators_that_look_like_the_table():
    real = HEADS.codec.decode_codes(CODES)["age"].mean()  # 47 of 99 years
    judge, game = played([0.45, 0.95])
    even = Boosted(judge, rate=0.0, chosen=game.chosen, normalisers=game.normalisers,
                   rejection=False)  # fmt: skip
    before, after = ages(even).mean(), ages(Boosted(judge, **game.state(), rejection=False)).mean()
    assert abs(after - real) < 0.7 * abs(before - real)


def test_a_rate_of_nothing_leaves_the_candidates_as_they_are():
    judge, game = played([0.3, 0.6], rounds=10)
    size = [math.log(400)] * 10
    boosted = Boosted(judge, rate=0.0, chosen=game.chosen, normalisers=size, rejection=False)
    _, seen = boosted.candidates(500, torch.Generator().manual_seed(5))
    weights = boosted.weights(seen)
    assert torch.allclose(weights, weights[0].expand_as(weights))


def test_weights_are_the_average_of_the_plays_by_hand():
    judge, game = played([0.3, 0.6], rounds=5)
    boosted = Boosted(judge, **game.state(), rejection=False)
    likes, total = game.likes.double(), torch.zeros(len(game.likes), dtype=torch.float64)
    log = torch.zeros(len(likes), dtype=torch.float64)
    for step, j in zip(rates(game.rate, 5).tolist(), game.chosen, strict=True):
        total += (log - torch.logsumexp(log, 0)).exp()
        log = log + step * likes[:, j]
    random = torch.Generator().manual_seed(1)
    both = judge.players
    pool = torch.cat([both.draw(j, 200, random) for j in range(2)])
    assert torch.allclose(boosted.weights(HEADS.seen(pool)), total, rtol=1e-4)


def test_every_option_has_its_opposite():
    judge, _ = played([0.3, 0.6], rounds=1, questions=30)
    likes = judge(HEADS.critic_view(CODES.to("cpu")))
    half = judge.options // 2
    assert likes.shape[1] == judge.options == 2 * (2 + 30)
    assert torch.allclose(likes[:, :half] + likes[:, half:], torch.ones(1))
    assert float(likes.min()) >= 0.0 and float(likes.max()) <= 1.0  # the selection's sensitivity
    assert [judge.snapshot(j) for j in (0, 1, 2, half, half + 1, half + 2)] == [
        0, 1, None, 0, 1, None,
    ]  # fmt: skip


def test_opposites_bring_back_weight_that_went_too_far():
    judge, game = played([0.4, 0.6], rounds=1500)
    real = judge.scores(CODES.to("cpu")).double().mean(0)
    weights = (game._log - torch.logsumexp(game._log, 0)).exp()
    gap = (real - weights @ game.likes.double()).abs()
    assert float(gap.max()) < 0.02
    even = (real - game.likes.double().mean(0)).abs()
    assert float(even.max()) > 0.08  # there was something to bring together


def test_questions_answer_as_by_hand():
    questions = Questions(CODEC, 400, seed=3)
    seen = HEADS.rounded(CODES.to("cpu"))
    answers = questions(seen)
    assert answers.shape == (300, 400) and set(answers.unique().tolist()) == {0.0, 1.0}
    single = Questions(CODEC, 400, seed=3)(seen)
    assert torch.equal(single, answers)  # public: the same seed asks the same
    always = len(questions._lows)
    left, right = questions._pairs
    assert 0.1 < float((right == always).float().mean()) < 0.4
    for j in range(0, 400, 37):
        want = torch.ones(300, dtype=torch.bool)
        for index in (int(left[j]), int(right[j])):
            if index == always:
                continue
            x = seen[:, questions._places[index]]
            want &= (x >= questions._lows[index]) & (x < questions._highs[index])
            if questions._guards[index] >= 0:
                want &= seen[:, questions._guards[index]] == 1.0
        assert torch.equal(answers[:, j].bool(), want)


def test_no_questions_is_the_game_of_learned_critics():
    assert Questions(CODEC, 0)(HEADS.critic_view(CODES.to("cpu"))).shape == (300, 0)


def test_real_records_are_judged_as_a_generator_could_have_written_them():
    codes = CODES.to("cpu")
    rounded = HEADS.rounded(codes)
    slots = HEADS.view(codes)[:, HEADS.width :].long()
    hot = torch.zeros(300, HEADS.total).scatter_(1, slots, 1.0)
    assert torch.equal(rounded, HEADS.seen(hot))
    gap = (rounded - HEADS.critic_view(codes))[:, : HEADS.width].abs()
    assert float(gap.max()) <= 0.5 / 64 + 1e-6  # half a cell


def test_any_number_of_rows_without_copies_of_a_pool():
    judge, game = played([0.3, 0.6], rounds=20)
    boosted = Boosted(judge, **game.state(), rejection=True)
    slots = boosted.draw(3000, torch.Generator().manual_seed(2))  # the pool holds 400
    assert len(slots) == 3000
    assert len(np.unique(slots.numpy(), axis=0)) > 1500


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
        {"base": "dp_auto_gan", "rounds": 100},
    )
    assert [p.name for p in auto.phases] == ["autoencoder", "critic", BOOST]


def test_boosting_needs_snapshots():
    with pytest.raises(ValueError, match="snapshots"):
        plan_fit(Pgb(), domain(), 2000, Budget(epsilon=1.0, delta=1e-5), {"snapshots": 0})


def test_snapshots_are_kept_for_boosting_alone():
    budget = Budget(epsilon=1.0, delta=1e-5)
    for base in BASES.values():
        assert plan_fit(base(), domain(), 2000, budget).settings["snapshots"] == 0
        plan = plan_fit(Pgb(), domain(), 2000, budget, {"base": base.card.id})
        assert plan.settings["snapshots"] == 32


TAGS = ({}, {"g": ("age",)}, {"g": ("age",), "h": ("ward", "ill")})
SMALL = {"steps": 8, "batch": 64, "fakes": 32, "hidden": 16, "latent": 4, "rounds": 10,
         "candidates": 16, "snapshots": 2}  # fmt: skip
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
    fitted = Pgb().fit(table, plan, FitContext(observe=Watcher(), folder=tmp_path, seed=1))
    assert {phase.name: table.meter.runs(phase.name) for phase in plan.phases} == {
        phase.name: phase.count for phase in plan.phases
    }
    assert len(fitted.judge.players) == 2
    fitted.save(tmp_path / "saved")
    again = Pgb().load(tmp_path / "saved").sample(50, seed=3)
    assert again.equals(fitted.sample(50, seed=3))


@pytest.mark.parametrize("tags", [*TAGS, {"g": ("age",), "h": tuple(
    column.name for column in domain().modelled if column.name != "age")}])  # fmt: skip
def test_energies_side_by_side_are_minus_their_sum(tags):
    codec = Codec(domain().model_copy(update={"sensitive": tags}))
    made = Chain(codec, PpemSettings(energy_hidden=8), private=True, seed=3)
    if made.others is None:
        networks, energies = made._marginal_energies()
        places = made.tagged.seen_at
    else:
        networks, energies = made._conditional_energies(made.others.width)
        places = torch.cat([made.others.seen_at, made.tagged.seen_at])
    flats = torch.stack([networks.flat, 1.5 * networks.flat]).detach()
    critics = as_critics(energies, flats, places)
    seen = HEADS.critic_view(CODES.to("cpu"))
    parts = [part for part in (made.others, made.tagged) if part is not None]
    rows = torch.cat([part.view(CODES.to("cpu")) for part in parts], dim=1)
    words = Players(HEADS, flats, emit, critics).judge(seen)
    for j, factor in enumerate((1.0, 1.5)):
        with torch.no_grad():
            networks.flat.mul_(factor)
        assert torch.allclose(words[:, j], -sum(e(rows) for e in energies)[:, 0], atol=1e-4)
