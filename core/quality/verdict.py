"""What a synthetic table is fit for, by stated limits and what a report measured.

Inside and outside reports go through the same limits; an outside report says what of them was not
measured, and nothing in its verdict comes from a real row that ε does not cover.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.message import Message, joined, to_say
from core.schema.column import Kind
from core.schema.coverage import ColumnCoverage, coverage
from core.schema.schema import Schema

Report = Mapping[str, Any]
Use = Literal["fit", "care", "unfit", "unmeasured"]

CLOSE, FAR = 0.05, 0.10  # distance beyond that of another sample of real rows: fit, not fit
LEARNT, HARDLY = 0.9, 0.7  # of what real rows teach above guessing: fit, not fit
STRONG, WEAKER = 0.2, 0.15  # an association worth keeping, and how much of it may be lost
LOST = 0.1  # of the strong relationships, from which on cross tables need care; half: not fit
CONTRADICTING = 0.01  # of the rows, from which on single rows need care; from `FAR` on: not fit
NAMED = 3  # columns that a use names
RULES = to_say("single rows ({share:.0%} break rules of the real table)")
PAIRS = to_say("single rows ({share:.0%} contradict themselves)")


@dataclass(frozen=True)
class Verdict:
    """Uses by how far the table carries them, each a few words within a sentence.

    Attributes:
      people: what stands between the table and its people.
      exposed: whether an attack on them worked.
    """

    uses: dict[Use, tuple[Message, ...]]
    people: Message
    exposed: bool


def verdict(report: Report, schema: Schema, *, private: bool, hidden: Sequence[str]) -> Verdict:
    """The verdict on a run's table, as far as this report may tell.

    Args:
      report: `Report.model_dump()`, of either view.
      schema: that the run was trained with.
      private: whether the run has differential privacy.
      hidden: columns whose distribution was hidden on purpose.
    """
    uses: dict[Use, list[Message]] = {"fit": [], "care": [], "unfit": [], "unmeasured": []}
    for use, words in (*_measured(report, hidden), *_lost(schema, hidden)):
        uses[use].append(words)
    exposed = any(attack["exposed"] for attack in report["attacks"])
    people = Message("not protected, since this run has no differential privacy")
    if exposed and private:
        people = Message(
            "protected within what ε allows, though an attack works better on them than on "
            "strangers: see Exposure"
        )
    elif exposed:
        people = Message("an attack works better on them than on strangers: see Exposure")
    elif private:
        people = Message("protected within what ε allows")
    return Verdict({use: tuple(words) for use, words in uses.items()}, people, exposed)


def _measured(report: Report, hidden: Sequence[str]) -> Iterator[tuple[Use, Message]]:
    scores = {s["key"]: s for s in report["scores"] if s["value"] is not None}
    one, two = (_beyond(scores.get(key)) for key in ("tvd_1way", "tvd_2way"))
    compared = {n: p for n, p in report["columns"].items() if p["tvd"] is not None}
    compared = {name: picture for name, picture in compared.items() if name not in hidden}
    if far := list(far_columns(compared, report)):
        yield "unfit", Message("shares of {columns}", columns=_listed(far))
    if near := len(compared) - len(far) or not far:
        shares: Message = Message("shares of single columns")
        if far:
            shares = Message("shares of {near} of {n} columns", near=near, n=len(compared))
        yield "unmeasured" if one is None or not compared else _graded(one, CLOSE, FAR), shares
    tables = Message("cross tables")
    if two is None:
        yield "unmeasured", tables
    else:
        weaker, strong = _weaker(report["associations"], hidden)
        if weaker:
            tables = Message(
                "cross tables ({weaker} of {n} strong relationships are weaker)",
                weaker=weaker,
                n=strong,
            )
        lost = weaker / strong if strong else 0.0
        yield max(_graded(two, CLOSE, FAR), _graded(lost, LOST, 0.5), key=_ORDER.index), tables
    for key, guess in (("tstr_auroc", 0.5), ("tstr_r2", 0.0)):
        score = scores.get(key)
        if score is not None and score["ceiling"] is not None and score["ceiling"] > guess + CLOSE:
            part = (score["value"] - guess) / (score["ceiling"] - guess)
            model = Message("models of {target}", target=report["target"])
            yield _graded(1.0 - part, 1.0 - LEARNT, 1.0 - HARDLY), model
    yield from _groups(report["groupings"])
    if report["view"] == "outside" and report["target"] is None:
        yield "unmeasured", Message("predictions")
    broken, contradicting = (
        scores[key]["value"] if key in scores else 0.0
        for key in ("impossible_rows", "inconsistent_rows")
    )
    share = max(broken, contradicting)
    if share >= CONTRADICTING:
        words = Message(RULES if broken > contradicting else PAIRS, share=share)
        yield "care" if share <= FAR else "unfit", words


def far_columns(pictures: Mapping[str, Any], report: Report) -> dict[str, float]:
    """Columns whose shares differ clearly from the real ones: their distances, largest first.

    Args:
      pictures: of columns whose distance is known, by name.
    """
    distances = {name: distance(picture) for name, picture in pictures.items()}
    far = [n for n, one in pictures.items() if distances[n] - _sampling(one, report) > FAR]
    return {name: distances[name] for name in sorted(far, key=lambda n: -distances[n])}


def distance(picture: Mapping[str, Any]) -> float:
    """A column's distance, less what the noise on its real shares would show by itself."""
    return max(0.0, float(picture["tvd"]) - noise_alone(picture))


def noise_alone(picture: Mapping[str, Any]) -> float:
    """The distance that the noise on real shares would show between equal columns."""
    if not picture["noise"]:
        return 0.0
    bins = len(picture["real"]) + bool(picture["missing_real"])
    # half the sum over bins of E|N|, N normal, whose 95 % interval is ± noise
    return 0.5 * bins * float(picture["noise"]) / 1.96 * math.sqrt(2.0 / math.pi)


def _sampling(picture: Mapping[str, Any], report: Report) -> float:
    """The distance that two draws of so many rows from the same column show in the mean."""
    real, synthetic = report["rows_real"], report["rows_synthetic"]
    missing = picture["missing_real"] or 0.0, picture["missing_synthetic"]
    sides = zip((*picture["real"], missing[0]), (*picture["synthetic"], missing[1]), strict=True)
    pooled = [(a * real + b * synthetic) / (real + synthetic) for a, b in sides]
    spread = sum(math.sqrt(max(0.0, share * (1.0 - share))) for share in pooled)
    # half the sum over bins of E|N|, N normal
    return 0.5 * math.sqrt(2.0 / math.pi * (1.0 / real + 1.0 / synthetic)) * spread


def _groups(groupings: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Use, Message]]:
    """Single columns in whose groups the rate of the outcome is off, beyond chance."""
    rated = [one for one in groupings if len(one["columns"]) == 1 and " = " in str(one["outcome"])]
    off = {
        one["columns"][0]: max(
            [abs(g["rate"][1] - g["rate"][0]) - g["chance"] for g in one["groups"] if g["rate"]],
            default=0.0,
        )
        for one in rated
    }
    if worse := [name for name in off if off[name] > CLOSE]:
        names = _listed(sorted(worse, key=lambda name: -off[name]))
        words = Message(
            "{target} by groups of {columns}", target=rated[0]["outcome"], columns=names
        )
        yield _graded(max(off.values()), CLOSE, FAR), words


_ORDER: list[Use] = ["fit", "care", "unfit", "unmeasured"]


def _beyond(score: Mapping[str, Any] | None) -> float | None:
    """A distance beyond what another sample of real rows, or noise alone, would show."""
    return None if score is None else max(0.0, score["value"] - (score["ceiling"] or 0.0))


def _graded(loss: float, good: float, bad: float) -> Use:
    return "fit" if loss <= good + 1e-9 else "care" if loss <= bad + 1e-9 else "unfit"


def _weaker(table: Mapping[str, Any] | None, hidden: Sequence[str]) -> tuple[int, int]:
    """How many strong relationships are clearly weaker, of how many; beyond chance alone."""
    if table is None or not table["real"]:
        return 0, 0
    real, synthetic, chance = (np.abs(table[key]) for key in ("real", "synthetic", "luck"))
    seen = np.array([name not in hidden for name in table["columns"]])
    strong = np.tril(seen[:, None] & seen & (real >= STRONG) & (real > chance), -1)
    weaker = strong & (real - synthetic >= np.maximum(WEAKER, chance))
    return int(weaker.sum()), int(strong.sum())


def _lost(schema: Schema, hidden: Sequence[str]) -> Iterator[tuple[Use, Message]]:
    """What the domain leaves out, from released numbers alone."""
    found = coverage(schema)
    if found.dropped:
        yield "unfit", Message("{columns} (left out)", columns=_listed(found.dropped))
    if found.made_up:
        yield "unfit", Message("{columns} (made up)", columns=_listed(found.made_up))
    if hidden:
        yield "unfit", Message("shares of {columns}, hidden on purpose", columns=_listed(hidden))
    listed = [c.name for c in found.noted if c.merged or c.listed]
    if listed:
        yield "unfit", Message("rare values of {columns}", columns=_listed(listed))
    ends = [_ends(schema, c) for c in found.noted if not (c.merged or c.listed)]
    yield from (("unfit", words) for words in ends[:NAMED])
    yield "unfit", Message("statements about single people")


def _ends(schema: Schema, cut: ColumnCoverage) -> Message:
    column = schema[cut.name]
    if column.kind is Kind.DATETIME or column.low is None or column.high is None:
        return Message("the ends of {column}", column=cut.name)
    if column.low == 0.0:  # nobody expects less
        return Message("{column} above {high:g}", column=cut.name, high=column.high)
    return Message(
        "{column} below {low:g} or above {high:g}",
        column=cut.name,
        low=column.low,
        high=column.high,
    )


def _listed(names: Sequence[str]) -> Message:
    first = joined([Message("{name}", name=name) for name in names[:NAMED]], ", ")
    rest = len(names) - NAMED
    return Message("{names} and {n} more", names=first, n=rest) if rest > 0 else first
