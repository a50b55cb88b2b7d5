"""What a report says in plain sentences: what was kept, what was lost, who is exposed.

The limits below are rules of thumb for people who have two minutes; the figures and scores behind
each sentence are on the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

from core.export.attack_sentences import Grade, exposure
from core.language.catalogue import ENGLISH, Language

__all__ = [
    "Finding",
    "boosting_words",
    "findings",
]

Report = Mapping[str, Any]
Kind = Literal["kept", "lost", "counted", "hidden", "unknown", "unseen"] | Grade

CLOSE = 0.05  # total variation: at most one row in twenty lies elsewhere
FAR = 0.10
TOGETHER = 0.2  # an association worth naming
LUCK = 0.01  # of all tables without such a loss, those of which one is named
CHANGED = 0.15  # … and a change of it
MOST_OF_IT = 0.9  # of what can be learnt above guessing
NAMED = 3  # columns or pairs that a sentence names
NOTHING = 0.001  # of a score: below this boosting made no difference


@dataclass(frozen=True)
class Finding:
    """One sentence.

    Attributes:
      kind: what it says.
      text: for people.
      about: key of the figure that shows it.
    """

    kind: Kind
    text: str
    about: str


def findings(report: Report, language: Language = ENGLISH) -> list[Finding]:
    """The sentences that the measured parts of a report allow, in reading order.

    Args:
      report: `Report.model_dump(mode="json")`.
    """
    return [
        *_impossible(report, language),
        *_columns(report, language),
        *_together(report, language),
        *_significant_sets(report, language),
        *_learning(report, language),
        *_people(report, language),
    ]


def _impossible(report: Report, language: Language) -> Iterator[Finding]:
    say = language.say
    broken = report.get("broken_rules", ())  # reports of earlier versions lack it
    share = next((s["value"] for s in report["scores"] if s["key"] == "impossible_rows"), None)
    if not broken or share is None:
        return
    rules = [f"{language.said(one['text'])} ({say('{n:,} rows', n=one['rows'])})" for one in broken]
    words = _listed(rules, language)
    text = (
        say(
            "{share:.0%} of synthetic rows contradict what every real row keeps: {words}.",
            share=share,
            words=words,
        )
        if share >= 0.01
        else say(
            "Fewer than 1% of synthetic rows contradict what every real row keeps: {words}.",
            words=words,
        )
    )
    yield Finding("lost", text, "rules")


def _columns(report: Report, language: Language) -> Iterator[Finding]:
    say = language.say
    hidden = _hidden(report)
    if hidden:
        text = say(
            "Not the real shares, on purpose: {names}. Do not quote them as real.",
            names=_listed(hidden, language),
        )
        yield Finding("hidden", text, "columns")
    pictures = report["columns"]
    distances = {
        name: _distance(p)
        for name, p in pictures.items()
        if p["tvd"] is not None and name not in hidden
    }
    if not distances:
        return
    # Where noise alone would show as much, nearness is not seen, though nothing stands out.
    near = [name for name, distance in distances.items() if distance <= CLOSE]
    close = [n for n in near if min(pictures[n]["tvd"], _noise_alone(pictures[n])) <= CLOSE]
    drowned = [name for name in near if name not in close]
    rows = report["rows_real"], report["rows_synthetic"]
    unlike = [n for n, distance in distances.items() if distance - _luck(pictures[n], *rows) > FAR]
    far = sorted(unlike, key=lambda name: -distances[name])
    if close:
        close_n, n = len(close), len(distances)
        text = (
            say("All {n} columns have nearly the real shares.", n=n)
            if close_n == n
            else say("{close} of {n} columns have nearly the real shares.", close=close_n, n=n)
        )
        if any(pictures[name].get("shifted") for name in close):
            text += " " + say("These are real shares as the released table shifts them.")
        yield Finding("kept", text, "columns")
    if drowned:
        text = say(
            "Whether shares are near the real ones cannot be said for the noise: {names}.",
            names=_listed(drowned, language),
        )
        yield Finding("unseen", text, "columns")
    if far:
        each = [f"{n} {say('({part:.0%} of rows elsewhere)', part=distances[n])}" for n in far]
        text = say("Shares differ clearly in {words}.", words=_listed(each, language))
        yield Finding("lost", text, "columns")


def _distance(picture: Mapping[str, Any]) -> float:
    """A column's distance, less what the noise on its real shares would show by itself."""
    return max(0.0, float(picture["tvd"]) - _noise_alone(picture))


def _noise_alone(picture: Mapping[str, Any]) -> float:
    """The distance that the noise on real shares would show between equal columns."""
    if not picture["noise"]:
        return 0.0
    bins = len(picture["real"]) + bool(picture["missing_real"])
    # half the sum over bins of E|N|, N normal, whose 95 % interval is ± noise
    return 0.5 * bins * float(picture["noise"]) / 1.96 * math.sqrt(2.0 / math.pi)


def _luck(picture: Mapping[str, Any], real: int, synthetic: int) -> float:
    """The distance that two draws of so many rows from the same column show in the mean."""
    missing = picture["missing_real"] or 0.0, picture["missing_synthetic"]
    sides = zip((*picture["real"], missing[0]), (*picture["synthetic"], missing[1]), strict=True)
    pooled = [(a * real + b * synthetic) / (real + synthetic) for a, b in sides]
    spread = sum(math.sqrt(max(0.0, share * (1.0 - share))) for share in pooled)
    # half the sum over bins of E|N|, N normal
    return 0.5 * math.sqrt(2.0 / math.pi * (1.0 / real + 1.0 / synthetic)) * spread


def _hidden(report: Report) -> list[str]:
    """Tagged columns whose released distribution differs, as it should."""
    return [name for check in report["protection"] if check["differs"] for name in check["columns"]]


def _together(report: Report, language: Language) -> Iterator[Finding]:
    say = language.say
    table = report["associations"]
    if table is None or not table["real"]:
        return
    pairs = list(_pairs(table, _hidden(report), language))
    strong = [pair for pair in pairs if pair.beyond_luck(pair.real, TOGETHER)]
    changed = [pair for pair in pairs if pair.beyond_luck(pair.gap, CHANGED)]
    weaker = [pair for pair in changed if abs(pair.synthetic) < abs(pair.real)]
    gone = [pair for pair in weaker if pair in strong]
    invented = [
        pair for pair in changed if pair.beyond_luck(pair.synthetic, TOGETHER) and pair not in gone
    ]
    if len(strong) > len(gone):
        text = say(
            "{still} of {n} pairs of columns that belong together still do.",
            still=len(strong) - len(gone),
            n=len(strong),
        )
        yield Finding("kept", text, "associations")
    if gone:
        text = say("Belonging together became weaker: {words}.", words=_changed(gone, language))
        yield Finding("lost", text, "associations")
    if invented:
        text = say("Belonging together was made up: {words}.", words=_changed(invented, language))
        yield Finding("lost", text, "associations")


NUMBERS = {3: "Three", 4: "Four", 5: "Five", 6: "Six"}


def _significant_sets(report: Report, language: Language) -> Iterator[Finding]:
    """The clearest larger set that a scan found; whether synthetic rows keep it, others say."""
    say = language.say
    told = report.get("significant_sets", ())  # only models that scan tell
    larger = [one for one in told if len(one["columns"]) > 2]
    if not larger:
        return
    best = larger[0]
    many = NUMBERS.get(len(best["columns"]), f"{len(best['columns'])}")
    words = {"many": many, "names": ", ".join(best["columns"])}
    if not best["target"]:
        text = say(
            "{many!t} columns together say something that no two of them say: {names} stood out of "
            "the noise and were counted.",
            **words,
        )
    else:
        text = say(
            "{many!t} columns together say something about {target} that no two of them say: "
            "{names} stood out of the noise and were counted.",
            target=report["target"] or say("the target"),
            **words,
        )
    if len(larger) > 1:
        text += " " + say("So did {n} more such sets.", n=len(larger) - 1)
    yield Finding("counted", text, "interactions")


@dataclass(frozen=True)
class _Pair:
    """Two columns, how strongly they belong together in either table, and may by luck alone."""

    names: str
    real: float
    synthetic: float
    luck: float

    @property
    def gap(self) -> float:
        return abs(self.real - self.synthetic)

    def beyond_luck(self, strength: float, least: float) -> bool:
        """Whether a strength is worth naming, and more than columns of such rows show by luck."""
        return abs(strength) >= least and abs(strength) > self.luck


def _changed(pairs: Sequence[_Pair], language: Language) -> str:
    """Pairs with both strengths, the largest change first."""
    worst = sorted(pairs, key=lambda pair: -pair.gap)
    change = language.number
    words = [f"{p.names} ({change(f'{p.real:.2f} → {p.synthetic:.2f}')})" for p in worst]
    return _listed(words, language)


def _pairs(table: Mapping[str, Any], hidden: Sequence[str], language: Language) -> Iterator[_Pair]:
    """All pairs but those of two hidden columns: their joint distribution was to be hidden."""
    names, joined = table["columns"], language.say("with")
    luck = table.get("luck") or [[0.0] * len(names)] * len(names)  # none in older reports
    for i in range(len(names)):
        for j in range(i):
            if names[i] not in hidden or names[j] not in hidden:
                both = f"{names[j]} {joined} {names[i]}"
                yield _Pair(both, table["real"][i][j], table["synthetic"][i][j], luck[i][j])


def _learning(report: Report, language: Language) -> Iterator[Finding]:
    say = language.say
    scores = {score["key"]: score for score in report["scores"]}
    for key, guess in (("tstr_auroc", 0.5), ("tstr_r2", 0.0)):
        score = scores.get(key)
        if score is None or score["value"] is None or score["ceiling"] is None:
            continue
        room = score["ceiling"] - guess
        if room <= CLOSE:
            continue
        part = max(0.0, min(1.0, (score["value"] - guess) / room))
        yield Finding(
            "kept" if part >= MOST_OF_IT else "lost",
            say(
                "A model that learns {target} from synthetic rows reaches {part:.0%} of what one "
                "reaches that learns from real rows, counted from guessing.",
                target=report["target"],
                part=part,
            ),
            "utility",
        )
    points = report["dimension_prediction"]
    # intervals hold 19 of 20 differences: of many columns some lie outside by luck
    wide = -NormalDist().inv_cdf(LUCK / max(1, len(points))) / 1.96
    weak = [
        (p["real"] - p["synthetic"], p["column"])
        for p in points
        if p["predictable"]
        and p["synthetic"] is not None
        and p["real"] - p["synthetic"] > max(FAR, wide * (p["half_width"] or 0.0))
    ]
    if weak:
        words = _listed([name for _, name in sorted(weak, reverse=True)], language)
        text = say("Other columns say less than they should about {words}.", words=words)
        yield Finding("lost", text, "prediction")


def _people(report: Report, language: Language) -> Iterator[Finding]:
    say = language.say
    if report["view"] == "outside" or not (report["complete"] or report["attacks"]):
        return
    if not report["attacks"]:
        text = say(
            "Attacks were not tried: too few rows, or none, were kept out of training to compare "
            "with."
        )
        yield Finding("unknown", text, "exposure")
        return
    found = exposure(report["attacks"], language)
    yield Finding(found.grade, found.text, "exposure")


def _listed(words: Sequence[str], language: Language) -> str:
    """The first few, and how many more.

    >>> _listed(["a", "b", "c", "d", "e"], ENGLISH)
    'a, b, c and 2 more'
    """
    say, rest = language.say, len(words) - NAMED
    return ", ".join(words[:NAMED]) + (say(" and {n} more", n=rest) if rest > 0 else "")


def boosting_words(score: Mapping[str, Any]) -> str:
    """What boosting did to a score that was measured before and after it.

    Args:
      score: of a report, with "value", "before" and "goal".

    >>> [boosting_words({"before": 0.2, "value": v, "goal": "lower"}) for v in (0.1, 0.2, 0.3)]
    ['closer to real', 'no difference', 'further away']
    """
    gain = (score["value"] - score["before"]) * (1 if score["goal"] == "higher" else -1)
    if abs(gain) < NOTHING:
        return "no difference"
    return "closer to real" if gain > 0 else "further away"
