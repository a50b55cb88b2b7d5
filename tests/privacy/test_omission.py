"""Every private access of every model, with records really left out."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch

from core.models.p3gm.decoder import ElboGradient
from core.models.planning import plan_fit
from core.models.ppem.energy_gan_trainer import EnergyGanTrainer
from core.models.registry import cards, synthesizer
from core.models.step import FitContext
from core.models.steps.counting import pair_queries, releases, scales, scan
from core.models.steps.counting.counts import SetCounts
from core.models.steps.counting.pair_queries import PairQueries, select_pairs
from core.models.steps.training import training_loop
from core.privacy.dpsgd.stream import Draws, SecretStream
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import NotAdditiveError
from core.privacy.mechanisms.noise import SecureNoise
from core.privacy.plan import Budget
from tests.contract.fits import IDS, QUICK
from tests.models.tables import Watcher, coded, domain
from tests.mutants.broken_draws import by_place_p3gm, by_place_ppem
from tests.mutants.broken_scan_focus import ForgetsColumnsByClass, ForgetsPairsOfAllClasses
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import Caught
from tests.privacy.omission import OmittingTable, Streams, leaving_out, same

pytestmark = pytest.mark.slow

N = 300
SEED = 7  # the user's, which an attacker may know
WITH_ALL_PHASES = {"pearl": {"distance_share": 0.1}, "p3gm": {"dimensions": 4}}


def plan_of(model, **more):
    settings = {**QUICK[model], **WITH_ALL_PHASES.get(model, {}), **more}
    return plan_fit(synthesizer(model), domain(), N, Budget(epsilon=1.0, delta=1e-5), settings)


def fit(model, plan, folder, patch, *, skip_parts=False):
    """A whole fit in which records are left out of every access; returns what was checked."""
    codec, codes = coded(N)
    with leaving_out(patch, skip_parts=skip_parts) as (streams, kind):
        table = OmittingTable(codes, codec.domain, plan, noise_source=DeterministicNoise(3))
        table.streams, table.checked = streams, set()
        synthesizer(model).fit(
            table, plan, FitContext(on_event=Watcher(), folder=folder, seed=SEED)
        )
        return table.checked, kind.checks, kind.worst


@pytest.mark.parametrize("model", IDS)
def test_record_left_out_moves_no_access_beyond_sensitivity(model, tmp_path, monkeypatch):
    plan = plan_of(model)
    checked, steps, worst = fit(model, plan, tmp_path, monkeypatch)
    print(f"{model}: {steps} batches, leaving one record out moves a sum by at most {worst:.4f} Δ")
    assert checked == {phase.name for phase in plan.phases}
    batches = [phase for phase in plan.phases if phase.sampling_rate is not None]
    assert steps >= 2 * len(batches)


@pytest.mark.parametrize("rare", [False, True], ids=["alike", "rare labels"])
@pytest.mark.parametrize("counts", [SetCounts, ForgetsColumnsByClass, ForgetsPairsOfAllClasses])
def test_classes_counted_together_move_no_further(counts, rare, tmp_path, monkeypatch):
    """As in larger tables: pairs of all classes at once, and beside them columns in each."""
    asked = []
    monkeypatch.setattr(scan, "MOST_SCAN_NOISE_SHARE", math.inf)
    alike = np.zeros if rare else np.ones
    monkeypatch.setattr(pair_queries, "_alike", lambda differs: alike(len(differs), dtype=bool))
    monkeypatch.setattr(releases.Releases, "_noise_dominated", lambda known, pair, weight: rare)
    monkeypatch.setattr(pair_queries, "MAX_NOISE_DOMINATED_SHARE", 1.0)
    monkeypatch.setattr(
        pair_queries, "COLUMN_WEIGHT_POWER", 0
    )  # columns are counted again whatever pairs show
    monkeypatch.setattr(pair_queries, "PAIR_SNR_THRESHOLD", math.inf)
    monkeypatch.setattr(releases, "SetCounts", counts)

    def noted(*facts: object, **noise: object) -> PairQueries:
        asked.append(select_pairs(*facts, **noise))
        return asked[-1]

    monkeypatch.setattr(pair_queries, "select_pairs", noted)
    plan = plan_of("scan_focus", most_together=2)  # so that pairs are counted twice
    if counts is SetCounts:
        checked = fit("scan_focus", plan, tmp_path, monkeypatch)[0]
        assert checked == {phase.name for phase in plan.phases}
        assert len(asked) == 1 and not asked[0].by_class.any()  # of both times
        assert asked[0].columns > 0.0 and asked[0].alike.all() != rare
        return
    with pytest.raises(Caught, match="moves the statistic"):
        fit("scan_focus", plan, tmp_path, monkeypatch)


def states_after(model, plan, folder, patch, present):
    """Every stream's state after a whole fit, with a clock that stands still."""
    codec, codes = coded(N)
    now = time.monotonic()
    with Streams.watched(patch) as streams, patch.context() as inside:
        inside.setattr(training_loop.time, "monotonic", lambda: now)  # no event depends on speed
        # as many cells whatever was released, or the next release would draw more or less noise
        inside.setattr(scales, "seen", lambda counts, *_: (0, len(counts)))
        inside.setattr(releases, "most_cells", lambda *_: scales.CELLS)
        inside.setattr(scales, "merged", lambda counts, *_, **__: np.arange(len(counts)) // 4)
        source = DeterministicNoise(3)
        table = PrivateTable(codes, codec.domain, plan, noise_source=source, present=present)
        torch.manual_seed(0)
        synthesizer(model).fit(
            table, plan, FitContext(on_event=Watcher(), folder=folder, seed=SEED)
        )
        return [*streams.states(), source.generator().bit_generator.state]


def streams_that_know(model, folder, patch):
    """How many streams that a seed fixes end otherwise when records are ⊥, of how many."""
    plan, fewer = plan_of(model), np.arange(N) >= 40  # forty, so that batches surely differ
    states = [
        states_after(model, plan, folder / str(i), patch, present)
        for i, present in enumerate((None, None, fewer))
    ]
    assert len({len(s) for s in states}) == 1
    fixed = [same(a, b) for a, b in zip(*states[:2], strict=True)]  # the others are keyed afresh
    moved = [not same(a, b) for a, b in zip(states[0], states[2], strict=True)]
    return sum(f and m for f, m in zip(fixed, moved, strict=True)), sum(fixed)


@pytest.mark.parametrize("model", IDS)
def test_no_random_stream_knows_who_was_in_the_batches(model, tmp_path, monkeypatch):
    moved, fixed = streams_that_know(model, tmp_path, monkeypatch)
    assert fixed > 4  # the global ones, the noise, the generator's own, a secret one or two
    assert moved == 0


MUTANTS = [
    ("p3gm", ElboGradient, "grad_factors", by_place_p3gm),
    ("ppem", EnergyGanTrainer, "_record_grad_factors", by_place_ppem),
]


@pytest.mark.parametrize(("model", "owner", "name", "mutant"), MUTANTS)
def test_draws_by_place_in_a_batch_are_caught(model, owner, name, mutant, tmp_path, monkeypatch):
    """The seed's stream, shared by the records of a batch: one more moves all that follow."""
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name), SEED))
    with pytest.raises(Caught, match="leaving record"):
        fit(model, plan_of(model), tmp_path, monkeypatch, skip_parts=True)


@pytest.mark.parametrize(("model", "owner", "name", "mutant"), MUTANTS)
def test_draws_by_place_move_the_sum_itself(model, owner, name, mutant, tmp_path, monkeypatch):
    """Also where the stream is put back after each batch, so that its state tells nothing."""
    kind = mutant(getattr(owner, name), SEED, rewind=True)
    monkeypatch.setattr(owner, name, kind)
    with pytest.raises(Caught, match="moves the statistic by") as caught:
        fit(model, plan_of(model), tmp_path, monkeypatch, skip_parts=True)
    print(f"{model}, draws by place: {caught.value}")


@pytest.mark.parametrize(("model", "owner", "name", "mutant"), MUTANTS)
def test_the_table_itself_refuses_draws_by_place(model, owner, name, mutant, tmp_path, monkeypatch):
    monkeypatch.setattr(owner, name, mutant(getattr(owner, name), SEED))
    codec, codes = coded(N)
    plan = plan_of(model)
    table = PrivateTable(codes, codec.domain, plan)
    with pytest.raises(NotAdditiveError, match="not the sum of its parts"):
        synthesizer(model).fit(
            table, plan, FitContext(on_event=Watcher(), folder=tmp_path, seed=SEED)
        )


def test_stream_shared_with_generator_shows_in_trajectory(tmp_path, monkeypatch):
    mutant = by_place_ppem(EnergyGanTrainer._record_grad_factors, SEED)
    monkeypatch.setattr(EnergyGanTrainer, "_record_grad_factors", mutant)
    monkeypatch.setattr("core.privacy.dpsgd.gradient.check_parts", lambda *_: True)
    assert streams_that_know("ppem", tmp_path, monkeypatch)[0] > 0


# -- where records' draws come from ----------------------------------------------------------------

CHOSEN = np.array([3, 5, 8, 13, 21])


def test_draws_are_fresh_for_every_batch_and_every_fit():
    stream, wanted = SecretStream(SecureNoise()), Draws(normals=4, uniforms=2)
    drawn = [stream.draws(CHOSEN, 50, wanted) for _ in range(3)]
    drawn.append(SecretStream(SecureNoise()).draws(CHOSEN, 50, wanted))
    assert all(d.shape == (5, 6) and d.dtype == torch.float32 for d in drawn)
    everything = torch.cat(drawn).flatten()
    assert len(everything.unique()) == len(everything)


def test_draws_move_no_other_stream():
    streams = [SecretStream(DeterministicNoise(1)), SecretStream(DeterministicNoise(1))]
    streams[0].draws(CHOSEN, 50, Draws(8, 8))
    batches = [stream.batch(1000, 0.1) for stream in streams]
    assert np.array_equal(*batches)
    secret = SecretStream(SecureNoise())
    before = secret._bits.state
    secret.draws(CHOSEN, 50, Draws(8, 8))
    assert same(before, secret._bits.state)


def test_repeatable_draws_belong_to_the_record():
    stream, wanted = SecretStream(DeterministicNoise(1)), Draws(normals=3, uniforms=2)
    full = stream.draws(CHOSEN, 50, wanted)
    less = stream.draws(CHOSEN[1:], 50, wanted)
    assert torch.equal(full[1:], less)
    stream.batch(50, 0.5)
    assert not torch.equal(full, stream.draws(CHOSEN, 50, wanted))  # the next batch draws anew


@pytest.mark.parametrize("source", [SecureNoise(), DeterministicNoise(5)])
def test_draws_follow_their_laws(source):
    from scipy import stats

    drawn = SecretStream(source).draws(np.arange(20_000), 20_000, Draws(2, 2)).double().numpy()
    for column in drawn[:, :2].T:
        assert stats.kstest(column, "norm").pvalue > 1e-7
    for column in drawn[:, 2:].T:
        assert column.min() >= 0.0 and column.max() < 1.0
        assert stats.kstest(column, "uniform").pvalue > 1e-7
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.05


def test_two_fits_of_one_seed_draw_differently_for_their_records(tmp_path, monkeypatch):
    """What a seed fixes is data-free: no draw of a record comes back, in a resumed fit either."""
    logged: list[torch.Tensor] = []
    honest = SecretStream.draws

    def logging(self, chosen, n, wanted):
        drawn = honest(self, chosen, n, wanted)
        logged.append(drawn.flatten()[:50].clone())
        return drawn

    monkeypatch.setattr(SecretStream, "draws", logging)
    codec, codes = coded(N)
    plan = plan_of("p3gm")
    for name in "ab":
        table = PrivateTable(codes, codec.domain, plan)
        synthesizer("p3gm").fit(
            table, plan, FitContext(on_event=Watcher(), folder=tmp_path / name, seed=SEED)
        )
    everything = torch.cat([drawn for drawn in logged if len(drawn)])
    assert len(logged) == 2 * plan.phase("decoder").count
    assert len(everything.unique()) > 0.999 * len(everything)


def test_every_model_was_looked_at():
    assert sorted(IDS) == sorted(card.id for card in cards())
