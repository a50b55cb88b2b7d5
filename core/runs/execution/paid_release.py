"""What a run releases beside its model: counts that a plan buys, and certificates; a step each."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel

from core.encoding.codec import Codec
from core.inference.measured import Measured, QuestionSums
from core.inference.questions import Statistic, check, read_words, words
from core.message import Message, ReportedError, joined
from core.models.events import Emitter, Note, Signal
from core.models.saved_model import SHIFT
from core.models.step import FitContext, State
from core.privacy.accounting.scale_search import noise_for_share
from core.privacy.plan import Budget, Phase, Plan, Protection, certificate_phase
from core.quality.report.types import ReleasedHistograms
from core.schema.column import SchemaError
from core.schema.schema import Domain

if TYPE_CHECKING:  # both need torch, and pages read through the modules that import this one
    from core.privacy.guarded import PrivateTable
    from core.privacy.mechanisms.histograms import Weight


def shown_columns(domain: Domain) -> list[str]:
    """Columns whose counts may be bought: modelled, and not tagged as hidden."""
    hidden = {name for names in domain.sensitive.values() for name in names}
    return [column.name for column in domain.modelled if column.name not in hidden]


@dataclass(frozen=True)
class PaidCounts(ABC):
    """A `Step`: counts of all columns that may be shown, or of one question, as a plan buys them.

    Attributes:
      name, title: of the phase; a question's has its text behind them.
      label, purpose: what the share and the columns are for, in refusals.
      counting: what people read while rows are counted.
      artefact: name of the one that keeps them.
      budget: of the whole plan, with ε < ∞.
      share: of it, in (0, ½].
      attempts: of the plan; the release is made once but all attempts are paid for.
      text: of the question; the phase's name holds it, so that the plan is bound to it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    label: ClassVar[str]
    purpose: ClassVar[str]
    counting: ClassVar[str]
    artefact: ClassVar[str]

    budget: Budget
    share: float
    attempts: int = 1
    text: str = ""

    @classmethod
    def bought(cls, plan: Plan) -> tuple[Self, ...]:
        """The steps that a plan holds; one of each question, else one at most."""
        names = {phase.name.partition(": "): phase.share for phase in plan.phases}
        own = [(share, text) for (name, _, text), share in names.items() if name == cls.name]
        return tuple(cls(plan.budget, share, plan.attempts, text) for share, text in own)

    @property
    def phase(self) -> str:
        """Name of the phase."""
        return f"{self.name}: {self.text}" if self.text else self.name

    @property
    def file(self) -> str:
        """Name of the artefact, which a question's text makes its own."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        return f"{digest}-{self.artefact}" if self.text else self.artefact

    @abstractmethod
    def what(self, names: Sequence[str], domain: Domain) -> str:
        """What is released of the named columns, in words."""

    @abstractmethod
    def mechanism(self, codec: Codec, names: Sequence[str], weight: Weight | None) -> Any:
        """What counts the rows; needs torch, as the fit does.

        Args:
          weight: what a record counts: as much as the shift of tagged columns keeps of such
            records, since real shares of other columns would undo it; None without a shift.
        """

    @abstractmethod
    def value(
        self, mechanism: Any, counts: list[float], noise_std: float, table: PrivateTable
    ) -> BaseModel:
        """What is kept of released counts."""

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`.

        Args:
          domain: whose columns; tagged ones are left out.

        Raises:
          ValueError: a share out of range, or every column is tagged.
        """
        if not 0.0 < self.share <= 0.5:
            raise ReportedError(
                "The {label} in 0 to 0.5, not {share:g}.", label=self.label, share=self.share
            )
        names = shown_columns(domain)
        if not names:
            raise ReportedError(
                "Every column is hidden, so there is none to {purpose}.", purpose=self.purpose
            )
        from dp_accounting.gaussian_mechanism import get_sigma_gaussian  # costs 65 MB

        whole = float(get_sigma_gaussian(self.budget.epsilon, self.budget.delta))
        asked = self.text and words(read_words(self.text, domain))
        phase = Phase(
            name=self.phase,
            title=Message("Question: {what}", what=asked) if asked else self.title,
            what=self.what(names, domain),
            share=self.share,
            noise_multiplier=noise_for_share(whole, self.share, count=self.attempts),
        )
        return (phase,)

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`; a release that was charged before a crash and lost is not made again."""
        if table.meter.runs(self.phase):
            return state
        shift: Any = state.trained.transform(SHIFT)
        weight = None if shift is None else shift.kept_share
        try:
            mechanism = self.mechanism(Codec(table.domain), shown_columns(table.domain), weight)
        except SchemaError as error:
            # of the learned domain alone, which is public
            paid = Message("A question was paid for and could not be measured.")
            context.on_event(Note(text=joined([paid, *error.args])))
            return state
        emitter = Emitter(context.on_event, obeys=(Signal.CANCEL,))
        emitter.phase(self.phase, self.counting, private=True)
        counts = table.release(self.phase, mechanism).tolist()
        noise_std = table.plan.phase(self.phase).noise_multiplier * mechanism.sensitivity
        value = self.value(mechanism, counts, noise_std, table)
        return replace(state, releases={**state.releases, self.file: value})


class ReviewHistograms(PaidCounts):
    """Histograms of real columns for people outside: the review budget.

    Where tagged columns are hidden, every record counts as much as the shift keeps of such records.
    """

    name = "review"
    title = Message("Pictures for people outside")
    label = Message("review budget must be a share")
    purpose = Message("show to people outside")
    counting = Message("Counting rows for people outside, with noise")
    artefact = "overlay.json"

    def what(self, names: Sequence[str], domain: Domain) -> str:
        """See `PaidCounts`."""
        return Message(
            "Histograms of {names} columns, all at once, with Gaussian noise.", names=len(names)
        )

    def mechanism(self, codec: Codec, names: Sequence[str], weight: Weight | None) -> Any:
        """See `PaidCounts`."""
        from core.privacy.mechanisms.histograms import Histograms  # needs torch, as the fit does

        return Histograms.of(codec, names, weight)

    def value(
        self, mechanism: Any, counts: list[float], noise_std: float, table: PrivateTable
    ) -> ReleasedHistograms:
        """See `PaidCounts`."""
        return ReleasedHistograms(
            n=table.n,
            noise_std=noise_std,
            counts=mechanism.split(counts),
            shifted=mechanism.weight is not None,
        )


class MeasureQuestion(PaidCounts):
    """The figure of one pinned question; `core.services.planning` refuses what it cannot be."""

    name = "question"
    label = Message("share for a question must be")
    counting = Message("Measuring a question, with noise")
    artefact = "question.json"

    def what(self, names: Sequence[str], domain: Domain) -> str:
        """See `PaidCounts`."""
        return Message(
            "The figure of one question: sums to which each record adds one at most, all at once, "
            "with Gaussian noise."
        )

    def mechanism(self, codec: Codec, names: Sequence[str], weight: Weight | None) -> Any:
        """See `PaidCounts`; nothing is hidden, so there are no weights."""
        question = read_words(self.text, codec.domain)
        check(question, codec.domain)
        return QuestionSums(question, codec)

    def value(
        self, mechanism: Any, counts: list[float], noise_std: float, table: PrivateTable
    ) -> Measured:
        """See `PaidCounts`."""
        asked, low, high = mechanism.question, 0.0, 1.0
        if asked.statistic is Statistic.COUNT:
            high = float(table.n)
        elif not asked.value:
            line = mechanism.codec.block(asked.column).line
            low, high = line.low, line.high
        return Measured(question=asked, low=low, high=high, noise_std=noise_std, sums=(*counts,))


@dataclass(frozen=True)
class Certify:
    """A `Step`: each tagged group's private certificate, where one is planned."""

    protection: Protection
    budget: Budget

    def phases(self, domain: Domain, n: int, scale: float) -> tuple[Phase, ...]:
        """See `Step`: one for each group; none without a certificate, or without privacy."""
        certificate, groups = self.protection.certificate, self.protection.groups
        if certificate is None or not self.budget.private:
            return ()
        return tuple(
            Phase(
                name=certificate_phase(group),
                title=Message("Certificate for “{group}”", group=group),
                what=Message(
                    "How many groups of 128 records tell the released columns {columns} from their "
                    "own, with Laplace noise.",
                    columns=", ".join(names),
                ),
                mechanism="laplace",
                share=min(0.9, certificate / self.budget.epsilon) / len(groups),
                noise_multiplier=1.0 / certificate,
            )
            for group, names in groups.items()
        )

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`; without a certificate nothing is looked at, since looking would reveal."""
        if self.protection.certificate is None:
            return state
        from core.runs.execution.lmdp_certificate import certify, modelled  # tensors

        verdicts = certify(table, modelled(state), table.plan, on_event=context.on_event)
        return replace(state, verdicts=tuple(verdicts))
