"""What was spent: every sentence on it is made here, from the ledger and the state of runs.

Pages, command line and workers say these sentences and none of their own, so that what one of them
says of a run that is just starting is what the ledger holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from core.message import Message, joined, plural
from core.privacy.ledger.entries import Entry, Left
from core.privacy.ledger.units import mixed_units, units_of
from core.privacy.plan import Guarantee, Plan
from core.runs.accounts.account import charges, debits_of
from core.runs.accounts.learned_earlier import noted_earlier
from core.runs.events import State
from core.runs.records import RunRecord
from core.runs.storage.store import RunStore
from core.schema.column import Learned
from core.schema.rounding_up import round_up
from core.schema.schema import Schema

# -- the ε of a run -----------------------------------------------------------------------------


def claim_of(run: RunRecord) -> Guarantee:
    """What is claimed of a run, or would be: with what its domain was learned for.

    It is the certificate's claim, and so the only ε that a list of runs, a comparison or a file's
    name may say.
    """
    return run.guarantee or promised_claim(run.plan, run.schema)


def promised_claim(plan: Plan, schema: Schema) -> Guarantee:
    """What a run of a plan will claim if all of it runs."""
    return with_earlier_added(plan.guarantee, noted_earlier(schema))


def with_earlier_added(claim: Guarantee, earlier: Sequence[Learned]) -> Guarantee:
    """The claim for a table and what earlier runs learned of its domain together, by adding up.

    Args:
      claim: of what ran, or of a plan.
      earlier: what its domain was learned with.
    """
    if not earlier or not claim.private:
        return claim
    epsilon = math.fsum([claim.epsilon, *(one.epsilon for one in earlier)])
    delta = math.fsum([claim.delta, *(one.delta for one in earlier)])
    entries = ", ".join(one.entry for one in earlier)
    own, before = round_up(claim.epsilon, ".4g"), round_up(epsilon - claim.epsilon, ".4g")
    words = Message(
        "ε {epsilon:.4g} and δ {delta:.3g} are sums: ε {own:.4g} of this run and ε {before:.4g} of "
        "bounds, lists and mappings that an earlier run learned (ledger entry {entries}).",
        epsilon=round_up(epsilon, ".4g"),
        delta=round_up(delta, ".3g"),
        own=own,
        before=before,
        entries=entries,
    )
    return claim.model_copy(
        update={
            "epsilon": epsilon,
            "epsilon_replace": math.fsum(
                [claim.epsilon_replace, *(one.epsilon_replace for one in earlier)]
            ),
            "delta": delta,
            "method": Message(
                "{method}, added to what was learned earlier", method=joined([claim.method])
            ),
            "conditions": (*claim.conditions, words),
        }
    )


def epsilon_text(claim: Guarantee) -> str:
    """A claim's ε as the certificate prints it, never less than was proven; "inf" without one.

    >>> epsilon_text(Guarantee(epsilon=1.49991, epsilon_replace=3, delta=1e-6, method=""))
    '1.5'
    """
    return f"{round_up(claim.epsilon, '.4g'):.4g}" if claim.private else "inf"


# -- what a run has spent -----------------------------------------------------------------------


@dataclass(frozen=True)
class RunSpending:
    """What the ledger holds of one run.

    Attributes:
      entries: its debits, oldest first: one, and one more for each new start.
      starting: whether it runs and its debit is not there yet, so that it may come any moment.
    """

    entries: tuple[Entry, ...]
    starting: bool

    @property
    def times(self) -> int:
        """How often the ledger was charged."""
        return len(self.entries)

    @property
    def sentence(self) -> Message:
        """What was spent on the run, for whoever looks at it now."""
        if not self.entries:
            if self.starting:
                return Message("The run is starting: the ledger is being charged for it now.")
            return Message("Nothing was spent on this run yet.")
        private = [entry for entry in self.entries if entry.private]
        if not private:
            return Message("The ledger holds it as a release without differential privacy.")
        return plural(
            len(private),
            "The ledger was charged ε {epsilon:.4g} for it.",
            "The ledger was charged ε {epsilon:.4g} for it {n} times.",
            epsilon=round_up(private[-1].limit, ".4g"),
        )


def run_spending(entries: Iterable[Entry], run: RunRecord) -> RunSpending:
    """What the ledger holds of a run, whatever the run itself has noted."""
    own = debits_of(entries, run)
    return RunSpending(own, starting=run.state is State.RUNNING and not own)


def kept_spent(store: RunStore, run: RunRecord) -> Message:
    """The end of a sentence on a run that stopped, was paused or ended."""
    if charges(store, run):
        return Message("What it spent stays spent.")
    return Message("Nothing was spent on this run.")


# -- what an account has spent ------------------------------------------------------------------


@dataclass(frozen=True)
class AccountSpending:
    """What the ledger holds about people, and which runs have not paid yet.

    Attributes:
      without: releases without differential privacy.
      waiting: runs that have not paid yet and may.
    """

    releases: tuple[Entry, ...]
    without: tuple[Entry, ...]
    waiting: tuple[RunRecord, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was paid for and released about these people, a sentence each."""
        return (*self._paid(), *self._unpaid())

    def _unpaid(self) -> Iterator[Message]:
        if self.without:
            yield plural(
                len(self.without),
                "1 release about these people without differential privacy, which no ε covers.",
                "{n} releases about these people without differential privacy, which no ε covers.",
            )
        waiting = sum(run.state is not State.RUNNING for run in self.waiting)
        if waiting < len(self.waiting):
            yield Message("A run is starting: the ledger is being charged for it now.")
        if waiting:
            yield plural(
                waiting,
                "1 run is waiting and has not paid yet.",
                "{n} runs are waiting and have not paid yet.",
            )

    def _paid(self) -> Iterator[str]:
        if not (self.releases or self.without):
            yield Message("Nothing has been spent or released about these people yet.")
        mixed = mixed_units(units_of(self.releases))
        if mixed is not None:
            yield mixed
        elif self.releases:
            yield plural(
                len(self.releases),
                "The ledger was charged for 1 run about these people: ε {epsilon:.4g}.",
                "The ledger was charged for {n} runs about these people: ε {epsilon:.4g} in all.",
                epsilon=_sum(self.releases),
            )


def _sum(entries: Iterable[Entry]) -> float:
    return round_up(math.fsum(entry.limit for entry in entries), ".4g")


def account_spending(entries: Iterable[Entry], runs: Iterable[RunRecord]) -> AccountSpending:
    """What was spent on people.

    Args:
      runs: about these people, in any state.
    """
    paid = [entry for entry in entries if entry.kind == "release"]
    may_pay = [
        run
        for run in runs
        if run.state in (State.QUEUED, State.RUNNING) and not run_spending(paid, run).times
    ]
    return AccountSpending(
        releases=tuple(e for e in paid if e.private),
        without=tuple(e for e in paid if not e.private),
        waiting=tuple(may_pay),
    )


# -- what a limit has left ----------------------------------------------------------------------


def share_of(left: Left, entry: Entry) -> float:
    """The part of an account's limit that a release takes, in [0, 1]; these parts add up.

    Args:
      entry: a release of it; without privacy it takes nothing, and no limit holds for it.
    """
    if entry.kind != "release" or not entry.private or left.capacity <= 0.0:
        return 0.0
    return min(1.0, (entry.limit if left.filter == "sum" else entry.rho) / left.capacity)


def share_used(left: Left) -> float:
    """The part of a limit that is used, rounded up to a ten-thousandth, in [0, 1]."""
    return shown_share(1.0 - left.share)


def shown_share(share: float) -> float:
    """A part of a limit as it is shown everywhere, rounded up to a ten-thousandth."""
    return min(1.0, math.ceil(10_000.0 * share - 1e-6) / 10_000.0)


def left_words(left: Left, delta: float) -> tuple[str, ...]:
    """How much of a limit is used, and what could still be released; a sentence each."""
    mixed = mixed_units(left.units)
    if mixed is not None:
        return (mixed,)
    used = Message(
        "{share:.2%} of the limit of ε {limit:g} is used.", share=share_used(left), limit=left.limit
    )
    most = left.epsilon(delta)
    could = Message("One more release could spend about ε {epsilon:.2f}.", epsilon=most)
    if most < 0.005:
        could = Message("Nothing is left for another release.")
    if left.filter == "sum" or not left.releases:
        return used, could
    return (
        used,
        could,
        Message(
            "The ε of several releases together is less than their sum, so the limit is counted "
            "in shares, which do add up."
        ),
    )
