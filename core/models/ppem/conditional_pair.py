"""Chain: the two pairs of PPEM on one device, and the model they leave behind."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.models.ppem.column_group import Part
from core.models.ppem.energy import Energy, as_critics, shapes
from core.models.ppem.energy_gan_trainer import Margin, Pair, SplitGenerator
from core.models.ppem.plan import CONDITIONAL, MARGINAL, parts_of
from core.models.ppem.settings import PpemSettings
from core.models.ppem.stein_penalty import Stein
from core.models.shared.fitted import SlotFitted
from core.models.shared.heads import CERTAIN, Heads
from core.models.shared.snapshot_ensemble import Players
from core.privacy.dpsgd.dense import Dense
from core.privacy.guarded import PrivateTable
from core.table.codec import Codec, Codes

__all__ = ["Chain"]


class Chain:
    """Tagged columns first, the others given them.

    Args:
      codec: of the domain, which says what is tagged.
      settings: of the model.
      private: whether gradients are clipped; off only where no privacy is claimed.
      seed: of data-free randomness.
      device: where tensors live.

    Attributes:
      tagged, others: the two parts of a record; `others` is None when everything is tagged.
      complete: whether both generators have begun to learn.
    """

    def __init__(
        self,
        codec: Codec,
        settings: PpemSettings,
        *,
        private: bool,
        seed: int,
        device: str = "cpu",
    ):
        first, rest = parts_of(codec.domain)
        self._codec, self._settings, self._seed = codec, settings, seed
        self._private, self._device = private, device
        self._groups = dict(codec.domain.sensitive)
        self._own = dict(self._groups) or {"all columns": first}
        self.tagged = Part(codec, first, device=device)
        self.others = Part(codec, rest, device=device) if rest else None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._first = self._generator(0, self.tagged)
            self._second = self._generator(self.tagged.width, self.others)
        self._pairs: list[Pair] = []

    def _generator(self, given: int, part: Part | None) -> SplitGenerator | None:
        if part is None:
            return None
        chosen = self._settings
        return SplitGenerator(
            latent=chosen.latent, given=given, hidden=chosen.hidden, outputs=part.heads.total
        )

    @property
    def complete(self) -> bool:
        """See the class."""
        return len(self._pairs) == (1 if self.others is None else 2)

    def marginal(self, table: PrivateTable) -> Pair:
        """The pair of the tagged columns: an energy a group, and one over all where there are more.

        Its α-LMDP penalties stand one a tagged group.
        """
        networks, energies = self._marginal_energies()
        steins = [
            Stein(self.tagged, self._own[name], energy, alpha=self._settings.alpha)
            for name, energy in zip(self._groups, energies, strict=False)
        ]
        assert self._first is not None
        pair = Pair(
            networks,
            energies,
            self._first,
            self.tagged.heads,
            lambda rows: (rows, None),
            table.sampled(MARGINAL, view=self.tagged.view, device=self._device),
            how=self._margin(self._settings.marginal_steps),
            seed=self._seed + 2,
            device=self._device,
            steins=steins,
        )
        self._pairs = [pair]
        return pair

    def conditional(self, table: PrivateTable) -> Pair:
        """The pair of the other columns, given tagged ones that the first generator makes."""
        assert self.others is not None and self._first is not None and self._second is not None
        cut, width, others = self.tagged.width, self.others.width, self.others
        networks, energies = self._conditional_energies(width)
        teacher = self._generator(0, self.tagged)
        assert teacher is not None
        teacher.load_state_dict(self._pairs[0].weights())
        teacher.to(self._device)

        @torch.no_grad()
        def given(count: int, random: torch.Generator) -> Tensor:
            z = torch.randn((count, teacher.latent), generator=random, device=self._device)
            heads, logits = self.tagged.heads, teacher(z)
            uniform = torch.rand(logits.shape, generator=random, device=self._device)
            return heads.seen(heads.chosen(logits, uniform=uniform))

        def view(codes: Codes) -> Tensor:
            return torch.cat([self.tagged.view(codes), others.view(codes)], dim=1)

        pair = Pair(
            networks,
            energies,
            self._second,
            others.heads,
            lambda rows: (rows[:, cut:], rows[:, :cut]),
            table.sampled(CONDITIONAL, view=view, device=self._device),
            how=self._margin(self._settings.steps),
            seed=self._seed + 4,
            device=self._device,
            given=given,
        )
        self._pairs = [self._pairs[0], pair]
        return pair

    def _marginal_energies(self) -> tuple[Dense, list[Energy]]:
        columns = [self.tagged.columns(names) for names in self._own.values()]
        if len(columns) > 1:
            columns.append(torch.arange(self.tagged.width))
        widths: dict[str, tuple[int, ...]] = {}
        for i, column in enumerate(columns):
            widths |= shapes(f"e{i}", (len(column),), self._settings.energy_hidden)
        networks = self._networks(widths, 1)
        return networks, [Energy(networks, f"e{i}", [c]) for i, c in enumerate(columns)]

    def _conditional_energies(self, own: int) -> tuple[Dense, list[Energy]]:
        given = self.tagged.width
        networks = self._networks(shapes("e", (own, given), self._settings.energy_hidden), 3)
        columns = [torch.arange(own), torch.arange(own, own + given)]
        return networks, [Energy(networks, "e", columns)]

    def fitted(self) -> SlotFitted:
        """What the pairs have learned so far, on the CPU."""
        weights = {f"{i}.{k}": v for i, p in enumerate(self._pairs) for k, v in p.weights().items()}
        chain = Chain(self._codec, self._settings, private=self._private, seed=0)
        return chain.loaded(weights, self._pairs[-1].snapshots.history())

    def players(self, fitted: SlotFitted) -> Players:
        """The last pair's snapshots; for a chain of its own on the CPU.

        Where two pairs are, all generators draw tagged columns from the first pair as it ended.
        """
        self.loaded(fitted.weights)
        last = self._first if self._second is None else self._second
        assert last is not None
        if self.others is None:
            energies, places = self._marginal_energies()[1], self.tagged.seen_at
        else:
            energies = self._conditional_energies(self.others.width)[1]
            places = torch.cat([self.others.seen_at, self.tagged.seen_at])

        def emit(flat: Tensor, rows: int, random: torch.Generator) -> Tensor:
            torch.nn.utils.vector_to_parameters(flat, last.parameters())
            return self._emit(rows, random)

        critics = as_critics(energies, fitted.history["critics"], places)
        return Players(fitted.heads, fitted.history["generators"], emit, critics)

    def loaded(
        self, weights: dict[str, Tensor], history: dict[str, Tensor] | None = None
    ) -> SlotFitted:
        """A model with the weights of `fitted`; for a chain on the CPU."""
        for i, generator in enumerate((self._first, self._second)):
            if generator is not None:
                own = {k[2:]: v for k, v in weights.items() if k.startswith(f"{i}.")}
                generator.load_state_dict(own)
        return SlotFitted(
            Heads(self._codec),
            model="ppem",
            settings=self._settings.model_dump(),
            weights=weights,
            emit=self._emit,
            history=history,
        )

    def _emit(self, rows: int, random: torch.Generator) -> Tensor:
        """Logits over all slots: tagged columns as drawn, the others given them."""
        assert self._first is not None
        heads, latent = self.tagged.heads, self._settings.latent
        logits = self._first(torch.randn((rows, latent), generator=random))
        slots = heads.chosen(logits, uniform=torch.rand(logits.shape, generator=random))
        total = sum(len(p.places) for p in (self.tagged, self.others) if p is not None)
        out = torch.zeros((rows, total))
        out[:, self.tagged.places] = (slots - 1.0) * CERTAIN
        if self.others is not None and self._second is not None:
            z = torch.randn((rows, latent), generator=random)
            out[:, self.others.places] = self._second(z, heads.seen(slots))
        return out

    def _networks(self, widths: dict[str, tuple[int, ...]], offset: int) -> Dense:
        start = torch.Generator().manual_seed(self._seed + offset)
        return Dense(widths, generator=start, device=self._device)

    def _margin(self, steps: int) -> Margin:
        chosen = self._settings
        return Margin(
            steps=steps,
            energy_steps=chosen.energy_steps,
            fakes=chosen.fakes,
            rate=chosen.rate,
            energy_rate=chosen.energy_rate,
            clip_norm=chosen.clip_norm if self._private else math.inf,
            penalty_clip=chosen.penalty_clip,
            margin=chosen.margin,
            lipschitz=chosen.lipschitz,
            box=chosen.box,
            strength=chosen.penalty,
            temperature=chosen.temperature,
            snapshots=chosen.snapshots,
        )
