"""PEARL: one private embedding of the table, then a generator trained against it for free.

Private phases: one Gaussian release of the table's characteristic function at sparse random
frequencies, joint with the class where a target is named; optionally one more of the mean distance
between records, which scales those frequencies. Generator, critic, number of steps and stopping see
only these releases.

Where this departs from the paper, and why:
  * frequencies touch one or two columns each instead of all (`parts.characteristic`): same
    sensitivity, far more signal above the noise;
  * the generator emits distributions whose characteristic function is known in closed form
    (`parts.mixture`): no argmax and no relaxation between training and sampling;
  * the printed sensitivity of the pair distance assumes codes in [0, 1] while its generator works in
    [-1, 1]; ours are in [0, 1], pairs are disjoint, and the release is off by default because
    frequencies spread over five octaves make it worth less than the budget it takes.

Source: Liew, Takahashi and Ueno, "PEARL: Data Synthesis via Private Embeddings and Adversarial
Reconstruction Learning", ICLR 2022.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from core.models.synthesizer import (
    Card,
    FitCancelled,
    FitEvent,
    FitPaused,
    Observe,
    Setting,
    Wish,
    register,
)
from core.privacy.accountant import calibrate, check_budget, guarantee
from core.privacy.plan import Budget, Phase, Plan
from core.table.codec import Block, Codec, concat_codes
from core.table.schema import Domain

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from core.models.parts.characteristic import Embedding, Frequencies
    from core.models.parts.matching import Matcher
    from core.models.parts.mixture import MixtureGenerator
    from core.privacy.guarded import PrivateTable

__all__ = ["Pearl", "PearlFitted", "PearlSettings"]

EMBEDDING, DISTANCE = "embedding", "distance"
MOST_CLASSES = 20  # a target with more states is learned as an ordinary column
ONE_WAY_SHARE = 0.3  # of the squared sensitivity, to one-column frequencies
CLASS_SHARE = 0.01  # of the squared sensitivity, to the class counts
OCTAVES = (0.5, 16.0)  # spread of the frequencies, in units of 1/distance
PUBLIC_DISTANCE = 0.15  # assumed mean distance on [0, 1] when none is bought
ROWS_AT_ONCE = 8192  # sampled together
SECONDS_BETWEEN_EVENTS = 0.5
SECONDS_BETWEEN_CHECKPOINTS = 20.0
SECONDS_BETWEEN_PREVIEWS = 4.0


class PearlSettings(BaseModel):
    """Public settings; none depends on data.

    Attributes:
      steps: generator steps; more cost time, never privacy.
      frequencies: complex frequencies asked for in all (k); groups follow from it.
      batch: latents a step.
      groups_per_step: groups of frequencies compared a step.
      hidden, latent: widths of the generator.
      rate: peak learning rate of Adam.
      critic: how far the critic may re-weight, log units; 0 switches it off.
      distance_share: share of the budget for the pair distance; 0 uses a public constant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=3000, ge=10, le=200_000)
    frequencies: int = Field(default=10_000, ge=100, le=200_000)
    batch: int = Field(default=1000, ge=32, le=100_000)
    groups_per_step: int = Field(default=48, ge=1, le=10_000)
    hidden: int = Field(default=256, ge=8, le=4096)
    latent: int = Field(default=32, ge=1, le=1024)
    rate: float = Field(default=3e-3, gt=0.0, le=1.0)
    critic: float = Field(default=0.3, ge=0.0, le=2.0)
    distance_share: float = Field(default=0.0, ge=0.0, le=0.5)


def _setting(name: str, label: str, text: str, low: float, high: float) -> Setting:
    default = PearlSettings.model_fields[name].default
    return Setting(name=name, label=label, help=text, default=default, low=low, high=high)


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
        private_phases=("one release of characteristic functions",),
        soundness=(
            "Noise covers real and imaginary parts, joint with the class, under zero-out; the "
            "pair distance is re-derived for codes in [0, 1] and disjoint pairs."
        ),
        settings=(
            _setting(
                "steps", "Training steps", "More take longer and cost no privacy.", 10, 50_000
            ),
            _setting(
                "frequencies", "Frequencies", "How many numbers the fingerprint has.", 100, 1e5
            ),
            _setting("batch", "Latents a step", "Larger is smoother and slower.", 32, 10_000),
            _setting(
                "groups_per_step", "Groups a step", "Frequency groups compared a step.", 1, 500
            ),
            _setting("hidden", "Hidden width", "Width of the generator's layers.", 8, 2048),
            _setting("latent", "Latent width", "Independent directions of variation.", 1, 512),
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

        final = phases(calibrate(budget, phases))
        return Plan(
            model=self.card.id,
            n=n,
            budget=budget,
            phases=final,
            guarantee=guarantee(final, budget.delta),
            settings=chosen.model_dump(),
        )

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

        settings = PearlSettings(**plan.settings)
        codec = Codec(table.domain)
        file = folder / "pearl.pt"
        if resume and file.exists():
            state = torch.load(file, weights_only=True, map_location="cpu")
        else:
            seed = secrets.randbits(63) if seed is None else seed
            state = _release(
                table, plan, codec, settings, seed=seed, device=device, observe=observe
            )
            _keep(state, file)
        matcher = _matcher(plan, codec, settings, state, device=device)
        _train(matcher, codec, settings, state, file=file, observe=observe)
        return PearlFitted(codec, settings, matcher.generator.to("cpu"), state["shares"])

    def load(self, folder: Path) -> PearlFitted:
        """See `Synthesizer.load`."""
        return PearlFitted.load(folder)


def _phases(codec: Codec, scale: float, distance_share: float) -> tuple[Phase, ...]:
    """The private accesses at a noise scale; shares are of the composed Gaussian's 1/σ²."""
    slots = len(codec.blocks)
    embedding = Phase(
        name=EMBEDDING,
        title="Fingerprint of the table",
        what=(
            f"Sums of characteristic functions over {slots} columns and their pairs"
            + (f", for each value of '{codec.domain.target}'" if _condition(codec) else "")
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


def _condition(codec: Codec) -> Block | None:
    """The class column's block, where a target is named and has few enough states."""
    if codec.domain.target is None or len(codec.blocks) < 2:
        return None
    block = codec.block(codec.domain.target)
    few = block.number is None and len(block.states) <= MOST_CLASSES
    return block if few else None


def _mechanism(codec: Codec, frequencies: Frequencies) -> Embedding:
    """The embedding's mechanism; weights are functions of public sizes alone."""
    from core.models.parts.characteristic import Embedding, embedding_sensitivity

    block = _condition(codec)
    columns, groups = len(frequencies.slots), frequencies.groups
    pairs = columns * (columns - 1) / 2
    one_way = math.sqrt(ONE_WAY_SHARE / (1 - ONE_WAY_SHARE) * pairs / columns) if pairs else 1.0
    bare = embedding_sensitivity(columns, groups, one_way_weight=one_way, class_weight=0.0)
    return Embedding(
        frequencies,
        condition=None if block is None else block.index,
        classes=1 if block is None else len(block.states),
        one_way_weight=one_way,
        class_weight=0.0 if block is None else math.sqrt(CLASS_SHARE) * bare,
    )


def _release(
    table: PrivateTable,
    plan: Plan,
    codec: Codec,
    settings: PearlSettings,
    *,
    seed: int,
    device: str,
    observe: Observe,
) -> dict[str, Any]:
    """All private accesses of the fit, and the state that training starts from."""
    import torch

    from core.models.parts.characteristic import Frequencies, split_release

    slots = _slots(codec)
    distances = tuple([PUBLIC_DISTANCE] * len(slots))
    if any(phase.name == DISTANCE for phase in plan.phases):
        _say(observe, plan.phase(DISTANCE))
        distances = _bought_distances(table, plan, codec, slots, device)
    per_group = len(slots) * (len(slots) + 1) // 2
    frequencies = Frequencies.draw(
        slots,
        min(256, max(4, round(settings.frequencies / per_group))),
        distances=distances,
        octaves=OCTAVES,
        generator=torch.Generator().manual_seed(seed),
    )
    mechanism = _mechanism(codec, frequencies)
    _say(observe, plan.phase(EMBEDDING))

    def tick(done: int, total: int) -> None:
        data = {"step": done, "steps": total, "phase": EMBEDDING, "unit": "rows"}
        _follow(observe(FitEvent(kind="progress", data=data)), lambda: None)

    release = table.release(EMBEDDING, mechanism, device=device, tick=tick)
    target = split_release(release, mechanism, table.n)
    return {
        "seed": seed,
        "lines": list(frequencies.lines),
        "widths": list(frequencies.widths),
        "phases": list(frequencies.phases),
        "pairs": target.pairs,
        "ones": target.ones,
        "shares": target.shares,
        "matcher": None,
    }


def _bought_distances(
    table: PrivateTable, plan: Plan, codec: Codec, slots: tuple[Any, ...], device: str
) -> tuple[float, ...]:
    """Mean distances per column, released, then pulled to the public constant by their noise."""
    from core.models.parts.characteristic import PairDistance

    blocks = [s.block for s in slots if s.block.number is not None]
    numbers = [(block.index, block.number) for block in blocks]
    mechanism = PairDistance(tuple(numbers))
    total, count = table.release(DISTANCE, mechanism, device=device)
    doubt = plan.phase(DISTANCE).noise_multiplier * mechanism.sensitivity  # noise std, in pairs
    mean = (total + PUBLIC_DISTANCE * doubt) / (count.clamp_min(0.0) + doubt + 1e-9)
    bought = dict(zip((b.index for b in blocks), mean.clamp(0.02, 0.5).tolist(), strict=True))
    return tuple(bought.get(s.block.index, PUBLIC_DISTANCE) for s in slots)


def _matcher(
    plan: Plan, codec: Codec, settings: PearlSettings, state: dict[str, Any], *, device: str
) -> Matcher:
    """The training state, fresh or as it was when `state` was kept."""
    import torch

    from core.models.parts.characteristic import Frequencies, Target
    from core.models.parts.matching import Matcher, Pace

    slots = _slots(codec)
    frequencies = Frequencies(
        slots, tuple(state["lines"]), tuple(state["widths"]), tuple(state["phases"])
    )
    mechanism = _mechanism(codec, frequencies)
    noise = plan.phase(EMBEDDING).noise_multiplier * mechanism.sensitivity / plan.n
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(state["seed"])
        generator = _generator(codec, settings)
    matcher = Matcher(
        generator,
        frequencies,
        Target(state["pairs"], state["ones"], state["shares"]),
        noise_level=noise,
        one_way_weight=mechanism.one_way_weight,
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


def _slots(codec: Codec) -> tuple[Any, ...]:
    from core.models.parts.slots import column_slots

    block = _condition(codec)
    return column_slots(codec, without=None if block is None else block.column.name)


def _generator(codec: Codec, settings: PearlSettings) -> MixtureGenerator:
    from core.models.parts.mixture import MixtureGenerator

    block = _condition(codec)
    return MixtureGenerator(
        latent=settings.latent,
        classes=1 if block is None else len(block.states),
        hidden=settings.hidden,
        slots=sum(column.count for column in _slots(codec)),
    )


def _train(
    matcher: Matcher,
    codec: Codec,
    settings: PearlSettings,
    state: dict[str, Any],
    *,
    file: Path,
    observe: Observe,
) -> None:
    """Steps to the end, with events, previews and checkpoints by the clock."""

    def keep() -> None:
        _keep({**state, "matcher": matcher.state_dict()}, file)

    title = "Training the generator (touches no private data)"
    data = {"name": "training", "title": title, "private": False}
    _follow(observe(FitEvent(kind="phase", data=data)), keep)
    told = previewed = kept = time.monotonic()
    steps = matcher.pace.steps
    while matcher.step_count < steps:
        mismatch = matcher.step()
        now = time.monotonic()
        last = matcher.step_count == steps
        if now - told < SECONDS_BETWEEN_EVENTS and not last:
            continue
        told = now
        for event in _news(matcher, mismatch.tolist()):
            _follow(observe(event), keep)
        if now - previewed > SECONDS_BETWEEN_PREVIEWS:
            previewed = now
            fitted = PearlFitted(codec, settings, matcher.generator, state["shares"])
            rows = json.loads(fitted.sample(8).to_json(orient="records", date_format="iso"))
            _follow(observe(FitEvent(kind="preview", data={"rows": rows})), keep)
        if now - kept > SECONDS_BETWEEN_CHECKPOINTS:
            kept = now
            keep()
    keep()


def _news(matcher: Matcher, mismatch: list[float]) -> tuple[FitEvent, FitEvent]:
    """Progress and metrics; both are functions of releases and of the generator alone."""
    step = matcher.step_count
    floor = matcher.noise_floor
    metrics = {
        "step": step,
        "single columns": math.sqrt(mismatch[0]),
        "pairs of columns": math.sqrt(mismatch[1]),
        "noise in the fingerprint": math.sqrt(floor),
    }
    progress = {"step": step, "steps": matcher.pace.steps, "phase": "training", "unit": "steps"}
    return FitEvent(kind="progress", data=progress), FitEvent(kind="metrics", data=metrics)


def _say(observe: Observe, phase: Phase) -> None:
    data = {"name": phase.name, "title": phase.title, "private": True}
    _follow(observe(FitEvent(kind="phase", data=data)), lambda: None)


def _follow(wish: Wish, keep: Any) -> None:
    """Do as the observer wishes, keeping what was made."""
    if wish is Wish.GO_ON:
        return
    keep()
    raise FitCancelled if wish is Wish.CANCEL else FitPaused


def _keep(state: dict[str, Any], file: Path) -> None:
    """Write the checkpoint so that a crash leaves the old one or the new one, never half."""
    import torch

    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    torch.save(state, half)
    half.replace(file)


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

        from core.models.parts.slots import draw_codes

        if rows < 1:
            raise ValueError(f"At least one row must be asked for, got {rows}.")
        random = torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)
        block = _condition(self._codec)
        device = next(self._generator.parameters()).device
        was_training = self._generator.training
        self._generator.eval()  # batch norm by its running means
        parts = []
        with torch.no_grad():
            for start in range(0, rows, ROWS_AT_ONCE):
                b = min(ROWS_AT_ONCE, rows - start)
                y = torch.multinomial(self._shares, b, replacement=True, generator=random)
                z = torch.randn((b, self._generator.latent), generator=random)
                logits = self._generator(z.to(device), y.to(device))
                fixed = {} if block is None else {block.index: y}
                parts.append(
                    draw_codes(
                        self._codec, _slots(self._codec), logits, generator=random, fixed=fixed
                    )
                )
        self._generator.train(was_training)
        return self._codec.decode_codes(concat_codes(parts))

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
