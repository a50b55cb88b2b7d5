"""PEARL: one private embedding of the table, then a generator trained against it for free.

Private phases: one Gaussian release of the table's characteristic function at sparse random
frequencies, joint with the class where a target is named; optionally one more of the mean distance
between records, which scales those frequencies. Generator, critic, number of steps and stopping see
only these releases.

Where this departs from the paper, and why:
  * frequencies touch one or two columns each instead of all (`pearl.characteristic_function`): same
    sensitivity, far more signal above the noise;
  * the generator emits distributions whose characteristic function is known in closed form
    (`pearl.mixture_generator`): no argmax and no relaxation between training and sampling;
  * the printed sensitivity of the pair distance assumes codes in [0, 1] while its generator works
    in [-1, 1]; ours are in [0, 1], pairs are disjoint, and the release is off by default because
    frequencies spread over five octaves make it worth less than the budget it takes.

Source: Liew, Takahashi and Ueno, "PEARL: Data Synthesis via Private Embeddings and Adversarial
Reconstruction Learning", ICLR 2022.
"""

from __future__ import annotations

import json
import math
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from core.models.pearl.conditioning import DISTANCE, EMBEDDING, condition_block
from core.models.pearl.design import Design
from core.models.synthesizer import Card, Chart, Observe, Stage, register, setting_of
from core.privacy.accounting.accountant import check_budget
from core.privacy.plan import Budget, Phase, Plan
from core.privacy.planning import planned
from core.table.codec import Codec, concat_codes
from core.table.schema import Domain

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from core.models.pearl.matching import Matcher
    from core.models.pearl.mixture_generator import MixtureGenerator
    from core.privacy.guarded import PrivateTable

__all__ = ["Pearl", "PearlFitted", "PearlSettings"]

ROWS_AT_ONCE = 8192  # sampled together
LEAST_STEPS = 10  # the learning rate's schedule needs a few to rise and fall


class PearlSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      steps: generator steps, which cost time and never privacy; 0 follows the noise: past the
        point where the mismatch is all noise, more steps only learn that noise.
      frequencies: complex frequencies asked for in all (k); groups follow from it.
      batch: latents a step.
      groups_per_step: groups of frequencies compared a step.
      hidden, latent: widths of the generator.
      rate: peak learning rate of Adam.
      critic: how far the critic may re-weight, log units; 0 switches it off.
      distance_share: share of the budget for the pair distance; 0 uses a public constant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=0, ge=0, le=200_000)
    frequencies: int = Field(default=10_000, ge=100, le=200_000)
    batch: int = Field(default=1000, ge=32, le=100_000)
    groups_per_step: int = Field(default=48, ge=1, le=10_000)
    hidden: int = Field(default=256, ge=8, le=4096)
    latent: int = Field(default=32, ge=1, le=1024)
    rate: float = Field(default=3e-3, gt=0.0, le=1.0)
    critic: float = Field(default=0.3, ge=0.0, le=2.0)
    distance_share: float = Field(default=0.0, ge=0.0, le=0.5)

    @field_validator("steps")
    @classmethod
    def _enough(cls, steps: int) -> int:
        if 0 < steps < LEAST_STEPS:
            raise ValueError(f"must be 0 (automatic) or at least {LEAST_STEPS}")
        return steps


_setting = partial(setting_of, PearlSettings)


@register
class Pearl:
    """See the module."""

    card: ClassVar[Card] = Card(
        id="pearl",
        name="PEARL",
        summary=(
            "Measures the table once, privately, as a fingerprint of its columns and pairs of "
            "columns; then trains a generator on the fingerprint for as long as you like."
        ),
        good_at="Mixed tables of up to about 100 columns; quick; the first one to try.",
        weak_at="Patterns that only show when three or more columns (besides the target) are "
        "looked at together.",
        source="Liew, Takahashi, Ueno: PEARL, ICLR 2022",
        published=(
            ("Adult at (1, 1e-5), class-balanced, mean ROC AUC of ten classifiers", "0.721"),
            ("Adult at (1, 1e-5), class-balanced, mean PRC AUC of ten classifiers", "0.618"),
            ("Credit at (1, 1e-5), mean ROC AUC", "0.84"),
            ("Adult, mean L1 error over 2-way marginals", "0.71"),
        ),
        stages=(
            Stage(
                name=DISTANCE,
                title="Typical distance",
                makes="a scale of differences",
                private=True,
            ),
            Stage(
                name=EMBEDDING,
                title="Fingerprint of the table",
                makes="noisy sums over columns and pairs",
                private=True,
            ),
            Stage(name="training", title="Training", makes="a matching generator", private=False),
        ),
        charts=(
            Chart(
                title="How close the synthetic table is to what was measured",
                caption="Lower is closer. A line that reaches the noise has learned all that the "
                "measurement knows.",
                unit="mismatch",
                series=("single columns", "pairs of columns", "noise in the fingerprint"),
            ),
        ),
        soundness=(
            "Noise covers real and imaginary parts, joint with the class, under zero-out; the "
            "pair distance is re-derived for codes in [0, 1] and disjoint pairs."
        ),
        settings=(
            _setting(
                "steps",
                "Training steps",
                "0: as many as the noise deserves. They cost time, never privacy.",
                0,
                50_000,
            ),
            _setting("frequencies", "Frequencies", "Numbers of the fingerprint.", 100, 1e5),
            _setting("batch", "Latents a step", "Larger is smoother and slower.", 32, 10_000),
            _setting("hidden", "Hidden width", "Width of the generator's layers.", 8, 2048),
            _setting("rate", "Learning rate", "Peak rate of Adam.", 1e-5, 0.1),
            _setting("critic", "Critic strength", "How far frequencies are re-weighted.", 0, 2),
            _setting(
                "distance_share",
                "Budget for the pair distance",
                "Share of ε spent on scaling the frequencies; 0 uses a public constant.",
                0,
                0.5,
            ),
        ),
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        """See `Synthesizer.plan`."""
        check_budget(budget, n)
        chosen = PearlSettings(**(settings or {}))
        codec = Codec(domain)
        share = chosen.distance_share if domain.numeric else 0.0

        def phases(scale: float) -> tuple[Phase, ...]:
            return _phases(codec, scale, share)

        plan = planned(self.card.id, n, budget, phases, chosen.model_dump())
        if chosen.steps:
            return plan
        design = Design.of(codec, chosen.frequencies)
        noise = design.noise(plan.phase(EMBEDDING).noise_multiplier, n)
        return plan.model_copy(update={"settings": plan.settings | {"steps": _steps(noise)}})

    def fit(
        self,
        table: PrivateTable,
        plan: Plan,
        *,
        observe: Observe,
        folder: Path,
        seed: int | None = None,
        device: str = "cpu",
        resume: bool = False,
    ) -> PearlFitted:
        """See `Synthesizer.fit`."""
        import torch

        from core.models.pearl.private_embedding import take_fingerprint
        from core.models.shared.training_loop import Loop, keep_checkpoint, run_loop

        settings = PearlSettings(**plan.settings)
        codec = Codec(table.domain)
        file = folder / "pearl.pt"
        if resume and file.exists():
            state = torch.load(file, weights_only=True, map_location="cpu")
        else:
            state = take_fingerprint(
                table,
                codec,
                frequencies=settings.frequencies,
                seed=secrets.randbits(62) if seed is None else seed,
                device=device,
                observe=observe,
            )
            keep_checkpoint(state, file)
        matcher = _matcher(codec, settings, state, device=device)
        fitted = PearlFitted(codec, settings, matcher.generator, state["shares"])
        loop = Loop(
            name="training",
            title="Training the generator (touches no private data)",
            start=matcher.step_count,
            steps=settings.steps,
            step=matcher.step,
            metrics=matcher.metrics,
            preview=fitted.preview,
            keep=lambda: keep_checkpoint({**state, "matcher": matcher.state_dict()}, file),
        )
        run_loop(loop, observe)
        matcher.generator.to("cpu")
        return fitted

    def load(self, folder: Path) -> PearlFitted:
        """See `Synthesizer.load`."""
        return PearlFitted.load(folder)


def _steps(noise: float) -> int:
    """Steps before a generator begins to learn the fingerprint's noise; `noise` as in `Design`.

    >>> [_steps(noise) for noise in (0.5, 0.1, 0.018, 0.0)]
    [150, 540, 3000, 4000]
    """
    fewest, most, per_noise = 150, 4000, 54.0
    return int(min(most, max(fewest, per_noise / max(noise, 1e-9))))


def _phases(codec: Codec, scale: float, distance_share: float) -> tuple[Phase, ...]:
    """The private accesses at a noise scale; shares are of the composed Gaussian's 1/σ²."""
    slots = len(codec.blocks)
    embedding = Phase(
        name=EMBEDDING,
        title="Fingerprint of the table",
        what=(
            f"Sums of characteristic functions over {slots} columns and their pairs"
            + (f", for each value of '{codec.domain.target}'" if condition_block(codec) else "")
            + ", with Gaussian noise on every number."
        ),
        share=1.0 - distance_share,
        noise_multiplier=scale / math.sqrt(1.0 - distance_share),
    )
    if not distance_share:
        return (embedding,)
    distance = Phase(
        name=DISTANCE,
        title="Typical distance of two records",
        what="Mean distance of random pairs of records, per numeric column, with Gaussian noise.",
        share=distance_share,
        noise_multiplier=scale / math.sqrt(distance_share),
    )
    return (distance, embedding)


def _matcher(
    codec: Codec, settings: PearlSettings, state: dict[str, Any], *, device: str
) -> Matcher:
    """The training state, fresh or as it was when `state` was kept."""
    import torch

    from core.models.pearl.matching import Matcher, Pace
    from core.models.pearl.private_embedding import released, target_of

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(state["seed"])
        generator = _generator(codec, settings)
    matcher = Matcher(
        generator,
        released(codec, state),
        target_of(state),
        noise_level=state["noise_level"],
        one_way_weight=state["one_way_weight"],
        critic_strength=settings.critic,
        pace=Pace(
            steps=settings.steps,
            batch=settings.batch,
            groups=settings.groups_per_step,
            rate=settings.rate,
            critic_rate=settings.rate,
        ),
        seed=state["seed"] + 1,
        device=device,
    )
    if state["matcher"] is not None:
        matcher.load_state_dict(state["matcher"])
    return matcher


def _generator(codec: Codec, settings: PearlSettings) -> MixtureGenerator:
    from core.models.pearl.mixture_generator import MixtureGenerator
    from core.models.pearl.private_embedding import unconditional

    block = condition_block(codec)
    return MixtureGenerator(
        latent=settings.latent,
        classes=1 if block is None else len(block.states),
        hidden=settings.hidden,
        slots=sum(column.count for column in unconditional(codec)),
    )


class PearlFitted:
    """A trained generator with the released class shares; sampling touches no private data.

    Attributes:
      domain: the declared domain it writes.
    """

    def __init__(
        self,
        codec: Codec,
        settings: PearlSettings,
        generator: MixtureGenerator,
        shares: Tensor,
    ):
        self.domain = codec.domain
        self._codec = codec
        self._settings = settings
        self._generator = generator
        self._shares = shares.cpu()

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """See `Fitted.sample`."""
        import torch

        from core.models.pearl.private_embedding import unconditional
        from core.models.shared.column_bins import draw_codes

        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        block = condition_block(self._codec)
        device = next(self._generator.parameters()).device
        was_training = self._generator.training
        self._generator.eval()  # batch norm by its running means
        slots, parts = unconditional(self._codec), []
        with torch.no_grad():
            for start in range(0, rows, ROWS_AT_ONCE):
                b = min(ROWS_AT_ONCE, rows - start)
                y = torch.multinomial(self._shares, b, replacement=True, generator=random)
                z = torch.randn((b, self._generator.latent), generator=random)
                logits = self._generator(z.to(device), y.to(device))
                fixed = {} if block is None else {block.index: y}
                parts.append(draw_codes(self._codec, slots, logits, generator=random, fixed=fixed))
        self._generator.train(was_training)
        return self._codec.decode_codes(concat_codes(parts))

    def preview(self, rows: int = 8) -> list[dict[str, Any]]:
        """A few synthetic records with JSON values, for people to watch."""
        text = self.sample(rows).to_json(orient="records", date_format="iso")
        records: list[dict[str, Any]] = json.loads(text)
        return records

    def save(self, folder: Path) -> None:
        """See `Fitted.save`: weights.safetensors and pearl.json."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v.contiguous() for k, v in self._generator.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")
        text = {
            "model": Pearl.card.id,
            "domain": self.domain.model_dump(mode="json"),
            "settings": self._settings.model_dump(),
            "shares": self._shares.tolist(),
        }
        (folder / "pearl.json").write_text(json.dumps(text, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> PearlFitted:
        """The model `save` wrote."""
        import torch
        from safetensors.torch import load_file

        text = json.loads((folder / "pearl.json").read_text(encoding="utf-8"))
        codec = Codec(Domain.model_validate(text["domain"]))
        settings = PearlSettings(**text["settings"])
        generator = _generator(codec, settings)
        generator.load_state_dict(load_file(folder / "weights.safetensors"))
        return cls(codec, settings, generator, torch.tensor(text["shares"]))
