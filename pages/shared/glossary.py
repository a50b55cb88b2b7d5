"""Terms of the field, each with a plain entry, which pages keep behind a help text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.shared.language import said, to_say

TERMS = {
    "ε": to_say(
        "How much anyone may learn about one person from what is released. Lower is safer; at 0 "
        "nothing."
    ),
    "δ": to_say("The chance that the promise of ε fails altogether. Lower is safer."),
    "zero-out": to_say(
        "The way ε is counted here: it compares the table with one in which one person's record "
        "contributes nothing."
    ),
    "replace-one": to_say(
        "Another way to count: one person's record is swapped for any other, while the number of "
        "people trained on stays. The same run has a larger ε when counted so, about twice as "
        "large."
    ),
    "PLD": to_say("Privacy loss distribution: a way to add up many private steps exactly."),
    "AUROC": to_say("How well two kinds of rows are told apart: 0.5 is a coin, 1 is certainty."),
}
# scores that stand on a page's first level: their full titles name a term
PLAIN_TITLES = {
    "tstr_auroc": to_say("Learning the target"),
    "tstr_r2": to_say("Learning the target"),
    "wscore_pca": to_say("Shape in a plane"),
    "wscore_whole": to_say("Shape overall"),
    "tree_auroc": to_say("Told apart by trees"),
}
PLAIN_UNITS = {"AUROC": to_say("0.5 is a coin, 1 certainty")}


def entry(*terms: str) -> str:
    """What the terms mean, for a help text.

    >>> entry("δ")
    '**δ**: The chance that the promise of ε fails altogether. Lower is safer.'
    """
    return "  \n".join(f"**{term}**: {said(TERMS[term])}" for term in terms)


def title(score: Mapping[str, Any]) -> str:
    """A score's title without the term in it, in English as `core` has it."""
    return PLAIN_TITLES.get(score["key"], str(score["title"]))
