"""The two phases of P3GM on tensors: encode once through releases, then train a decoder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from core.models.p3gm.centred_records import Frame
from core.models.p3gm.decoder import DECODER, SPREAD, Decoding, Projection
from core.models.shared.dp_optimizer import Descent
from core.models.shared.fitted import SlotFitted
from core.models.shared.heads import Heads
from core.models.shared.training_loop import Checkpoint, announce, follow
from core.models.synthesizer import FitEvent, Observe
from core.privacy.dpsgd.dense import Dense
from core.privacy.dpsgd.gradient import ClippedGradient
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import clip_rows
from core.privacy.mechanisms.mixture import Mixture, MixtureStep, update
from core.privacy.mechanisms.moments import Moments, Principal, principal
from core.table.codec import Codes

if TYPE_CHECKING:
    from core.models.p3gm.plan import P3gmSettings

__all__ = ["Phased"]

PCA, EM = "pca", "em"
REACH = 2.0  # latent points lie within REACH·√d'; coordinates have about unit variance
SMALL = 0.1  # last layers start this much smaller, so that training begins at equal odds
START_SPREAD = -1.0  # log variance that latent points begin with
AVERAGING = 0.99


class Phased:
    """P3GM on one device.

    Args:
      heads: of the domain.
      settings: of the model.
      device: where tensors live.
    """

    def __init__(self, heads: Heads, settings: P3gmSettings, *, device: str = "cpu"):
        self._heads = heads
        self._settings = settings
        self._device = device
        self._frame = Frame(heads.codec, target_weight=settings.target_weight, device=device)
        self._projected = settings.dimensions < heads.width
        self._latent = settings.dimensions if self._projected else heads.width

    def encode(self, table: PrivateTable, kept: Checkpoint, *, observe: Observe) -> None:
        """Make the releases of the first phase that the checkpoint does not hold yet."""
        if self._projected and "directions" not in kept.state:
            announce(observe, table.plan.phase(PCA))
            moments = Moments.of(self._points, width=self._frame.width, radius=self._frame.radius)
            release = table.release(PCA, moments, device=self._device, tick=_ticks(observe, PCA))
            found = principal(release, table.n, moments, self._latent)
            kept.keep(mean=found.mean, directions=found.components, variances=found.variances)
        projection = self._projection(kept.state)
        if "means" not in kept.state:
            _keep_mixture(
                kept, Mixture.start(self._settings.components, self._latent, projection.radius)
            )
        announce(observe, table.plan.phase(EM))
        for step in range(table.meter.runs(EM), self._settings.em_steps):
            mechanism = MixtureStep.balanced(
                lambda codes: projection(self._heads.codec.expand(codes)),
                _mixture(kept.state),
                projection.radius,
            )
            release = table.release(EM, mechanism, device=self._device)
            _keep_mixture(kept, update(release, mechanism, table.n))
            data = {"step": step + 1, "steps": self._settings.em_steps, "phase": EM}
            follow(observe(FitEvent(kind="progress", data={**data, "unit": "steps"})))

    def descent(
        self,
        table: PrivateTable,
        state: dict[str, Any],
        *,
        bounded: bool,
    ) -> Descent:
        """The second phase, fresh or as it was kept.

        Args:
          table: the door to rows.
          state: of the checkpoint, first phase done.
          bounded: whether gradients are clipped; off only where no privacy is claimed.
        """
        start = torch.Generator().manual_seed(state["seed"])
        networks = self._networks(start)
        decoding = Decoding(
            self._heads,
            self._projection(state),
            networks,
            _mixture(state),
            weight=self._settings.weight,
            spread=self._settings.spread,
        )
        clip_norm = self._settings.clip_norm if bounded else math.inf
        descent = Descent(
            networks,
            ClippedGradient(
                networks=networks,
                grad_factors=decoding.grad_factors,
                clip_norm=clip_norm,
                draws=decoding.draws,
            ),
            table.sampled(DECODER, view=self._heads.view, device=self._device),
            rate=self._settings.rate,
            steps=self._settings.steps,
            averaging=AVERAGING,
        )
        descent.go_on(state.get("descent"), charged=table.meter.runs(DECODER))
        return descent

    def fitted(self, flat: Tensor, state: dict[str, Any]) -> SlotFitted:
        """A decoder with these parameters and the mixture of `state`, on the CPU."""
        networks = self._networks(None, device="cpu")
        networks.load(flat.detach().cpu())
        mixture, radius = _mixture(state), self._radius

        def emit(rows: int, random: torch.Generator) -> Tensor:
            z = clip_rows(mixture.sample(rows, random), radius).to(torch.float32)
            return networks[DECODER](z)

        return SlotFitted(
            self._heads,
            model="p3gm",
            settings=self._settings.model_dump(),
            weights={
                "flat": networks.flat.detach(),
                "weights": mixture.weights,
                "means": mixture.means,
                "spreads": mixture.variances,
            },
            emit=emit,
        )

    @property
    def _radius(self) -> float:
        return REACH * math.sqrt(self._latent) if self._projected else self._frame.radius

    def _points(self, codes: Codes) -> Tensor:
        return self._frame(self._heads.codec.expand(codes))

    def _projection(self, state: dict[str, Any]) -> Projection:
        found = None
        if self._projected:
            found = Principal(state["mean"], state["directions"], state["variances"])
        return Projection(self._frame, found, self._radius)

    def _networks(self, generator: torch.Generator | None, device: str | None = None) -> Dense:
        shapes = {DECODER: (self._latent, self._settings.hidden, self._heads.total)}
        if self._settings.spread:
            shapes[SPREAD] = (self._frame.width, self._settings.spread_hidden, self._latent)
        networks = Dense(shapes, generator=generator, device=device or self._device)
        with torch.no_grad():
            for name in shapes:
                weight, bias = networks[name].layers[-1].views(networks.flat)
                weight.mul_(SMALL)
                if name == SPREAD:
                    bias.fill_(START_SPREAD)
        return networks


def _mixture(state: dict[str, Any]) -> Mixture:
    return Mixture(state["weights"], state["means"], state["spreads"])


def _keep_mixture(kept: Checkpoint, mixture: Mixture) -> None:
    kept.keep(weights=mixture.weights, means=mixture.means, spreads=mixture.variances)


def _ticks(observe: Observe, phase: str) -> Any:
    def tick(done: int, total: int) -> None:
        data = {"step": done, "steps": total, "phase": phase, "unit": "rows"}
        follow(observe(FitEvent(kind="progress", data=data)))

    return tick
