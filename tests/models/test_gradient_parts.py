"""Pieces of the gradient-trained models: heads, centring, losses by hand, adversarial training."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional

from core.models.dp_auto_gan.plan import DpAutoGanSettings
from core.models.dp_auto_gan.trainer import AutoEncoder
from core.models.p3gm.decoder import DECODER, SPREAD, CentredRecords, ElboGradient, Projection
from core.models.steps.training.adversarial import AdversarialConfig
from core.models.steps.training.dp_optimizer import CLIPPED, SIGNAL, DPAdam
from core.models.steps.training.gan_trainer import GanTrainer, Generator, new_critic
from core.models.steps.training.heads import Heads
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.dpsgd.clipping import clipped_sum
from core.privacy.dpsgd.dense import SLOPE, Dense
from core.privacy.dpsgd.gradient import ClippedGradient, SampledRelease
from core.privacy.mechanisms.mixture import Mixture
from core.privacy.mechanisms.moments import Principal
from core.privacy.mechanisms.noise import SecureNoise
from tests.models.tables import coded

pytestmark = pytest.mark.slow

N = 40
CODEC, CODES = coded(N)
HEADS = Heads(CODEC)
ROWS = CODES.to("cpu")


def random(seed=0):
    return torch.Generator().manual_seed(seed)


def logits(b=N, seed=1):
    return 3 * torch.randn((b, HEADS.total), generator=random(seed))


def cross_entropy(x, bins):
    """Σ_columns -log p(bin), per record, nats."""
    starts = np.cumsum([0, *HEADS.counts])
    return sum(
        functional.cross_entropy(part, bins[:, i] - start, reduction="none")
        for i, (part, start) in enumerate(
            zip(torch.split(x, HEADS.counts, dim=1), starts, strict=False)
        )
    )


# -- heads ----------------------------------------------------------------------------------------


def test_a_drawn_bin_is_the_bin_that_was_written():
    """Logits that are certain of a record's bins draw the record again, to the width of a cell."""
    _, bins = HEADS.split(HEADS.view(ROWS))
    certain = torch.full((N, HEADS.total), -40.0).scatter_(1, bins, 40.0)
    drawn = HEADS.draw(certain, generator=random())
    np.testing.assert_array_equal(drawn.states, CODES.states)
    assert np.abs(drawn.values - CODES.values).max() <= 1 / 64  # of one cell


def test_probabilities_are_softmax_column_by_column():
    x = logits()
    parts = [functional.softmax(part, dim=1) for part in torch.split(x, HEADS.counts, dim=1)]
    torch.testing.assert_close(HEADS.probabilities(x), torch.cat(parts, dim=1))


def test_the_gradient_is_that_of_the_cross_entropy():
    _, bins = HEADS.split(HEADS.view(ROWS))
    x = logits().requires_grad_()
    cross_entropy(x, bins).sum().backward()
    torch.testing.assert_close(HEADS.gradient(x.detach(), bins), x.grad, atol=1e-5, rtol=1e-4)
    p = HEADS.probabilities(x).gather(1, bins)
    torch.testing.assert_close(-p.log().sum(dim=1), cross_entropy(x, bins))


def test_critics_see_real_and_relaxed_records_alike():
    """A record certain of its bins is laid out as the real record is, up to its cells' width."""
    _, bins = HEADS.split(HEADS.view(ROWS))
    certain = torch.full((N, HEADS.total), -40.0).scatter_(1, bins, 40.0)
    seen = HEADS.relaxed(certain, temperature=0.5, generator=random())
    real = HEADS.critic_view(ROWS)
    assert seen.shape == real.shape == (N, HEADS.critic_width)
    assert float((seen - real).abs().max()) < 0.25  # cos(8πv) over half a cell
    exact = [b.slice for b in CODEC.blocks if b.number is None]
    for part in exact:
        torch.testing.assert_close(seen[:, part], real[:, part])


def test_relaxed_records_pass_gradients():
    x = logits().requires_grad_()
    HEADS.relaxed(x, temperature=0.7, generator=random()).square().sum().backward()
    assert x.grad is not None and bool((x.grad != 0).any()) and bool(torch.isfinite(x.grad).all())


@pytest.mark.parametrize("view", [HEADS.view, HEADS.critic_view])
def test_views_are_row_by_row(view):
    whole = view(ROWS)
    for i in (0, 7, N - 1):
        torch.testing.assert_close(view(CODES.slice(i, i + 1).to("cpu"))[0], whole[i])


# -- centring -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_no_centred_record_leaves_the_ball_and_some_reach_it(weight):
    centred = CentredRecords(CODEC, target_weight=weight)
    norms = centred(CODEC.expand(CODES)).norm(dim=1)
    assert float(norms.max()) <= centred.radius * (1 + 1e-6)
    corners = torch.zeros(2, CODEC.width)
    for block in CODEC.blocks:
        for row in corners:
            hot = block.start + (1 if block.number is not None else 0)
            if block.number is not None:
                row[block.start] = 1.0
            if hot < block.start + block.width:
                row[hot] = 1.0
    assert float(centred(corners).norm(dim=1)[0]) == pytest.approx(centred.radius, rel=1e-6)


# -- losses ---------------------------------------------------------------------------------------


def gradient_of(networks, grad_factors):
    out = torch.zeros(networks.size)
    ones = torch.ones(len(grad_factors[0].backprops))
    clipped_sum(grad_factors, clip_norm=math.inf, mask=ones, views=networks.views(out))
    return out


def by_hand(networks, name, x):
    """The stack on a flat vector that autograd sees."""
    layers = networks[name].layers
    for layer, following in pairwise((*layers, None)):
        weight, bias = layer.views(networks.flat)
        x = functional.linear(x, weight, bias)
        if following is not None:
            x = functional.leaky_relu(x, SLOPE)
    return x


def test_the_autoencoders_gradient_is_that_of_its_loss():
    settings = DpAutoGanSettings(encoder_hidden=7, latent=3)
    autoencoder = AutoEncoder(HEADS, settings, generator=random(4))
    rows = HEADS.view(ROWS)
    expanded, bins = HEADS.split(rows)
    z = torch.tanh(by_hand(autoencoder.networks, "encoder", expanded))
    cross_entropy(by_hand(autoencoder.networks, "decoder", z), bins).sum().backward()
    gradient = gradient_of(autoencoder.networks, autoencoder.grad_factors(rows))
    torch.testing.assert_close(gradient, autoencoder.networks.flat.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("spread", [True, False])
def test_the_decoders_gradient_is_that_of_the_elbo(spread):
    d = 3
    centred = CentredRecords(CODEC)
    turn, _ = torch.linalg.qr(torch.randn((CODEC.width, d), generator=random(1)).double())
    directions = Principal(torch.zeros(CODEC.width).double(), turn, torch.ones(d).double())
    projection = Projection(centred, directions, 3.0)
    shapes = {DECODER: (d, 6, HEADS.total), SPREAD: (CODEC.width, 5, d)}
    if not spread:
        del shapes[SPREAD]
    networks = Dense(shapes, generator=random(2))
    mixture = Mixture(
        torch.tensor([0.3, 0.7]).double(),
        torch.randn((2, d), generator=random(3)).double(),
        torch.rand((2, d), generator=random(4)).double() + 0.2,
    )
    elbo = ElboGradient(HEADS, projection, networks, mixture, weight=0.8, spread=spread)
    assert elbo.draws == (d if spread else 0, 0)
    rows = HEADS.view(ROWS)
    noise = torch.randn((len(rows), elbo.draws.normals), generator=random(5))
    grad_factors = elbo.grad_factors(torch.cat([rows, noise], dim=1))
    expanded, bins = HEADS.split(rows)
    mean = projection(expanded)
    loss = torch.zeros(())
    z = mean
    if spread:
        log_spread = by_hand(networks, SPREAD, centred(expanded)).clamp(-6.0, 2.0)
        z = mean + noise * (0.5 * log_spread).exp()
        each = torch.stack(
            [
                0.5
                * (
                    variance.log()
                    - log_spread
                    + (log_spread.exp() + (mean - m) ** 2) / variance
                    - 1
                ).sum(1)
                for m, variance in zip(
                    mixture.means.float(), mixture.variances.float(), strict=True
                )
            ],
            dim=1,
        )
        loss = loss - 0.8 * torch.logsumexp(mixture.weights.float().log() - each, dim=1).sum()
    loss = loss + cross_entropy(by_hand(networks, DECODER, z), bins).sum()
    loss.backward()
    gradient = gradient_of(networks, grad_factors)
    torch.testing.assert_close(gradient, networks.flat.grad, atol=2e-4, rtol=2e-3)


def test_projections_stay_in_the_ball():
    centred = CentredRecords(CODEC)
    turn, _ = torch.linalg.qr(torch.randn((CODEC.width, 2), generator=random(1)).double())
    directions = Principal(
        torch.zeros(CODEC.width).double(), turn, torch.tensor([1e-9, 0.5]).double()
    )
    z = Projection(centred, directions, 1.5)(CODEC.expand(CODES))
    assert float(z.norm(dim=1).max()) <= 1.5 * (1 + 1e-6)


# -- adversarial ----------------------------------------------------------------------------------


def release(rows, noise=0.0, rate=1.0):
    return SampledRelease(
        n=len(rows), rate=rate, noise_multiplier=noise, read_rows=lambda chosen: rows[chosen],
        charge=lambda: None, source=SecureNoise(), device="cpu",
    )  # fmt: skip


def gan(rows, **change):
    config = {
        "steps": 10, "critic_steps": 3, "fakes": 16, "rate": 1e-3, "critic_rate": 1e-3,
        "clip_norm": 1.0, "box": 0.5, "snapshots": 4, "seed": 1,
    } | change  # fmt: skip
    generator = Generator(latent=4, hidden=(8, 8), outputs=rows.shape[1])
    return GanTrainer(
        generator,
        lambda outputs, random: outputs,
        new_critic(rows.shape[1], 8, 0, "cpu"),
        release(rows),
        config=AdversarialConfig(**config),
    )


def test_a_critic_separates_real_from_generated_records():
    """Where both sides hold the same records their clipped gradients cancel exactly."""
    rows = torch.randn(16, 5, generator=random())
    trainer = gan(rows)
    trainer._records = lambda: rows
    before = trainer.critic.flat.detach().clone()
    trainer.critic_optimizer.step()
    torch.testing.assert_close(trainer.critic.flat.detach(), before, atol=1e-5, rtol=0)


def test_critics_stay_in_their_box_and_generators_follow():
    rows = torch.randn(64, 5, generator=random()) + 2.0
    trainer = gan(rows, steps=600, critic_steps=5, critic_rate=5e-3, fakes=64, box=1.0)
    start = trainer.generator(torch.randn(200, 4)).mean().detach()
    for _ in range(600):
        trainer.step()
    bound = trainer.critic.init_bounds()
    assert (trainer.critic.flat.detach().abs() <= bound * (1 + 1e-6)).all()
    end = trainer.generator(torch.randn(200, 4)).mean().detach()
    assert abs(float(start)) < 0.5 and abs(float(end) - 2.0) < 1.0


def test_snapshots_fall_in_the_second_half_by_count_alone():
    trainer = gan(torch.randn(16, 5), steps=40, snapshots=5)
    kept_at = []
    for step in range(1, 41):
        before = len(trainer.snapshots.pairs)
        trainer.step()
        if len(trainer.snapshots.pairs) > before:
            kept_at.append(step)
    assert len(kept_at) == 5 and kept_at[0] > 20 and kept_at[-1] == 40
    history = trainer.history()
    assert history["critics"].shape == (5, trainer.critic.size)
    assert len(history["generators"]) == 5
    assert gan(torch.randn(16, 5), snapshots=0).history() == {}
    lost = gan(torch.randn(16, 5), snapshots=3).history()  # a crash took the last quarter
    assert len(lost["generators"]) == len(lost["critics"]) == 1


def test_training_goes_on_where_it_was():
    rows = torch.randn(16, 5, generator=random())
    first = gan(rows, steps=20)
    for _ in range(7):
        first.step()
    state = first.state_dict()
    second = gan(rows, steps=20)
    second.load_state_dict(state, charged=21)
    assert second.done == 7 and second.critic_optimizer.done == 21
    torch.testing.assert_close(second.critic.flat, first.critic.flat)
    later = gan(rows, steps=20)
    later.load_state_dict(state, charged=41)  # 20 critic steps were lost in a crash
    assert later.done == 13
    for _ in range(7):
        later.step()
    assert (
        later.critic_optimizer.done == 60 and later.done == 20
    )  # not one step more than was planned


# -- optimiser ------------------------------------------------------------------------------------


def test_signal_is_seen_above_noise_and_noise_alone_is_not():
    """A gradient that is all signal is told from one that is none; both from releases alone."""
    networks = Dense({"net": (4, 6, 1)}, generator=random())

    def grad_factors(x):
        tape = networks["net"].forward(x)
        return networks["net"].backward(tape, x[:, :1])[0]

    metrics = {}
    for name, rows in {"signal": torch.ones(400, 4), "none": torch.zeros(400, 4)}.items():
        mechanism = ClippedGradient(networks=networks, grad_factors=grad_factors, clip_norm=0.5)
        optimizer = DPAdam(networks, mechanism, release(rows, 1.0, 0.5), rate=1e-6, steps=100)
        for _ in range(100):
            optimizer.step()
        metrics[name] = optimizer.metrics()
    assert metrics["signal"][SIGNAL] > 3.0 > 1.0 > metrics["none"][SIGNAL]
    assert metrics["signal"][CLIPPED] > 60.0 and metrics["none"][CLIPPED] < 40.0


@pytest.mark.parametrize(("count", "rate"), [(1, None), (20, None), (1000, 0.3), (4000, 1e-3)])
def test_shares_add_up_to_the_whole(count, rate):
    """Two phases of half the budget each have the precision of the one that has it all."""

    def precision(sigma):
        if rate is None:
            return count / sigma**2
        return rate**2 * count * math.expm1(1 / sigma**2)

    half, whole = (noise_for_share(1.7, s, count=count, sampling_rate=rate) for s in (0.5, 1.0))
    assert 2 * precision(half) == pytest.approx(precision(whole), rel=1e-6)
    assert precision(whole) == pytest.approx(1 / 1.7**2, rel=1e-6)
    assert noise_for_share(0.0, 0.5, count=count, sampling_rate=rate) == 0.0
