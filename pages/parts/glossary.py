"""Terms of the field, each with a plain entry, which pages keep behind a help text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TERMS = {
    "ε": "How much anyone may learn about one person from what is released. Lower is safer; at 0 "
    "nothing.",
    "δ": "The chance that the promise of ε fails altogether. Lower is safer.",
    "zero-out": "The way ε is counted here: it compares the table with one in which one person's "
    "record contributes nothing.",
    "replace-one": "Another way to count: one person's record is swapped for any other. The same "
    "run has a larger ε when counted so, about twice as large.",
    "PLD": "Privacy loss distribution: a way to add up many private steps exactly.",
    "AUROC": "How well two kinds of rows are told apart: 0.5 is a coin, 1 is certainty.",
    "R²": "Share of a number's variation that a model explains: 0 is guessing, 1 is all of it.",
    "Wasserstein": "How far rows must be moved to turn one table into the other; as a score, 1 is "
    "the same table and higher is closer.",
}
# scores that stand on a page's first level: their full titles name a term
PLAIN_TITLES = {
    "tstr_auroc": "Learning the target",
    "tstr_r2": "Learning the target",
    "wscore_pca": "Shape in a plane",
    "wscore_whole": "Shape overall",
    "tree_auroc": "Told apart by trees",
}
PLAIN_UNITS = {"AUROC": "0.5 is a coin, 1 certainty"}


def entry(*terms: str) -> str:
    """What the terms mean, for a help text.

    >>> entry("δ")
    '**δ**: The chance that the promise of ε fails altogether. Lower is safer.'
    """
    return "  \n".join(f"**{term}**: {TERMS[term]}" for term in terms)


def title(score: Mapping[str, Any]) -> str:
    """A score's title without the term in it."""
    return PLAIN_TITLES.get(score["key"], str(score["title"]))
