"""What Opacus's accountants say of a run's ε, as its certificate has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.message import Message, joined
from core.privacy.accounting.second_opinion import Comparison, SecondOpinion, second_opinion
from core.privacy.plan import Phase
from core.schema.column import Learned
from core.schema.rounding_up import round_up


def opinion_of_opacus(
    phases: Sequence[Phase], delta: float, *, rows: int = 1, earlier: Sequence[Learned] = ()
) -> dict[str, Any]:
    """ε as Opacus's accountants count it, beside the claim and never in its place; JSON-safe.

    Args:
      rows: records that count as one, see `Plan.rows_of_one`.
      earlier: what the claim adds to the phases.

    Returns:
      Both ε by phase and together, what is not covered and why, "agrees" (None where Opacus has
      no figure) and all of this in a sentence, "statement".
    """
    try:
        found = second_opinion(phases, delta, rows=rows)
    except Exception as error:  # whatever it is, the run has been paid for and must not end with it
        return {
            "agrees": None,
            "statement": Message(
                "Opacus's accountants failed ({error}), so there is no second opinion on ε.",
                error=type(error).__name__,
            ),
        }
    before = {f"ledger entry {one.entry}": Message("learned in an earlier run") for one in earlier}
    return {
        "accountants": Message("RDP and PRV of {library}", library=found.library),
        "relation": Message(
            "Opacus counts adding or removing one record. For the phases that it covers, this "
            "compares the same distributions as zero-out. It has no replace-one."
        ),
        "delta": delta,
        "phases": [_compared(one) for one in found.phases],
        "together": None if found.together is None else _compared(found.together),
        "not_covered": found.not_covered | before,
        "agrees": None if found.together is None else not found.differing,
        "statement": _opinion_words(found, len(phases)),
    }


def _compared(one: Comparison) -> dict[str, Any]:
    numbers = {
        "epsilon": one.epsilon,
        "opacus_lowest": one.lowest,
        "opacus_highest": one.highest,
        "opacus_rdp": one.rdp,
    }
    finite = {name: x if math.isfinite(x) else None for name, x in numbers.items()}
    return {"phases": list(one.phases), **finite, "agrees": one.agrees}


def _opinion_words(found: SecondOpinion, phases: int) -> str:
    """What the comparison came to, in plain words."""
    if found.together is None:
        return Message(
            "Opacus's accountants do not cover any phase of this run, so there is no second "
            "opinion on ε."
        )
    if found.differing:
        return Message(
            "Facsimile and {library} disagree on ε by more than their numerical errors explain "
            "({figures}). One of them is wrong. Do not rely on ε until you know which.",
            library=found.library,
            figures=joined(map(_difference, found.differing), "; "),
        )
    one = found.together
    return Message(
        "For {covered} of {n} phases, {library} finds an ε between {lowest:.4g} and {highest:.4g}; "
        "Facsimile finds {epsilon:.4g}, which agrees.",
        covered=len(found.phases),
        n=phases,
        library=found.library,
        lowest=one.lowest,
        highest=round_up(one.highest, ".4g"),
        epsilon=round_up(one.epsilon, ".4g"),
    )


def _difference(one: Comparison) -> Message:
    """Both accountants' ε of some phases."""
    return Message(
        "{phases}: {epsilon:.4g} here, between {lowest:.4g} and {highest:.4g} there",
        phases=", ".join(one.phases),
        epsilon=round_up(one.epsilon, ".4g"),
        lowest=one.lowest,
        highest=round_up(one.highest, ".4g"),
    )
