"""What a report says in plain sentences: what was kept, what was lost, who is exposed.

The limits below are rules of thumb for people who have two minutes; the figures and scores behind
each sentence are on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

from core.export.attack_sentences import Grade, exposure
from core.message import Message, from_json, joined, plural
from core.quality.verdict import CLOSE, FAR, distance, far_columns, noise_alone
from core.schema.coverage import ALL_KEPT, ONE_KEPT

Report = Mapping[str, Any]
Kind = Literal["kept", "lost", "counted", "hidden", "unknown", "unseen"] | Grade

RELATED = 0.2  # an association worth naming
CHANGED = 0.15  # … and a change of it
FALSE_ALARMS = 0.01  # of all tables without such a loss, those of which one is named
MOST_OF_IT = 0.9  # of what can be learnt above guessing
NAMED = 3  # columns or pairs that a sentence names
NEGLIGIBLE = 0.001  # of a score: below this boosting made no difference


@dataclass(frozen=True)
class Finding:
    """One sentence.

    Attributes:
      about: key of the figure that shows it.
    """

    kind: Kind
    text: Message
    about: str


def findings(report: Report) -> list[Finding]:
    """The sentences that the measured parts of a report allow, in reading order."""
    return [
        *_coverage(report),
        *_impossible(report),
        *_columns(report),
        *_relationships(report),
        *_significant_sets(report),
        *_learning(report),
        *_people(report),
    ]


def _coverage(report: Report) -> Iterator[Finding]:
    for sentence in map(from_json, report["coverage"]):
        kept = report["covered"] or getattr(sentence, "template", sentence) in (ONE_KEPT, ALL_KEPT)
        yield Finding("kept" if kept else "lost", sentence, "columns")


def _impossible(report: Report) -> Iterator[Finding]:
    broken = report["broken_rules"]
    share = next((s["value"] for s in report["scores"] if s["key"] == "impossible_rows"), None)
    if not broken or share is None:
        return
    rules = _listed(
        [
            plural(one["rows"], "{rule} (1 row)", "{rule} ({n:,} rows)", rule=one["text"])
            for one in broken
        ]
    )
    text = Message(
        "{share:.0%} of the synthetic rows break rules that every real row keeps: {rules}.",
        share=share,
        rules=rules,
    )
    if share < 0.01:
        text = Message(
            "Fewer than 1% of the synthetic rows break rules that every real row keeps: {rules}.",
            rules=rules,
        )
    yield Finding("lost", text, "rules")


def _columns(report: Report) -> Iterator[Finding]:
    hidden = _hidden(report)
    if hidden:
        text = Message(
            "The shares of {columns} are not the real ones, on purpose. Do not quote them as real.",
            columns=_listed(hidden),
        )
        yield Finding("hidden", text, "columns")
    pictures = {
        name: picture
        for name, picture in report["columns"].items()
        if picture["tvd"] is not None and name not in hidden
    }
    # Where noise alone would show as much, nearness is not seen, though nothing is significant.
    near = [name for name, picture in pictures.items() if distance(picture) <= CLOSE]
    close = [n for n in near if min(pictures[n]["tvd"], noise_alone(pictures[n])) <= CLOSE]
    uncertain = [name for name in near if name not in close]
    far = far_columns(pictures, report)
    if close:
        text = _close(len(close), len(pictures))
        if any(pictures[name]["shifted"] for name in close):
            text = joined([text, Message("The real shares are shifted like the released table.")])
        yield Finding("kept", text, "columns")
    if uncertain:
        text = Message(
            "The noise is too large to tell whether the shares of {columns} are close to the real "
            "ones.",
            columns=_listed(uncertain),
        )
        yield Finding("unseen", text, "columns")
    if far:
        each = [
            Message("{column} (in {share:.0%} of rows)", column=name, share=share)
            for name, share in far.items()
        ]
        text = Message(
            "Shares differ clearly from the real ones: {columns}.", columns=_listed(each)
        )
        yield Finding("lost", text, "columns")


def _close(close: int, n: int) -> Message:
    """How many of n columns have nearly the real shares."""
    if close < n:
        return Message("{close} of {n} columns have nearly the true shares.", close=close, n=n)
    return plural(
        n,
        "The only column has nearly the true shares.",
        "All {n} columns have nearly the true shares.",
    )


def _hidden(report: Report) -> list[str]:
    """Tagged columns whose released distribution differs, as it should."""
    return [name for check in report["protection"] if check["differs"] for name in check["columns"]]


def _relationships(report: Report) -> Iterator[Finding]:
    table = report["associations"]
    if table is None or not table["real"]:
        return
    pairs = list(_pairs(table, _hidden(report)))
    strong = [pair for pair in pairs if pair.is_significant(pair.real, RELATED)]
    changed = [pair for pair in pairs if pair.is_significant(pair.gap, CHANGED)]
    weaker = [pair for pair in changed if abs(pair.synthetic) < abs(pair.real)]
    gone = [pair for pair in weaker if pair in strong]
    invented = [
        pair
        for pair in changed
        if pair.is_significant(pair.synthetic, RELATED) and pair not in gone
    ]
    about, n = "associations", len(strong)
    if n > len(gone):
        text = plural(
            n,
            "The only strong relationship between columns was kept.",
            "{kept} of {n} strong relationships between columns were kept.",
            kept=n - len(gone),
        )
        yield Finding("kept", text, about)
    if gone:
        text = plural(
            n,
            "The only strong relationship between columns is weaker: {pairs}.",
            "{weaker} of {n} strong relationships between columns are weaker: {pairs}.",
            weaker=len(gone),
            pairs=_changed(gone),
        )
        yield Finding("lost", text, about)
    if invented:
        text = plural(
            len(invented),
            "1 relationship between columns is stronger than in the real table: {pairs}.",
            "{n} relationships between columns are stronger than in the real table: {pairs}.",
            pairs=_changed(invented),
        )
        yield Finding("lost", text, about)


def _significant_sets(report: Report) -> Iterator[Finding]:
    """The most significant larger set of a scan; whether synthetic rows keep it, others say."""
    larger = [one for one in report["significant_sets"] if len(one["columns"]) > 2]
    if not larger:
        return
    best = larger[0]
    names = ", ".join(best["columns"])
    text = Message(
        "{columns} are related in a way that no two of them show. The relationship is significant "
        "despite the noise, so the model counted it.",
        columns=names,
    )
    if best["target"]:
        text = Message(
            "{columns} together tell something about {target} that no two of them tell. The "
            "relationship is significant despite the noise, so the model counted it.",
            columns=names,
            target=report["target"] or Message("the target"),
        )
    if more := len(larger) - 1:
        others = plural(more, "The same holds for 1 more set.", "The same holds for {n} more sets.")
        text = joined([text, others])
    yield Finding("counted", text, "interactions")


@dataclass(frozen=True)
class _Pair:
    """Two columns and how strongly they are related in either table.

    Attributes:
      chance: how strongly columns of so many rows seem related by chance alone.
    """

    first: str
    second: str
    real: float
    synthetic: float
    chance: float

    @property
    def gap(self) -> float:
        return abs(self.real - self.synthetic)

    def is_significant(self, strength: float, least: float) -> bool:
        """Whether a strength is worth naming, and more than columns of such rows show by chance."""
        return abs(strength) >= least and abs(strength) > self.chance


def _changed(pairs: Sequence[_Pair]) -> Message:
    """Pairs with both strengths, the largest change first."""
    return _listed(
        [
            Message(
                "{first} with {second} ({real:.2f} → {synthetic:.2f})",
                first=p.first,
                second=p.second,
                real=p.real,
                synthetic=p.synthetic,
            )
            for p in sorted(pairs, key=lambda pair: -pair.gap)
        ]
    )


def _pairs(table: Mapping[str, Any], hidden: Sequence[str]) -> Iterator[_Pair]:
    """All pairs but those of two hidden columns: their joint distribution was to be hidden."""
    names, real, synthetic = table["columns"], table["real"], table["synthetic"]
    for i in range(len(names)):
        for j in range(i):
            if names[i] not in hidden or names[j] not in hidden:
                chance = table["luck"][i][j]
                yield _Pair(names[j], names[i], real[i][j], synthetic[i][j], chance)


def _learning(report: Report) -> Iterator[Finding]:
    scores = {score["key"]: score for score in report["scores"]}
    for key, guess in (("tstr_auroc", 0.5), ("tstr_r2", 0.0)):
        score = scores.get(key)
        if score is None or score["value"] is None or score["ceiling"] is None:
            continue
        room = score["ceiling"] - guess
        if room <= CLOSE:
            continue
        part = max(0.0, min(1.0, (score["value"] - guess) / room))
        text = Message(
            "A model for {target} trained on synthetic rows is {part:.0%} as good as one trained "
            "on real rows (0%: no better than guessing).",
            target=report["target"],
            part=part,
        )
        yield Finding("kept" if part >= MOST_OF_IT else "lost", text, "utility")
    points = report["dimension_prediction"]
    # intervals hold 19 of 20 differences: of many columns some lie outside by chance
    wide = -NormalDist().inv_cdf(FALSE_ALARMS / max(1, len(points))) / 1.96
    weak = [
        (p["real"] - p["synthetic"], p["column"])
        for p in points
        if p["predictable"]
        and p["synthetic"] is not None
        and p["real"] - p["synthetic"] > max(FAR, wide * (p["half_width"] or 0.0))
    ]
    if weak:
        text = Message(
            "Harder to predict from the other columns than in the real table: {columns}.",
            columns=_listed([name for _, name in sorted(weak, reverse=True)]),
        )
        yield Finding("lost", text, "prediction")


def _people(report: Report) -> Iterator[Finding]:
    if report["view"] == "outside" or not (report["complete"] or report["attacks"]):
        return
    if not report["attacks"]:
        text = Message(
            "No attacks were tried, because too few rows were kept out of training to compare with."
        )
        yield Finding("unknown", text, "exposure")
        return
    found = exposure(report["attacks"])
    yield Finding(found.grade, found.text, "exposure")


def _listed(words: Sequence[str]) -> Message:
    """The first few, and how many more; plain strings are names.

    >>> _listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    first = joined([Message("{name}", name=word) for word in words[:NAMED]], ", ")
    rest = len(words) - NAMED
    return Message("{names} and {n} more", names=first, n=rest) if rest > 0 else first


def boosting_words(score: Mapping[str, Any]) -> Message:
    """What boosting did to a score that was measured before and after it.

    Args:
      score: of a report, with "value", "before" and "goal".

    >>> [boosting_words({"before": 0.2, "value": v, "goal": "lower"}) for v in (0.1, 0.2, 0.3)]
    ['closer to real', 'no difference', 'further away']
    """
    gain = (score["value"] - score["before"]) * (1 if score["goal"] == "higher" else -1)
    if abs(gain) < NEGLIGIBLE:
        return Message("no difference")
    return Message("closer to real") if gain > 0 else Message("further away")
