"""TaggedFirst: PPEM's two generators on one device, and the model they leave behind."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from core.encoding.codec import Codec, Codes
from core.models.base_sampler import FittedGenerator
from core.models.ppem.energy import Energy, as_critics, shapes
from core.models.ppem.energy_gan_trainer import EnergyGanConfig, EnergyGanTrainer, SplitGenerator
from core.models.ppem.plan import CONDITIONAL, MARGINAL, Ppem, PpemSettings, column_groups
from core.models.ppem.stein_penalty import ColumnGroup, SteinPenalty
from core.models.steps.training.adversarial import seeded
from core.models.steps.training.draws import normals
from core.models.steps.training.heads import CERTAIN, Heads
from core.models.steps.training.snapshot_ensemble import SnapshotEnsemble
from core.privacy.dpsgd.dense import Dense
from core.privacy.guarded import PrivateTable


class TaggedFirst:
    """Tagged columns first, the others given them: p(x′) · p(rest | x′).

    Args:
      bounded: whether gradients are clipped; off only where the plan claims no privacy.

    Attributes:
      tagged, others: the two groups of columns; `others` is None when everything is tagged.
      complete: whether both generators have begun to learn.
    """

    def __init__(
        self,
        codec: Codec,
        settings: PpemSettings,
        *,
        seed: int,
        device: str = "cpu",
        bounded: bool = True,
    ):
        first, rest = column_groups(codec.domain)
        self._codec, self._settings = codec, settings
        self._seed, self._device, self._bounded = seed, device, bounded
        self._tags = dict(codec.domain.sensitive)
        self.tagged = ColumnGroup(codec, first, device=device)
        self.others = ColumnGroup(codec, rest, device=device) if rest else None
        self._generators = seeded(self._new_generators, seed)
        self._trainers: list[EnergyGanTrainer] = []

    def _new_generators(self) -> list[SplitGenerator]:
        generators = [self._new_generator(0, self.tagged)]
        if self.others is not None:
            generators.append(self._new_generator(self.tagged.width, self.others))
        return generators

    def _new_generator(self, given: int, columns: ColumnGroup) -> SplitGenerator:
        return SplitGenerator(
            latent=self._settings.latent,
            given=given,
            hidden=self._settings.hidden,
            outputs=columns.heads.total,
        )

    @property
    def complete(self) -> bool:
        """See the class."""
        return len(self._trainers) == len(self._generators)

    def marginal(self, table: PrivateTable) -> EnergyGanTrainer:
        """The tagged columns' trainer: an energy a tag, and one over all where there are more.

        Its α-LMDP penalties stand one a tag.
        """
        networks, energies = self._marginal_energies()
        penalties = [
            SteinPenalty(self.tagged, names, energy, alpha=self._settings.alpha)
            for names, energy in zip(self._tags.values(), energies, strict=False)
        ]
        trainer = EnergyGanTrainer(
            self._generators[0],
            networks,
            energies,
            self.tagged.heads,
            table.sampled(MARGINAL, view=self.tagged.view, device=self._device),
            config=self._config("tagged", steps=self._settings.marginal_steps, offset=2),
            penalties=penalties,
        )
        self._trainers = [trainer]
        return trainer

    def conditional(self, table: PrivateTable) -> EnergyGanTrainer:
        """The other columns' trainer, given tagged ones that the first generator makes."""
        assert self.others is not None
        tagged, others = self.tagged, self.others
        networks, energies = self._conditional_energies(others.width)
        marginal = self._new_generator(0, tagged)
        marginal.load_state_dict(self._trainers[0].weights())
        marginal.to(self._device)

        @torch.no_grad()
        def given(count: int, random: torch.Generator) -> Tensor:
            z = normals((count, marginal.latent), random, self._device)
            return tagged.heads.sample_critic_input(marginal(z), generator=random)

        def view(codes: Codes) -> Tensor:
            return torch.cat([tagged.view(codes), others.view(codes)], dim=1)

        trainer = EnergyGanTrainer(
            self._generators[1],
            networks,
            energies,
            others.heads,
            table.sampled(CONDITIONAL, view=view, device=self._device),
            config=self._config("others", steps=self._settings.steps, offset=4),
            given=given,
        )
        self._trainers = [self._trainers[0], trainer]
        return trainer

    def _marginal_energies(self) -> tuple[Dense, list[Energy]]:
        if not self._tags:
            columns = [torch.arange(self.tagged.width)]
        else:
            columns = [self.tagged.columns(names) for names in self._tags.values()]
            if len(columns) > 1:
                columns.append(torch.arange(self.tagged.width))
        widths: dict[str, tuple[int, ...]] = {}
        for i, column in enumerate(columns):
            widths |= shapes(f"e{i}", (len(column),), self._settings.energy_hidden)
        networks = self._networks(widths, 1)
        return networks, [Energy(networks, f"e{i}", [c]) for i, c in enumerate(columns)]

    def _conditional_energies(self, width: int) -> tuple[Dense, list[Energy]]:
        given = self.tagged.width
        networks = self._networks(shapes("e", (width, given), self._settings.energy_hidden), 3)
        columns = [torch.arange(width), torch.arange(width, width + given)]
        return networks, [Energy(networks, "e", columns)]

    def fitted(self) -> FittedGenerator:
        """What the generators have learned so far, on the CPU."""
        weights = {
            f"{i}.{name}": value
            for i, trainer in enumerate(self._trainers)
            for name, value in trainer.weights().items()
        }
        on_cpu = TaggedFirst(self._codec, self._settings, seed=0)
        return on_cpu.loaded(weights, self._trainers[-1].history())

    def last_energies(self) -> tuple[Dense, list[Energy], Tensor]:
        """Energies of the last phase, and where the columns they read lie in a whole record."""
        if self.others is None:
            return *self._marginal_energies(), self.tagged.seen_at
        seen_at = torch.cat([self.others.seen_at, self.tagged.seen_at])
        return *self._conditional_energies(self.others.width), seen_at

    def ensemble(self, fitted: FittedGenerator) -> SnapshotEnsemble:
        """Snapshots of the last phase; for an object of its own on the CPU.

        Where two phases are, all generators draw tagged columns from the first as it ended.
        """
        self.loaded(fitted.weights)
        _, energies, seen_at = self.last_energies()

        def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
            nn.utils.vector_to_parameters(flat, self._generators[-1].parameters())
            return self._emit(rows, random)

        history = fitted.history
        critics = as_critics(energies, history["critics"], seen_at)
        return SnapshotEnsemble(Heads(self._codec), history["generators"], emit, critics)

    def loaded(
        self, weights: dict[str, Tensor], history: dict[str, Tensor] | None = None
    ) -> FittedGenerator:
        """A model with the weights of `fitted`; for an object of its own on the CPU."""
        for i, generator in enumerate(self._generators):
            own = {k[2:]: v for k, v in weights.items() if k.startswith(f"{i}.")}
            generator.load_state_dict(own)
        return FittedGenerator(
            self._codec,
            model=Ppem.card.id,
            settings=self._settings.model_dump(),
            weights=weights,
            draw_chunk=Heads(self._codec).drawing(self._emit),
            history=history,
        )

    def _emit(self, rows: int, random: torch.Generator) -> Tensor:
        """Logits over all bins: tagged columns as drawn, the others given them."""
        heads, latent = self.tagged.heads, self._settings.latent
        logits = self._generators[0](torch.randn((rows, latent), generator=random))
        one_hot = heads.sample_one_hot(logits, uniform=torch.rand(logits.shape, generator=random))
        certain = (one_hot - 1.0) * CERTAIN
        if self.others is None:
            return certain[:, self.tagged.positions.argsort()]
        z = torch.randn((rows, latent), generator=random)
        conditional = self._generators[1](z, heads.critic_input(one_hot))
        positions = torch.cat([self.tagged.positions, self.others.positions])
        return torch.cat([certain, conditional], dim=1)[:, positions.argsort()]

    def _networks(self, widths: dict[str, tuple[int, ...]], offset: int) -> Dense:
        start = torch.Generator().manual_seed(self._seed + offset)
        return Dense(widths, generator=start, device=self._device)

    def _config(self, label: str, *, steps: int, offset: int) -> EnergyGanConfig:
        settings = self._settings
        return EnergyGanConfig.of(
            settings,
            steps=steps,
            critic_steps=settings.energy_steps,
            critic_rate=settings.energy_rate,
            clip_norm=settings.clip_norm if self._bounded else math.inf,
            seed=self._seed + offset,
            label=label,
        )
