"""What Opacus's accountants say of a run's ε, as its certificate has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.privacy.accounting.second_opinion import Comparison, SecondOpinion, second_opinion
from core.privacy.plan import Phase
from core.runs.accounts.purchases import PurchaseRecord
from core.schema.rounding_up import round_up

__all__ = ["opinion_of_opacus"]


def opinion_of_opacus(
    phases: Sequence[Phase],
    delta: float,
    *,
    rows: int = 1,
    bought: Sequence[PurchaseRecord] = (),
) -> dict[str, Any]:
    """ε as Opacus's accountants count it, beside the claim and never in its place; JSON-safe.

    Args:
      phases: that the claim is made of.
      rows: records that count as one, see `Plan.rows_of_one`.
      bought: what the claim adds to the phases.

    Returns:
      Both ε by phase and together, what is not covered and why, "agrees" (None where Opacus has
      no figure) and all of this in a sentence, "statement".
    """
    try:
        found = second_opinion(phases, delta, rows=rows)
    except Exception as error:  # whatever it is, the run has been paid for and must not end with it
        return {
            "agrees": None,
            "statement": f"Opacus's accountants failed ({type(error).__name__}), so there is no "
            "second opinion on ε.",
        }
    earlier = {f"purchase {one.entry}": "paid for before this run" for one in bought}
    return {
        "accountants": f"RDP and PRV of {found.library}",
        "relation": "Opacus counts adding or removing one record. For the phases that it covers "
        "this compares the same distributions as zero-out. It has no replace-one.",
        "delta": delta,
        "phases": [_compared(one) for one in found.phases],
        "together": None if found.together is None else _compared(found.together),
        "not_covered": found.not_covered | earlier,
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
        return (
            "Opacus's accountants cannot express any phase of this run, so there is no second "
            "opinion on ε."
        )
    if found.differing:
        figures = "; ".join(
            f"{', '.join(one.phases)}: {round_up(one.epsilon, '.4g'):.4g} here, between "
            f"{one.lowest:.4g} and {round_up(one.highest, '.4g'):.4g} there"
            for one in found.differing
        )
        return (
            f"Two accountants disagree on ε by more than their numerical errors explain: Facsimile "
            f"and {found.library} ({figures}). One of them is wrong. Do not rely on ε until you "
            "know which."
        )
    one = found.together
    return (
        f"{found.library} counts ε between {one.lowest:.4g} and "
        f"{round_up(one.highest, '.4g'):.4g} for {len(found.phases)} of {phases} phases; Facsimile "
        f"counts {round_up(one.epsilon, '.4g'):.4g} for them, which agrees."
    )
