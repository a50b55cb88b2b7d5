"""Matching a released embedding: generator descends, frequency critic ascends.

Everything here works on a released, noisy embedding and on the generator's own output. No record is
in reach, so any number of steps, any stopping rule and any setting cost no privacy.

Source: PEARL (ICLR 2022) Alg. 1 (App. E).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from core.models.pearl.characteristic_function import Frequencies, Target
from core.models.pearl.plan import PearlSettings
from core.models.steps.training.adam import Adam, OneCycle
from core.models.steps.training.draws import normals


class MixtureGenerator(nn.Module):
    """Latent point and class → bin logits: linear–batch norm–ReLU twice, then linear.

    The mixture over latent points ties the columns together. Each component is a product, so its
    characteristic function is a product of per-column ones in closed form: no sampling of
    categories inside training, and much less gradient noise than drawing records. Batch norm is
    sound here: the network sees latents only, never a record.

    Args:
      classes: number of classes, ≥ 1; a one-hot of the class joins the latent.

    Source: PEARL (ICLR 2022) App. H (architecture for tables).
    """

    def __init__(self, *, latent: int, classes: int, hidden: int, bins: int):
        super().__init__()
        self.latent = latent
        self.classes = classes
        self.layers = nn.Sequential(
            nn.Linear(latent + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, bins),
        )

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Standard normals z [b, latent], classes y, int64 [b] → bin logits, float32 [b, bins]."""
        hot = nn.functional.one_hot(y, self.classes).to(z.dtype)
        logits: Tensor = self.layers(torch.cat([z, hot], dim=1))
        return logits


LOSS_SCALE = 100.0  # keeps gradients far above Adam's epsilon
LARGEST_RATIO = 3.0  # bounds how far one frequency's weight can move the loss


class FrequencyCritic(nn.Module):
    """Re-weights frequencies by ω(t)/ω₀(t) without touching the data again.

    ω lets every column appear more or less often (importance) and every numeric column's
    frequencies be wider or narrower (log width), within ±`strength` in log units.

    Args:
      strength: ≥ 0; 0 switches re-weighting off.

    Source: PEARL (ICLR 2022) §4.2, Eq. 5; ω₀ here is a mixture over sparse supports.
    """

    def __init__(self, frequencies: Frequencies, strength: float):
        super().__init__()
        columns = len(frequencies.bins)
        self.strength = strength
        self.importance = nn.Parameter(torch.zeros(columns))
        self.log_width = nn.Parameter(torch.zeros(columns))
        relative = [
            (line / width).square() if column.cells else torch.ones_like(line)
            for column, line, width in zip(
                frequencies.bins, frequencies.lines, frequencies.widths, strict=True
            )
        ]
        numeric = [bool(column.cells) for column in frequencies.bins]
        self.register_buffer("relative", torch.stack(relative, dim=1), persistent=False)  # [G, m]
        self.register_buffer("numeric", torch.tensor(numeric), persistent=False)

    def weights(self, groups: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """Positive weights of pairs and columns of frequencies, means 1: [g, pairs] and [g, m].

        Args:
          groups: int64 [g], which groups.
          upper: int64 [2, pairs], column indices of each pair.
        """
        relative = self.get_buffer("relative")[groups]
        # log N(t; 0, (τw)²) / N(t; 0, w²) = -½ (t/w)² (τ⁻² - 1) - log τ
        tilt = -0.5 * relative * (torch.exp(-2.0 * self.log_width) - 1.0) - self.log_width
        ratio = torch.where(self.get_buffer("numeric"), tilt.exp(), torch.ones_like(tilt))
        ratio = ratio.clamp(1.0 / LARGEST_RATIO, LARGEST_RATIO) * self.importance.exp()
        pairs = ratio[:, upper[0]] * ratio[:, upper[1]]
        pairs = pairs / pairs.mean() if pairs.numel() else pairs
        return pairs, ratio / ratio.mean()

    @torch.no_grad()
    def bound(self) -> None:
        """Pull both parameters back into ±strength."""
        self.importance.clamp_(-self.strength, self.strength)
        self.log_width.clamp_(-self.strength, self.strength)


class EmbeddingMatcher:
    """The training state: generator, critic, their optimisers, and the released target.

    Args:
      target: the released embedding, divided by n.
      noise_level: standard deviation of one real coordinate of the target (public).
    """

    def __init__(
        self,
        generator: MixtureGenerator,
        frequencies: Frequencies,
        target: Target,
        *,
        noise_level: float,
        one_way_weight: float,
        settings: PearlSettings,
        seed: int,
        device: str,
    ):
        self.device = device
        self.settings = settings
        self.generator = generator.to(device)
        self.target = target.to(device)
        self.noise_level = noise_level
        self.one_way_weight = one_way_weight
        public = frequencies.to(device)
        self.tables = public.of_bins()
        self.counts = [column.count for column in frequencies.bins]
        columns = len(frequencies.bins)
        self.upper = torch.triu_indices(columns, columns, offset=1, device=device)
        self.total_groups = frequencies.groups
        self.critic = FrequencyCritic(public, settings.critic).to(device)
        self.random = torch.Generator().manual_seed(seed)
        cycle = OneCycle(settings.rate, settings.steps, warm=max(0.05, 2.0 / settings.steps))
        self._adam = Adam(self.generator.parameters(), cycle)
        self._critic_adam = Adam(self.critic.parameters(), settings.rate)
        self.done = 0
        self._mismatch = torch.zeros(2, device=device)

    @property
    def noise_floor(self) -> float:
        """Expected mismatch per frequency of a perfect generator: 2 × noise variance."""
        return 2.0 * self.noise_level**2

    def step(self) -> None:
        """One descent step, and one ascent step of the critic."""
        order = torch.randperm(self.total_groups, generator=self.random)
        groups = order[: self.settings.groups_per_step].to(self.device)
        ones, pairs = self._moments(groups)
        one = (ones - self.target.ones[:, groups]).abs().square()  # [C, g, m]
        two = (pairs - self.target.pairs[:, groups]).abs().square()  # [C, g, pairs]
        two_mean = two.mean() if two.numel() else two.sum()
        self._mismatch = torch.stack([one.mean(), two_mean]).detach()
        two_weight, one_weight = self.critic.weights(groups, self.upper)
        loss = (one * one_weight.detach()).sum() + (two * two_weight.detach()).sum()
        self._adam.descend(LOSS_SCALE * loss)
        if self.critic.strength > 0:
            self._ascend(one.detach(), two.detach(), one_weight, two_weight)
        self.done += 1

    def metrics(self) -> dict[str, float]:
        """Root mean square mismatch, and what noise alone would leave, in the target's unit.

        The mismatch of the last step, of one-column (λ included) and two-column frequencies to the
        release as it is, noise included; read from the device only here.
        """
        one, two = (math.sqrt(value) for value in self._mismatch.tolist())
        floor = math.sqrt(self.noise_floor)
        return {"single columns": one, "pairs of columns": two, "noise in the fingerprint": floor}

    def _ascend(self, one: Tensor, two: Tensor, one_weight: Tensor, two_weight: Tensor) -> None:
        """Move weight to where the mismatch is above the noise, so that noise is not chased."""
        gain = ((one - self.noise_floor) * one_weight).sum()
        gain = gain + ((two - self.noise_floor) * two_weight).sum()
        self._critic_adam.descend(-gain / (one.sum() + two.sum() + 1e-12))
        self.critic.bound()

    def _moments(self, groups: Tensor) -> tuple[Tensor, Tensor]:
        """The generator's own embedding, joint with the class, from fresh latents.

        Returns:
          complex64 [C, g, m] (times λ) and [C, g, pairs].
        """
        classes = self.generator.classes
        each = max(1, self.settings.batch // classes)
        y = torch.arange(classes, device=self.device).repeat_interleave(each)
        z = normals((len(y), self.generator.latent), self.random, self.device)
        logits = torch.split(self.generator(z, y), self.counts, dim=1)
        parts = []
        for logit, table in zip(logits, self.tables, strict=True):
            picked = table[:, :, groups].flatten(1)  # [count, 2g]
            parts.append(torch.softmax(logit, dim=1) @ picked)
        real_imaginary = torch.stack(parts, dim=2)  # [b, 2g, m]
        real, imaginary = real_imaginary.chunk(2, dim=1)
        features = torch.complex(real, imaginary)  # [b, g, m]
        features = features.view(classes, each, *features.shape[1:]).permute(0, 2, 3, 1)
        gram = features @ features.transpose(2, 3) / each  # [C, g, m, m]
        shares = self.target.shares.view(-1, 1, 1)
        ones = features.mean(dim=3) * shares * self.one_way_weight
        return ones, gram[:, :, self.upper[0], self.upper[1]] * shares

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, tensors and plain values only."""
        return {
            "step": self.done,
            "generator": self.generator.state_dict(),
            "critic": self.critic.state_dict(),
            "adam": self._adam.state_dict(),
            "critic_adam": self._critic_adam.state_dict(),
            "random": self.random.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`."""
        self.done = int(state["step"])
        self.generator.load_state_dict(state["generator"])
        self.critic.load_state_dict(state["critic"])
        self._adam.load_state_dict(state["adam"])
        self._critic_adam.load_state_dict(state["critic_adam"])
        self.random.set_state(state["random"])
