"""The words on pictures, said in a language; names and values of people stay as they are.

What is ours is told by where it stands and by the list below, which has its own context in the
catalogue: as short as these texts are they fit too much. Bold texts and Plotly's fields are set
aside before a line is looked up. They are names, but for those that `core.figures` marks as its own
(`meta.own`, counted from the end).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import shorten, wrap
from typing import Any

from core.language.catalogue import Language
from core.language.templates import Templates

__all__ = ["CONTEXT", "FIGURE_TEXTS", "say_figure"]

Drawn = dict[str, Any]

CONTEXT = "figures"  # in the catalogue

# Names of bars: bins, and what is beside them. `:n` marks numbers, `:s` shares and dates.
OWN = (
    "missing",
    "other",
    "appear once",
    "appear more often",
    "exactly {value:s}",
    "{first:s} to {last:s}",
)
SERIES = (
    "real",
    "synthetic",
    "difference",
    "the model's own",
    "labels",
    "equal",
    "lists (F1)",
    "two labels (AUROC)",
    "numbers (R²)",
    "not predictable even from real rows",
    "rows kept",
    "noise, times that of one row",
    "would be revealed",
    "shifted (an example)",
)
SCALES = (
    "share of rows",
    "share of real rows",
    "share of synthetic rows",
    "share of the budget, ε = {epsilon:n}",
    "no differential privacy",
    "axis 1",
    "axis 2",
    "axis 1 ({part:n} of the spread)",
    "axis 2 ({part:n} of the spread)",
    "learnt from real rows",
    "learnt from synthetic rows",
    "rows of one person, at most",
    "noise",
    "ε (more private to the left)",
    "no privacy",
    "score of larger sets (log scale)",
    "score",
    "association",
    "distance",
    "too few … too many",
)
HOVERS = (
    "real: {part:s} of rows",
    "real: {part:s} of rows (± {noise:s}, with noise)",
    "synthetic: {part:s} of rows",
    "real row",
    "synthetic row",
    "the model's own row",
    "axis 1: {value:n}",
    "axis 2: {value:n}",
    "{column} ({metric}, 1 is perfect)",
    "learnt from real rows: {value:n}",
    "learnt from synthetic rows: {value:n}",
    "guessing: {value:n}",
    "{column} alone",
    "with",
    "nothing above noise and chance",
    "differs between the target's values",
    "{score:n} standard deviations above noise and chance",
    "distance {value} (0 same, 1 nothing in common)",
    "difference {value} (0 the same)",
    "real {value} (0 none, 1 fully)",
    "synthetic {value} (0 none, 1 fully)",
    "real {value} of rows here",
    "synthetic {value}",
)
PHASE = "{title}: {part:s} of the budget"
NOISES = (
    "Runs once, ρ = {rho:n} each.",
    "Runs {count:n} times, ρ = {rho:n} each.",
    "{mechanism!t} noise of {noise:n} times one record's largest influence, once.",
    "{mechanism!t} noise of {noise:n} times one record's largest influence, {count:n} times.",
    "{mechanism!t} noise of {noise:n} times one record's largest influence, once, each time on a "
    "random {part:n} % of the records.",
    "{mechanism!t} noise of {noise:n} times one record's largest influence, {count:n} times, each "
    "time on a random {part:n} % of the records.",
)
STAGES = (
    "{count:n} rows",
    "{count:n} people",
    "made from what came out above",
    "gives {makes!t}",
    "touches no<br>real rows",
    "{part:n} % of the budget",
    "all rows, once",
    "all people, once",
    "all rows, {count:n} times",
    "all people, {count:n} times",
    "{count:n} random batches of {rows:n}",
    "no noise",
    "noise {value:n} × one record",
    "random choice, ε₀ = {value:n}",
)
FIGURE_TEXTS = (*OWN, *SERIES, *SCALES, *HOVERS, PHASE, *NOISES, *STAGES)

_KEPT = "\x02(\\d+)\x03"  # what stands for a text that was set aside
_ASIDE = re.compile(r"<b>.*?</b>|%\{[^{}]*\}", re.DOTALL)
_PARTS = re.compile(r"(<br>|</?extra>)")
_NUMBER = re.compile(r"[-+\d.,:e%<± ]+")
_NAMED = re.compile(f"({_KEPT}: )({_NUMBER.pattern})")
_JOINED = re.compile(f"{_KEPT}( with {_KEPT})+")
_PHASE = re.compile(r"<b>(.*?)</b>(: [^<]+ of the budget)(?:<br>(.*))?", re.DOTALL)
_NOISE = re.compile(r"(?:^|<br>)(?=Runs (?:once|[\d,]+)|\w+ noise of \d)")
_TITLED = re.compile(r"<b>(.*?)</b><br>(.*)", re.DOTALL)
LINE, NOTE, LEGEND = 60, 44, 40  # characters: of a line in a hover, in a box, of a series' name


def say_figure(drawn: Drawn, language: Language) -> Drawn:
    """A figure with its own words in the language, and numbers written the language's way.

    Args:
      drawn: a figure of `core.figures` as JSON; it is changed.
    """
    if language.code == "en":
        return drawn
    words, layout = _Words(language), drawn["layout"]
    layout["separators"] = language.number(".,")
    axes = {key: part for key, part in layout.items() if re.fullmatch(r"[xy]axis\d*", key)}
    for axis in axes.values():
        _say_title(axis, words)
        if "ticktext" in axis and (axis.get("tickmode") == "array" or axis.get("type") == "log"):
            axis["ticktext"] = [words.own(text) for text in axis["ticktext"]]
    for key, own in _own_ticks(drawn["data"]).items():
        ticks = axes[key]["ticktext"]
        first = len(ticks) - own
        axes[key]["ticktext"] = ticks[:first] + [words.own(text) for text in ticks[first:]]
    for trace in drawn["data"]:
        _say_trace(trace, words)
    for note in layout.get("annotations", ()):
        if "xshift" not in note:  # else it is the name of a point
            note["text"] = _note(note.get("text", ""), words)
    return drawn


class _Words:
    """The figures' words in one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.said = language.said
        self._templates = Templates(FIGURE_TEXTS)

    def line(self, text: str) -> str:
        """A line of ours; what is not in the list stays as it is."""
        return text if (known := self._known(text)) is None else known

    def own(self, text: str) -> str:
        """The name of a bar or a tick that is ours: a word, a bin, or a number."""
        return self.language.number(text) if (known := self._known(text)) is None else known

    def hover(self, text: str) -> str:
        """A line of a hover text, names set aside."""
        if _JOINED.fullmatch(text):
            return text.replace(" with ", f" {self.line('with')} ")
        if named := _NAMED.fullmatch(text):
            return named[1] + self.language.number(named[3])
        return self.line(text)

    def _known(self, text: str) -> str | None:
        if text in FIGURE_TEXTS:
            return self.language.translation(text, CONTEXT)
        found = self._templates.recognise(text)
        if found is None:
            return None
        values = dict(found.values)
        for name in found.numbers:
            if not _NUMBER.fullmatch(values[name]):
                return None
            values[name] = self.language.number(values[name])
        template = self.language.translation(found.template, CONTEXT)
        return self.language.filled(template, values)


def _own_ticks(data: Iterable[Drawn]) -> dict[str, int]:
    """By axis, how many of its last ticks are names of ours."""
    return {
        f"yaxis{trace.get('yaxis', 'y')[1:]}": _own(trace)
        for trace in data
        if trace.get("orientation") == "h" and _own(trace)
    }


def _own(trace: Drawn) -> int:
    return int((trace.get("meta") or {}).get("own", 0))


def _say_title(part: Drawn, words: _Words) -> None:
    """The title of an axis or a colour bar."""
    title = part.get("title") or {}
    if title.get("text"):
        title["text"] = words.line(title["text"])


def _say_trace(trace: Drawn, words: _Words) -> None:
    texts = trace.get("hovertext")
    phase = _PHASE.fullmatch(texts[0]) if texts and isinstance(texts[0], str) else None
    if phase is not None:
        trace["name"] = shorten(words.said(phase[1]), LEGEND, placeholder="…")
        trace["hovertext"] = [_phase(phase, words)]
        return
    if trace.get("name"):
        trace["name"] = words.line(trace["name"])
    if trace.get("hovertemplate"):
        trace["hovertemplate"] = _hover(trace["hovertemplate"], words)
    if trace["type"] == "heatmap":
        _say_heatmap(trace, words)
    elif texts:
        first = len(texts) - _own(trace)
        trace["hovertext"] = [_hover(text, words, own=i >= first) for i, text in enumerate(texts)]


def _say_heatmap(trace: Drawn, words: _Words) -> None:
    bar = trace["colorbar"]
    _say_title(bar, words)
    if "ticktext" in bar:
        bar["ticktext"] = [words.own(text) for text in bar["ticktext"]]
    rows = trace.get("hovertext", ())
    trace["hovertext"] = [[_cell(text, words) for text in row] for row in rows]


def _cell(text: str, words: _Words) -> str:
    """A cell's hover text; two names that are not bold are joined by a word of ours."""
    if "<b>" in text:
        return _hover(text, words)
    once = text.count(" with ") == 1  # else a name holds it too, and nobody can tell which is ours
    return text.replace(" with ", f" {words.line('with')} ") if once else text


def _hover(text: str, words: _Words, *, own: bool = False) -> str:
    """A hover text or its template, line by line.

    Args:
      own: whether its bold name is ours.
    """
    kept: list[str] = []

    def aside(match: re.Match[str]) -> str:
        name = match[0]
        kept.append(f"<b>{words.own(name[3:-4])}</b>" if own and name[0] == "<" else name)
        return f"\x02{len(kept) - 1}\x03"

    parts = _PARTS.split(_ASIDE.sub(aside, text))
    said = "".join(part if _PARTS.fullmatch(part) else words.hover(part) for part in parts)
    return re.sub(_KEPT, lambda match: kept[int(match[1])], said)


def _phase(found: re.Match[str], words: _Words) -> str:
    """The hover text of a phase: its title, what it does, and with what noise."""
    first = _hover(f"<b>{words.said(found[1])}</b>{found[2]}", words)
    what, *noise = _NOISE.split(found[3] or "", maxsplit=1)
    lines = [words.said(_unbroken(what))] + [words.line(_unbroken(text)) for text in noise]
    return "<br>".join([first, *(_broken(line, LINE) for line in lines if line)])


def _note(text: str, words: _Words) -> str:
    """A text in a box: with a title, whole, or line by line."""
    if titled := _TITLED.fullmatch(text):
        said = words.line(_unbroken(titled[2]))
        return f"<b>{words.said(titled[1])}</b><br>{_broken(said, NOTE)}"
    if text in FIGURE_TEXTS:
        return words.line(text)
    return "<br>".join(words.line(line) for line in text.split("<br>"))


def _unbroken(text: str) -> str:
    return text.replace("<br>", " ")


def _broken(text: str, width: int) -> str:
    return "<br>".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))
