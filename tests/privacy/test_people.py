"""A person with all their rows is what every access is bounded for: whole people are left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.encoding.key_groups import bucket_count, positions_by_key
from core.encoding.person_rows import PersonRows
from core.models.pearl.characteristic_function import Embedding, Frequencies
from core.models.pearl.design import Design
from core.models.pearl.private_embedding import OCTAVES, unconditional_bins
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.step import FitContext
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.dpsgd.penalty import PenalisedGradient
from core.privacy.dpsgd.stream import Draws
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget, Guarantee
from core.privacy.summation import Records
from core.schema.person import Person
from tests.contract.fits import IDS, QUICK
from tests.models.tables import Watcher, coded
from tests.privacy import nets, toys
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import Caught, size
from tests.privacy.omission import check_omission, leaving_out

PEOPLE, MOST = 150, 3
FEW = {"steps": 10, "encoder_steps": 8, "marginal_steps": 8, "em_steps": 2, "rounds": 4}
MORE = {"pearl": {"distance_share": 0.1}, "p3gm": {"dimensions": 4}}


def people_of(n=PEOPLE, most=MOST):
    """n people with 1 … m rows, and keys."""
    counts = np.arange(n) % most + 1
    hashes = np.sort(np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64))
    return PersonRows(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), hashes)


def without(codes, people, present):
    """The rows of some people alone, and where theirs lie."""
    rows = np.concatenate([np.arange(*people.offsets[i : i + 2]) for i in present])
    offsets = np.concatenate([[0], np.cumsum(people.counts[present])])
    return codes.take(torch.from_numpy(rows)), PersonRows(offsets, people.hashes[present])


def plan_of(model, domain, patch):
    """The model's own accesses with noise of no account: what is looked at comes before it."""
    claim = Guarantee(epsilon=1.0, epsilon_replace=2.0, delta=1e-5)
    patch.setattr("core.privacy.planning.calibrate", lambda *_, **__: 1.0)
    patch.setattr("core.privacy.planning.guarantee", lambda *_, **__: claim)
    settings = {**QUICK[model], **MORE.get(model, {})}
    settings |= {name: value for name, value in FEW.items() if name in settings}
    return plan_fit(synthesizer(model), domain, PEOPLE, Budget(epsilon=1.0, delta=1e-5), settings)


class OmittingPeople(PrivateTable):
    """A table that leaves whole people out before each release; gradients see to themselves."""

    def checked(self, statistic, mechanism, group_size=1):
        people = self._PrivateTable__people
        codes = self._PrivateTable__codes.to("cpu")

        def total(present):
            here, rest = without(codes, people, np.array(present))
            if group_size > 1:
                buckets = bucket_count(people.n, group_size)  # n is public and stays
                members = positions_by_key(rest.hashes, group_size, buckets)
                placed = Records(here, rest.n, rest).at(members)
                return statistic(placed.codes, torch.from_numpy(placed.present).float())
            return statistic(here, torch.from_numpy(rest.weights))

        everybody = list(range(people.n))
        check_omission(total, everybody, mechanism, self.streams, 1e-6)

    def release(self, phase_name, mechanism, **named):
        self.checked(mechanism.statistic, mechanism, mechanism.group_size)
        self.phases.add(phase_name)
        return super().release(phase_name, mechanism, **named)

    def sampled(self, phase_name, **named):
        self.phases.add(phase_name)
        return super().sampled(phase_name, **named)

    def selection(self, phase_name, scores, **named):
        class Summed:
            noise, sensitivity = "gaussian", math.sqrt(scores.options)

        self.checked(lambda rows, mask: mask.double() @ scores.scores(rows).double(), Summed)
        self.phases.add(phase_name)
        return super().selection(phase_name, scores, **named)


def fit(model, folder, patch):
    people = people_of()
    codec, codes = coded(len(people.weights))
    person = Person(columns=("key",), rows=MOST)
    plan = plan_of(model, codec.domain.model_copy(update={"person": person}), patch)
    with leaving_out(patch) as (streams, kind):
        source = DeterministicNoise(3)
        table = OmittingPeople(codes, codec.domain, plan, people=people, noise_source=source)
        table.streams, table.phases = streams, set()
        synthesizer(model).fit(table, plan, FitContext(on_event=Watcher(), folder=folder, seed=7))
    return plan, table.phases, kind


@pytest.mark.parametrize("model", IDS)
def test_person_left_out_moves_no_access_beyond_sensitivity(model, tmp_path, monkeypatch):
    plan, phases, kind = fit(model, tmp_path, monkeypatch)
    print(f"{model}: {kind.checks} batches, a person moves a sum by at most {kind.worst:.4f} Δ")
    assert phases == {phase.name for phase in plan.phases}
    batches = [phase for phase in plan.phases if phase.sampling_rate is not None]
    assert kind.checks >= len(batches)


@pytest.mark.parametrize("model", ["pearl", "p3gm"])
def test_rows_that_count_one_each_are_caught(model, tmp_path, monkeypatch):
    monkeypatch.setattr(PersonRows, "weights", property(lambda p: np.ones(p.offsets[-1], "f4")))
    with pytest.raises(Caught, match="moves the statistic by"):
        fit(model, tmp_path, monkeypatch)


# -- extremal people -------------------------------------------------------------------------------


def embedding():
    codec, codes = coded(1)
    bins, design = unconditional_bins(codec), Design.of(codec, 100)
    drawn = Frequencies.draw(
        bins, design.groups, distances=(0.15,) * len(bins), octaves=OCTAVES,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    return Embedding(drawn, design), codes


def test_a_person_of_equal_rows_reaches_the_sensitivity_of_one():
    mechanism, codes = embedding()
    equal = codes.take(np.zeros(MOST, dtype=np.int64)).to("cpu")
    weights = torch.from_numpy(PersonRows(np.array([0, MOST])).weights)
    reached = size(mechanism.statistic(equal, weights), "gaussian") / mechanism.sensitivity
    assert 0.95 < reached <= 1.0


def gradient(clip_norm=0.01, kind=ClippedGradient, **more):
    networks = nets.dense(nets.SHAPES["deep"])
    return kind(
        networks=networks, grad_factors=nets.grad_factors(networks), clip_norm=clip_norm, **more
    )


class RowByRow(ClippedGradient):
    """Broken: each row is clipped for itself and they are added."""

    def statistic(self, rows, mask, *, out=None):
        flat, each = rows.flatten(0, 1), (mask > 0).flatten().float()
        return super().statistic(flat, each, out=out)


def release_of(x, people, most=MOST):
    return SampledRelease(
        n=len(x) if people is None else people.n, rate=1.0, noise_multiplier=0.0,
        read_rows=lambda index: x[torch.from_numpy(index)], charge=lambda: None,
        source=DeterministicNoise(1), device="cpu", people=people, most_rows=most,
    )  # fmt: skip


def moved(mechanism, x, people, gone=0):
    """By how many Δ the sum of a batch of everybody moves when one person is left out."""
    release, everybody = release_of(x, people), np.arange(people.n)
    full = release._sum(mechanism, everybody).clone()
    return float((full - release._sum(mechanism, np.delete(everybody, gone))).norm()) / (
        mechanism.sensitivity
    )


def equal_rows(n=5, most=MOST):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(0)) * 3.0
    return x.repeat_interleave(most, 0), PersonRows(np.arange(n + 1) * most)


def test_a_gradient_of_equal_rows_reaches_the_clip_norm_once():
    x, people = equal_rows()
    assert 0.95 < moved(gradient(), x, people) <= 1.0 + 1e-4


def test_clipping_each_row_is_caught():
    x, people = equal_rows()
    assert moved(gradient(kind=RowByRow), x, people) > 0.95 * MOST


def test_batches_of_rows_instead_of_people_are_caught():
    x, people = equal_rows()
    release, mechanism = release_of(x, None, 1), gradient()
    full = release._sum(mechanism, np.arange(len(x))).clone()
    less = release._sum(mechanism, np.arange(MOST, len(x)))  # the person's rows
    assert float((full - less).norm()) > 0.95 * MOST * mechanism.sensitivity
    drawn = SampledRelease(
        n=people.n, rate=0.5, noise_multiplier=0.0, read_rows=lambda index: x[index],
        charge=lambda: None, source=DeterministicNoise(1), device="cpu", people=people,
        most_rows=MOST,
    )  # fmt: skip
    rows, mask = drawn._batch(mechanism, np.array([1, 3]))
    assert rows.shape == (2, MOST, 3) and mask.sum(dim=1).tolist() == pytest.approx([1.0, 1.0])


# -- the sum itself --------------------------------------------------------------------------------


@pytest.mark.parametrize("clip_norm", [0.05, math.inf])
def test_a_persons_gradient_is_the_clipped_mean_over_their_rows(clip_norm):
    people = people_of(7)
    x = torch.randn(len(people.weights), 3, generator=torch.Generator().manual_seed(2))
    mechanism = gradient(clip_norm)
    found = release_of(x, people)._sum(mechanism, np.arange(7))[:-1]
    each = nets.per_record(mechanism.networks, x) * torch.from_numpy(people.weights)[:, None]
    means = torch.stack([part.sum(0) for part in each.split(people.counts.tolist())])
    due = means.sum(0) if math.isinf(clip_norm) else nets.clipped(means, clip_norm)
    assert nets.relative(found, due) < 1e-3  # rows that pull apart are clipped a little more


def test_cancelling_rows_are_clipped_as_float32_can_see():
    """Two rows of opposite and huge gradients: the norm of their mean is below rounding."""
    networks = nets.dense((3, 1))
    signs = torch.tensor([1.0, -1.0])

    def grad_factors(rows):
        tape = networks["net"].forward(rows[:, :3])
        return networks["net"].backward(tape, 1e6 * rows[:, 3:])[0]

    mechanism = ClippedGradient(networks=networks, grad_factors=grad_factors, clip_norm=1.0)
    x = torch.cat([torch.full((2, 3), 0.1), signs[:, None]], dim=1)
    x[1, :3] += 1e-6
    assert moved(mechanism, x, PersonRows(np.array([0, 2]))) <= 1.0


def test_padding_adds_nothing_even_where_it_is_not_finite():
    mechanism, x = gradient(), torch.randn(2, 3, 3)
    mask = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    full = mechanism.statistic(x, mask)
    x[:, 2] = math.nan
    x[1, 1] = math.inf
    assert torch.equal(full, mechanism.statistic(x, mask))
    x[1, 0] = math.nan  # a row that counts: its person contributes nothing
    alone = mechanism.statistic(x[:1], mask[:1])
    torch.testing.assert_close(mechanism.statistic(x, mask)[:-1], alone[:-1])


def test_other_peoples_rows_and_draws_stay_when_one_goes():
    people = people_of(9)
    x = torch.arange(3.0 * len(people.weights)).view(-1, 3)
    mechanism = gradient(draws=Draws(2, 1))
    release = release_of(x, people)
    rows, mask = release._batch(mechanism, np.arange(9))
    for gone in (0, 2, 8):
        rest = np.delete(np.arange(9), gone)
        less, weights = release._batch(mechanism, rest)
        assert torch.equal(mask[rest], weights)
        assert torch.equal(rows[rest], less)
    assert len(rows[mask > 0][:, 3:].unique()) == 3 * len(x)


def test_a_batch_term_sees_rows_and_no_padding():
    seen = []
    mechanism = gradient(
        kind=PenalisedGradient, penalty_clip=1.0, penalty=lambda rows: seen.append(rows) or []
    )
    people = people_of(4)
    x = torch.randn(len(people.weights), 3)
    release_of(x, people)._sum(mechanism, np.arange(4))
    assert torch.equal(seen[0], x)


def test_a_large_batch_is_summed_in_parts_of_whole_people(monkeypatch):
    x, people = equal_rows(11)
    mechanism, everybody = gradient(), np.arange(11)
    whole = release_of(x, people)._sum(mechanism, everybody).clone()
    monkeypatch.setattr("core.privacy.dpsgd.gradient.ROWS_AT_ONCE", 2 * MOST)
    parts = release_of(x, people)._sum(mechanism, everybody)
    torch.testing.assert_close(whole, parts, atol=1e-6, rtol=1e-5)


def private(codes, people, n, rows=MOST, **more):
    plan = toys.plan(n, [toys.phase()]).model_copy(
        update={"unit": Person(columns=("who",), rows=rows)}
    )
    return PrivateTable(codes, toys.domain(), plan, people=people, **more)


def test_release_is_the_sum_of_means_of_people():
    people = people_of(20)
    codes = toys.random_table(len(people.weights), 1)
    clipped = toys.ClippedSum()
    due = clipped.statistic(codes, torch.from_numpy(people.weights))
    for chunk in (2, 8, 8192):
        table = private(codes, people, 20, chunk_rows=chunk)
        found = table._sum(clipped, device="cpu", tick=None)
        torch.testing.assert_close(found, due)
    absent = np.arange(20) != 3
    table = private(codes, people, 20, present=absent)
    less = table._sum(clipped, device="cpu", tick=None)
    assert 0.0 < float((due - less).norm()) <= 1.0 + 1e-6


@pytest.mark.parametrize(("n", "rows", "people"), [(20, 3, None), (20, 2, 3), (19, 3, 3)])
def test_rows_that_are_not_what_the_plan_is_for_are_refused(n, rows, people):
    made = people_of(20, 3)
    codes = toys.random_table(len(made.weights), 1)
    with pytest.raises(ValueError, match=r"Nothing was\s*released"):
        private(codes, made if people else None, n, rows)
