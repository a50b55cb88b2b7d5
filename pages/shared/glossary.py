"""Terms of the field, each with a plain entry, which pages keep behind a help text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.shared.language import said, to_say

TERMS = {
    "ε": to_say(
        "How much anyone can learn about one person from what is released. Lower is safer; 0 "
        "reveals nothing."
    ),
    "δ": to_say("The probability that the guarantee of ε does not hold. Lower is safer."),
    "zero-out": to_say(
        "How ε is counted here: it compares the table with the same table in which one person's "
        "record contributes nothing."
    ),
    "replace-one": to_say(
        "Another way to count ε: one person's record is replaced by any other record, so that the "
        "number of people stays the same. The same run then has about twice the ε."
    ),
    "PLD": to_say("Privacy loss distribution: an exact method for adding up many private steps."),
    "AUROC": to_say(
        "How well two kinds of rows can be told apart: 0.5 is a coin toss, 1 is certainty."
    ),
}
# scores that stand on a page's first level: their full titles name a term
PLAIN_TITLES = {
    "tstr_auroc": to_say("Predicting the target"),
    "tstr_r2": to_say("Predicting the target"),
    "wscore_pca": to_say("Shape in two dimensions"),
    "wscore_whole": to_say("Overall shape"),
    "tree_auroc": to_say("Distinguishable by decision trees"),
}
PLAIN_UNITS = {"AUROC": to_say("0.5 is a coin toss, 1 certainty")}


def entry(*terms: str) -> str:
    """What the terms mean, for a help text.

    >>> entry("δ")
    '**δ**: The chance that the promise of ε fails altogether. Lower is safer.'
    """
    return "  \n".join(f"**{term}**: {said(TERMS[term])}" for term in terms)


def title(score: Mapping[str, Any]) -> str:
    """A score's title without the term in it, in English as `core` has it."""
    return PLAIN_TITLES.get(score["key"], str(score["title"]))
