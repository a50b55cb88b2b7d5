"""Boosting: a mixture of many generators' records against a private choice of critics.

Records x drawn from all generators play a mixed strategy φ against the critics. In each round one
critic is chosen that tells the real table from φ best, by a private selection; then records that
this critic likes gain weight, φ(x) ∝ exp(Σ η D(x)). The answer is the average of all φ.

Beyond the paper, every critic has an opposite, 1 - D, so that weight which went too far comes back
and the game ends where φ and the table agree; and public questions (`pgb.marginal_queries`) play
beside the learned critics, which may be blind to how often things occur.

Since a record's weight depends on it through the critics alone, the answer is a function that can
weigh any record: new rows are drawn from the generators and kept in proportion, none twice.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021; Azadi et al.,
"Discriminator rejection sampling", 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.models.pgb.marginal_queries import Questions
from core.models.shared.snapshot_ensemble import Players
from core.privacy.mechanisms.selection import Selection
from core.table.codec import Codes

__all__ = ["Boosted", "Judge", "Rounds"]

SHARPNESS = 2.0  # of the sigmoid that makes a critic's word a probability, in its own spreads
RATE = 0.4  # η of the first round
SLOWER = 40  # rounds after which it has halved; after twice as many, a third is left, and so on
REJECTION = 0.25  # power of D/(1 - D): critics are no calibrated probabilities
SURE = 0.1  # and none is taken to be surer than this
AT_ONCE = 4096  # records judged at a time
TAIL = 0.995  # records whose weight is above this quantile are always kept


@dataclass(frozen=True)
class Judge:
    """Critics as probabilities that a record is real.

    Option j < N is a learned critic, then come the questions, then the opposites of all of them.

    Attributes:
      players: whose critics.
      centres, spreads: float32 [N], of each critic's word on generated records.
      questions: that play beside them.
    """

    players: Players
    centres: Tensor
    spreads: Tensor
    questions: Questions

    @classmethod
    def calibrate(cls, players: Players, seen: Tensor, questions: Questions) -> Judge:
        """Half of the generated records are called real; touches no private data."""
        words = players.judge(seen)
        centres, spreads = words.median(dim=0).values, words.std(dim=0).clamp_min(1e-6)
        return cls(players, centres, spreads, questions)

    @property
    def options(self) -> int:
        """See `core.privacy.mechanisms.selection.Scores`."""
        return 2 * (len(self.players) + len(self.questions))

    def snapshot(self, option: int) -> int | None:
        """Whose critic an option is, or whose opposite; None for a question."""
        one = option % (self.options // 2)
        return one if one < len(self.players) else None

    def __call__(self, seen: Tensor) -> Tensor:
        """Float32 [b, w] → probabilities [b, options]."""
        words = self.players.judge(seen)
        learned = torch.sigmoid(SHARPNESS * (words - self.centres) / self.spreads)
        likes = torch.cat([learned, self.questions(seen)], dim=1)
        return torch.cat([likes, 1.0 - likes], dim=1)

    def scores(self, rows: Codes) -> Tensor:
        """See `core.privacy.mechanisms.selection.Scores`."""
        return self(self.players.heads.rounded(rows))


@dataclass
class Rounds:
    """The game, round by round.

    Attributes:
      judge: the critics.
      likes: float32 [B, options], what every critic says of every candidate.
      rate: η of the first round, ≥ 0; see `rates`.
      chosen: critics of the rounds so far.
      normalisers: log Σ_b exp(η Σ D) before each of those rounds.
    """

    judge: Judge
    likes: Tensor
    rate: float
    chosen: list[int] = field(default_factory=list)
    normalisers: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        steps = rates(self.rate, len(self.chosen)).float()
        self._log = (self.likes[:, self.chosen] @ steps).double()
        self._value: float | None = None

    @classmethod
    def fresh(cls, judge: Judge, seen: Tensor) -> Rounds:
        """No round played.

        Args:
          judge: the critics.
          seen: candidates as critics see them, [B, w].
        """
        return cls(judge, judge(seen), RATE)

    def play(self, selection: Selection) -> None:
        """One private selection and one update of the weights."""
        log = torch.logsumexp(self._log, dim=0)
        weights = (self._log - log).exp()
        own = (weights.float() @ self.likes).double()  # [options], what each says of the mixture
        critic = selection.select((1.0 - own).numpy())
        step = float(rates(self.rate, len(self.chosen) + 1)[-1])
        self.chosen.append(critic)
        self.normalisers.append(float(log))
        self._log = self._log + step * self.likes[:, critic].double()
        if self.judge.snapshot(critic) is not None:
            self._value = float(1.0 - own[critic])

    def metrics(self) -> dict[str, float]:
        """How the chosen critic sees the mixture, and how many candidates carry it."""
        weights = (self._log - torch.logsumexp(self._log, dim=0)).exp()
        carried = 100.0 / (len(weights) * float(weights.square().sum()))
        told = {"candidates that carry the mixture, %": carried}
        snapshots = [self.judge.snapshot(option) for option in self.chosen]
        learned = [snapshot for snapshot in snapshots if snapshot is not None]
        if snapshots:
            told["rounds won by a learned critic, %"] = 100.0 * len(learned) / len(snapshots)
        if learned and self._value is not None:
            told["chosen snapshot"] = float(learned[-1] + 1)
            told["mixture called generated, %"] = 100.0 * self._value
        return told

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the candidates."""
        return {"rate": self.rate, "chosen": self.chosen, "normalisers": self.normalisers}


def rates(first: float, rounds: int) -> Tensor:
    """η of each round, float64 [rounds]: large while the gaps are, then ever smaller."""
    return first / (1.0 + torch.arange(rounds, dtype=torch.float64) / SLOWER)


class Boosted:
    """Draws records of the averaged mixture.

    Args:
      judge: the critics.
      rate, chosen, normalisers: of `Rounds`.
      rejection: whether records are also kept in proportion to D/(1 - D), the
        geometric mean over the chosen critics, to the power `REJECTION`.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        rate: float,
        chosen: list[int],
        normalisers: list[float],
        rejection: bool,
    ):
        self.judge = judge
        self.rejection = rejection
        self._chosen = torch.tensor(chosen, dtype=torch.int64)
        self._rates = rates(rate, len(chosen))
        self._normalisers = torch.tensor(normalisers, dtype=torch.float64)
        random = torch.Generator().manual_seed(0)
        words = self.weights(self.candidates(4096, random)[1])
        self._bound = float(words.quantile(TAIL).clamp_min(1e-300))
        self.share = float((words / self._bound).clamp(max=1.0).mean())

    def candidates(self, rows: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
        """Records drawn evenly from all generators: slots [rows, S], and as critics see them."""
        players = self.judge.players
        counts = np.bincount(
            torch.randint(len(players), (rows,), generator=random).numpy(), minlength=len(players)
        )
        parts = [players.draw(j, int(c), random) for j, c in enumerate(counts) if c]
        slots = torch.cat(parts)[torch.randperm(rows, generator=random)]
        return slots, players.heads.seen(slots)

    def weights(self, seen: Tensor) -> Tensor:
        """How much more often a record belongs to the mixture than to the candidates, [b]."""
        return torch.cat([self._weigh(part) for part in torch.split(seen, AT_ONCE)])

    def _weigh(self, seen: Tensor) -> Tensor:
        if not len(self._chosen):  # a crash can cost all rounds; the candidates stand as they are
            return torch.ones(len(seen), dtype=torch.float64)
        chosen = self.judge(seen)[:, self._chosen].double()  # [b, T]
        steps = self._rates * chosen
        before = steps.cumsum(dim=1) - steps - self._normalisers
        found = torch.logsumexp(before, dim=1).exp()
        if self.rejection:
            sure = chosen.clamp(SURE, 1.0 - SURE)
            found = found * (REJECTION * (sure / (1.0 - sure)).log().mean(dim=1)).exp()
        return found

    def draw(self, rows: int, random: torch.Generator) -> Tensor:
        """Slots of that many records of the mixture, float32 [rows, S]."""
        kept: list[Tensor] = []
        have = 0
        while have < rows:
            count = min(16_384, int((rows - have) / max(self.share, 0.01) * 1.1) + 64)
            slots, seen = self.candidates(count, random)
            odds = self.weights(seen) / self._bound
            lucky = torch.rand(count, generator=random, dtype=torch.float64) < odds
            kept.append(slots[lucky])
            have += int(lucky.sum())
        return torch.cat(kept)[:rows]
