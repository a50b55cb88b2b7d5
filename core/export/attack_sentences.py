"""What attacks on a run found, in sentences: what worked and how well, what may have been missed.

The page and the file say the same, because both take it from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.message import Message, joined, plural

Attacks = Sequence[Mapping[str, Any]]  # `core.quality.report.types.Attack` as dicts
Standing = Literal["chance", "edge", "works"]
Grade = Literal["exposed", "works", "edge", "safe"]

EDGE = 0.05  # as clear a lead as one table in twenty without a leak shows: worth a second look
EXPOSED = 0.10  # of ten people of the table one more is guessed right than of ten strangers
STANDINGS: dict[Standing, Message] = {
    "chance": Message("no better than the baseline"),
    "edge": Message("at the edge of chance"),
    "works": Message("works"),
}


@dataclass(frozen=True)
class Exposure:
    """What a run's attacks found together.

    Attributes:
      grade: "exposed": rows of the table were copied, or an attack that works is a tenth better on
        the table; "works": an attack works, by less than that; "edge": it may be chance; "safe":
        none works.
      text: for people, with the size of what was found.
    """

    grade: Grade
    text: Message


def exposure(tried: Attacks) -> Exposure:
    """What attacks found, where at least one was tried."""
    n = len(tried)
    working = [attack for attack in tried if standing(attack) == "works"]
    edge = [attack for attack in tried if standing(attack) == "edge"]
    if working:
        text = plural(
            n,
            "Works better on people in the table than on strangers: {attacks}. At most 1 of 100 "
            "releases without a leak would show this.",
            "Works better on people in the table than on strangers: {attacks}. {n} attacks were "
            "tried; at most 1 of 100 releases without a leak would show this.",
            attacks=_sizes(working),
        )
        grave = any(
            attack["key"] == "copies" or attack["value"] - attack["baseline"] >= EXPOSED
            for attack in working
        )
        return Exposure("exposed" if grave else "works", text)
    if edge:
        text = Message(
            "At the edge of chance: {attacks}. Attacks tried: {n}. {share:.1%} of releases without "
            "a leak show as much, so this may be chance or a small leak.",
            attacks=_sizes(edge),
            n=n,
            share=min(attack["p"] for attack in edge),
        )
        return Exposure("edge", joined([text, _unseen(tried)]))
    text = plural(
        n,
        "The attack that was tried works no better on people in the table than on strangers.",
        "None of {n} attacks works better on people in the table than on strangers.",
    )
    return Exposure("safe", joined([text, _unseen(tried)]))


def standing(attack: Mapping[str, Any]) -> Standing:
    """How sure it is that an attack works, in three steps.

    Args:
      attack: `core.quality.report.types.Attack` as a dict.

    >>> [standing({"p": p, "exposed": p <= 0.01}) for p in (0.001, 0.01, 0.02, 0.05, 0.06)]
    ['works', 'works', 'edge', 'edge', 'chance']
    """
    if attack["exposed"]:
        return "works"
    return "edge" if attack["p"] <= EDGE else "chance"


def _sizes(attacks: Attacks) -> Message:
    """Attacks, each with what it reached and what it would have reached without a leak."""
    return joined(
        [
            Message(
                "“{attack}” ({value:.1%}; {baseline:.1%} is expected without a leak)",
                attack=joined([attack["title"]]),
                value=attack["value"],
                baseline=attack["baseline"],
            )
            for attack in attacks
        ],
        ", ",
    )


def _unseen(tried: Attacks) -> Message:
    """How small a leak must be to stay unseen: few strangers see little, and that is no comfort."""
    rows = min(attack["records"] for attack in tried)
    strangers = min(attack["strangers"] for attack in tried)
    needed = [a["lead_needed"] for a in tried if a["lead_needed"] is not None]
    if not needed:
        return Message(
            "Tried on {rows:,} rows of the table and {strangers:,} rows of strangers, which are "
            "too few or too similar to show a leak.",
            rows=rows,
            strangers=strangers,
        )
    return Message(
        "Tried on {rows:,} rows of the table and {strangers:,} rows of strangers. A difference "
        "below {share:.1%} may go unnoticed.",
        rows=rows,
        strangers=strangers,
        share=max(needed),
    )
