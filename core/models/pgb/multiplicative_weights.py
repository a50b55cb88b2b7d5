"""Boosting: a mixture of many generators' records against a private choice of critics.

Records x drawn from all generators play a mixed strategy φ against the critics. In each round one
critic is chosen that tells the real table from φ best, by a private selection; then records that
this critic scores high gain weight, φ(x) ∝ exp(Σ η D(x)). The answer is the average of all φ.

Beyond the paper, every critic has an opposite, 1 - D, so that weight which went too far comes back
and rounds end where φ and the table agree; and public queries (`pgb.marginal_queries`) stand
beside the learned critics, which may be blind to how often things occur.

Since a record's weight depends on it through the critics alone, the answer is a function that can
weigh any record: new rows are drawn from the generators and kept in proportion, none twice.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021; Azadi et al.,
"Discriminator rejection sampling", 2019.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.encoding.codec import Codes
from core.models.pgb.marginal_queries import MarginalQueries
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.privacy.mechanisms.selection import Selection

SHARPNESS = 2.0  # of the sigmoid that makes a critic's output a probability, in its own spreads
RATE = 0.4  # η of the first round
SLOWER = 40  # rounds after which it has halved; after twice as many, a third is left, and so on
REJECTION = 0.25  # power of D/(1 - D): critics are no calibrated probabilities
SURE = 0.1  # and none is taken to be surer than this
AT_ONCE = 4096  # records scored at a time
TAIL = 0.995  # records whose weight is above this quantile are always kept


@dataclass(frozen=True)
class CalibratedCritics:
    """Critics as probabilities that a record is real.

    Option j < N is a learned critic, then come the queries, then the opposites of all of them.

    Attributes:
      centres, spreads: float32 [N], of each critic's output at generated records.
    """

    ensemble: SnapshotEnsemble
    centres: Tensor
    spreads: Tensor
    queries: MarginalQueries

    @classmethod
    def calibrate(
        cls, ensemble: SnapshotEnsemble, generated: Tensor, queries: MarginalQueries
    ) -> CalibratedCritics:
        """Half of the generated records are called real; touches no private data.

        Args:
          generated: records of all its generators, float32 [n, S].
        """
        outputs = ensemble.critic_outputs(generated)
        centres, spreads = outputs.median(dim=0).values, outputs.std(dim=0).clamp_min(1e-6)
        return cls(ensemble, centres, spreads, queries)

    @property
    def options(self) -> int:
        """See `core.privacy.mechanisms.selection.Scores`."""
        return 2 * (len(self.ensemble) + len(self.queries))

    def snapshot(self, option: int) -> int | None:
        """Whose critic an option is, or whose opposite; None for a query."""
        index = option % (self.options // 2)
        return index if index < len(self.ensemble) else None

    def __call__(self, records: Tensor) -> Tensor:
        """Records as critics see them, float32 [b, w] → probabilities [b, options]."""
        outputs = self.ensemble.critic_outputs(records)
        learned = torch.sigmoid(SHARPNESS * (outputs - self.centres) / self.spreads)
        probabilities = torch.cat([learned, self.queries(records)], dim=1)
        return torch.cat([probabilities, 1.0 - probabilities], dim=1)

    def scores(self, rows: Codes) -> Tensor:
        """See `core.privacy.mechanisms.selection.Scores`."""
        return self(self.ensemble.heads.binned_view(rows))


@dataclass
class WeightsState:
    """The rounds so far; with the critics it says every record's weight.

    Attributes:
      rate: η of the first round, ≥ 0; see `rates`.
      normalisers: log Σ_b exp(η Σ D) before each of them.
    """

    rate: float = RATE
    chosen: list[int] = field(default_factory=list)
    normalisers: list[float] = field(default_factory=list)


class MultiplicativeWeights:
    """Weights of candidates, round by round.

    Args:
      scores: float32 [B, options], every critic's probability for every candidate.
      done: rounds so far; a crash can leave the state behind.
    """

    def __init__(
        self,
        critics: CalibratedCritics,
        scores: Tensor,
        selection: Selection,
        *,
        state: WeightsState | None = None,
        done: int = 0,
    ):
        self.critics, self.scores, self.done = critics, scores, done
        self.state = WeightsState() if state is None else state
        self._selection = selection
        steps = rates(self.state.rate, len(self.state.chosen)).float()
        self._log = (scores[:, self.state.chosen] @ steps).double()
        self._last_value: float | None = None

    @property
    def weights(self) -> Tensor:
        """Of the candidates, float64 [B], summing to 1."""
        return (self._log - torch.logsumexp(self._log, dim=0)).exp()

    def step(self) -> None:
        """One private selection and one update of the weights."""
        state = self.state
        mixture = (self.weights.float() @ self.scores).double()  # [options], of the mixture
        option = self._selection.select((1.0 - mixture).numpy())
        step = float(rates(state.rate, len(state.chosen) + 1)[-1])
        state.chosen.append(option)
        state.normalisers.append(float(torch.logsumexp(self._log, dim=0)))
        self._log = self._log + step * self.scores[:, option].double()
        if self.critics.snapshot(option) is not None:
            self._last_value = float(1.0 - mixture[option])
        self.done += 1

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the candidates."""
        return asdict(self.state)

    def metrics(self) -> dict[str, float]:
        """How the chosen critic sees the mixture, and how many candidates carry it."""
        weights = self.weights
        carried = 100.0 / (len(weights) * float(weights.square().sum()))
        metrics = {"candidates in use, %": carried}
        snapshots = [self.critics.snapshot(option) for option in self.state.chosen]
        learned = [snapshot for snapshot in snapshots if snapshot is not None]
        if snapshots:
            metrics["rounds won by a critic, %"] = 100.0 * len(learned) / len(snapshots)
        if learned and self._last_value is not None:
            metrics["chosen snapshot"] = float(learned[-1] + 1)
            metrics["mixture taken for generated, %"] = 100.0 * self._last_value
        return metrics


def rates(first: float, rounds: int) -> Tensor:
    """η of each round, float64 [rounds]: large while the gaps are, then ever smaller."""
    return first / (1.0 + torch.arange(rounds, dtype=torch.float64) / SLOWER)


class BoostedMixture:
    """Draws records of the averaged mixture.

    Args:
      rejection: whether records are also kept in proportion to D/(1 - D), the
        geometric mean over the chosen critics, to the power `REJECTION`.
    """

    def __init__(self, critics: CalibratedCritics, state: WeightsState, *, rejection: bool):
        self.critics = critics
        self.rejection = rejection
        self._chosen = torch.tensor(state.chosen, dtype=torch.int64)
        self._rates = rates(state.rate, len(state.chosen))
        self._normalisers = torch.tensor(state.normalisers, dtype=torch.float64)
        random = torch.Generator().manual_seed(0)
        weights = self.weights(self.candidates(4096, random)[1])
        self._bound = float(weights.quantile(TAIL).clamp_min(1e-300))
        self._accepted = float((weights / self._bound).clamp(max=1.0).mean())  # share of records

    def candidates(self, rows: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Records drawn evenly from all generators: bins [rows, S], and as critics see them."""
        ensemble = self.critics.ensemble
        generators = torch.randint(len(ensemble), (rows,), generator=random).numpy()
        counts = np.bincount(generators, minlength=len(ensemble))
        parts = [ensemble.draw(j, int(c), random) for j, c in enumerate(counts) if c]
        one_hot = torch.cat(parts)[torch.randperm(rows, generator=random)]
        return one_hot, ensemble.heads.critic_input(one_hot)

    def weights(self, records: Tensor) -> Tensor:
        """How much more often a record belongs to the mixture than to the candidates, [b]."""
        return torch.cat([self._weights(part) for part in torch.split(records, AT_ONCE)])

    def _weights(self, records: Tensor) -> Tensor:
        if not len(self._chosen):  # a crash can cost all rounds; the candidates stand as they are
            return torch.ones(len(records), dtype=torch.float64)
        chosen = self.critics(records)[:, self._chosen].double()  # [b, T]
        steps = self._rates * chosen
        before = steps.cumsum(dim=1) - steps - self._normalisers
        weights = torch.logsumexp(before, dim=1).exp()
        if self.rejection:
            sure = chosen.clamp(SURE, 1.0 - SURE)
            weights = weights * (REJECTION * (sure / (1.0 - sure)).log().mean(dim=1)).exp()
        return weights

    def draw(self, rows: int, random: torch.Generator) -> Tensor:
        """Bins of that many records of the mixture, float32 [rows, S]."""
        accepted: list[Tensor] = []
        have = 0
        while have < rows:
            count = min(16_384, int((rows - have) / max(self._accepted, 0.01) * 1.1) + 64)
            one_hot, records = self.candidates(count, random)
            odds = self.weights(records) / self._bound
            lucky = torch.rand(count, generator=random, dtype=torch.float64) < odds
            accepted.append(one_hot[lucky])
            have += int(lucky.sum())
        return torch.cat(accepted)[:rows]
