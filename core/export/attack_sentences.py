"""What attacks on a run found, in sentences: what worked and how well, what may have been missed.

The page and the file say the same, because both take it from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.language.catalogue import Language

__all__ = ["STANDINGS", "Exposure", "Grade", "Standing", "exposure", "standing"]

Attacks = Sequence[Mapping[str, Any]]  # `core.quality.report.types.Attack` as dicts
Standing = Literal["chance", "edge", "works"]
Grade = Literal["exposed", "works", "edge", "safe"]

EDGE = 0.05  # as clear a lead as one table in twenty without a leak shows: worth a second look
EXPOSED = 0.10  # of ten people of the table one more is guessed right than of ten strangers
STANDINGS: dict[Standing, str] = {
    "chance": "no better than without",
    "edge": "at the edge of chance",
    "works": "works",
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
    text: str


def exposure(tried: Attacks, language: Language) -> Exposure:
    """What attacks found, where at least one was tried."""
    say, n = language.say, len(tried)
    working = [attack for attack in tried if standing(attack) == "works"]
    edge = [attack for attack in tried if standing(attack) == "edge"]
    if working:
        text = say(
            "Works better on people of the table than on strangers: {attacks}. {n} attacks were "
            "tried; of 100 releases without a leak, at most one shows this.",
            attacks=_sizes(working, language),
            n=n,
        )
        grave = any(
            attack["key"] == "copies" or attack["value"] - attack["baseline"] >= EXPOSED
            for attack in working
        )
        return Exposure("exposed" if grave else "works", text)
    if edge:
        text = say(
            "At the edge of chance: {attacks}. {n} attacks were tried; {share:.1%} of releases "
            "without a leak show as much, so this may be chance or a small leak.",
            attacks=_sizes(edge, language),
            n=n,
            share=min(attack["p"] for attack in edge),
        )
        return Exposure("edge", f"{text} {_unseen(tried, language)}")
    text = say("None of {n} attacks works better on people of the table than on strangers.", n=n)
    return Exposure("safe", f"{text} {_unseen(tried, language)}")


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


def _sizes(attacks: Attacks, language: Language) -> str:
    """Attacks, each with what it reached and what it would have reached without a leak."""
    named = []
    for attack in attacks:
        title = language.said(attack["title"])  # lower case within a sentence of English alone
        named.append(
            language.say(
                "{attack} ({value:.1%}, where {baseline:.1%} is expected without a leak)",
                attack=title[:1].lower() + title[1:] if language.code == "en" else title,
                value=attack["value"],
                baseline=attack["baseline"],
            )
        )
    return ", ".join(named)


def _unseen(tried: Attacks, language: Language) -> str:
    """How small a leak must be to stay unseen: few strangers see little, and that is no comfort."""
    rows = min(attack["records"] for attack in tried)
    strangers = min(attack["strangers"] for attack in tried)
    needed = [a["lead_needed"] for a in tried if a["lead_needed"] is not None]
    if not needed:
        return language.say(
            "Tried on {rows:,} rows of the table and {strangers:,} of strangers, too few or too "
            "much alike to show a leak.",
            rows=rows,
            strangers=strangers,
        )
    return language.say(
        "Tried on {rows:,} rows of the table and {strangers:,} of strangers: a lead below "
        "{share:.1%} may not show.",
        rows=rows,
        strangers=strangers,
        share=max(needed),
    )
