"""A report as one HTML file that needs no network: for people who do not open the application.

The plotting library travels inside, compressed; the browser unpacks it, so the file stays below two
and a half megabytes. Every figure has its sentence, which is what remains without scripts. The
stamp says on every page, on screen and on paper, who may see it.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from core.export.attack_sentences import STANDINGS, standing
from core.export.findings import findings
from core.figures.column import column_figure, describe_column
from core.figures.groups import group_table, groups_figure
from core.figures.histories import history_columns
from core.figures.report_figure import report_figures
from core.language.catalogue import ENGLISH, Language, say_figure
from core.message import Message, joined

Report = Mapping[str, Any]

STAMPS = {  # the first sentence in bold
    "inside": Message(
        "INSIDE ONLY. Figures and numbers were computed from real records without noise. Do not "
        "share this file outside the organisation."
    ),
    "outside": Message(
        "MAY BE SHOWN OUTSIDE. Everything here was computed from the synthetic table, from what ε "
        "paid for and from what was declared public."
    ),
}
WORDS = {
    "kept": Message("Kept"),
    "lost": Message("Lost"),
    "counted": Message("Counted"),
    "hidden": Message("Hidden on purpose"),
    "safe": Message("People"),
    "edge": Message("People, at the edge of chance"),
    "works": Message("People, an attack works"),
    "exposed": Message("People are exposed"),
    "unknown": Message("People"),
    "unseen": Message("Hidden by noise"),
}
VALUES = ("real", "synthetic", "half")  # of a conclusion
STYLE, SCRIPT = (
    Path(__file__).with_name(f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
)


def page(
    report: Report,
    title: str,
    *,
    claim: str = "",
    remarks: Sequence[Mapping[str, str]] = (),
    limits: Sequence[str] = (),
    hidden: Collection[str] = (),
    language: Language = ENGLISH,
    conclusions: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The report as one HTML document.

    Args:
      report: `Report.model_dump()`; its `view` decides the stamp.
      claim: what is claimed of the synthetic table's privacy, in English.
      remarks: comments and verdicts: "author", "time", "about", "text".
      limits: what must not be taken for real, a sentence each, in English.
      hidden: columns whose distribution is not the real one, on purpose.
      conclusions: what pinned questions came to; outside, those that ε paid for.
    """
    drawn: dict[str, Any] = {}
    body = "".join(
        (
            f"<h1>{_e(title)}</h1><p>{_size(report, language)} {_e(language.render(claim))}</p>",
            "".join(f"<p>{_e(language.render(note))}</p>" for note in report["notes"]),
            _limits(limits, language),
            _findings(report, language),
            _scores(report, language),
            _exposure(report, language),
            _conclusions(conclusions, language),
            _whole(report, drawn, language),
            _columns(report, drawn, hidden, language),
            _utility(report, language),
            _groups(report, drawn, language),
            _remarks(remarks, language),
        )
    )
    scripts = (
        f"<script type='text/plain' id='library'>{_library()}</script>"
        f"<script type='text/plain' id='figures'>{_packed(json.dumps(drawn))}</script>"
        f"<script>{SCRIPT}</script>"
    )
    return document(title, body, report["view"], STAMPS[report["view"]], language, scripts)


def document(
    title: str, body: str, view: str, stamp: Message, language: Language, scripts: str = ""
) -> str:
    """A whole HTML document that needs no network, stamped with who may see it."""
    head, _, text = language.render(stamp).partition(". ")
    return (
        f"<!doctype html><html lang='{language.code}'><head><meta charset='utf-8'>"
        f"<title>{_e(title)}</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">"
        f"<style>{STYLE}</style></head><body><div class='stamp {view}' role='note'>"
        f"<b>{_e(head)}.</b> {_e(text)}</div><main>{body}</main>{scripts}</body></html>"
    )


def _e(text: object) -> str:
    return html.escape(str(text), quote=True)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@cache
def _library() -> str:
    from plotly.offline import get_plotlyjs  # late: heavy, and only an export needs it

    return _packed(get_plotlyjs())


def _heading(key: str, text: str) -> str:
    return f"<h2 id='{key}'>{_e(text)}</h2>"


def _size(report: Report, language: Language) -> str:
    say, real, made = language.say, report["rows_real"], report["rows_synthetic"]
    if report["view"] == "outside":
        return say("{n:,} synthetic records.", n=made)
    return say("{real:,} real and {n:,} synthetic records.", real=real, n=made)


def _limits(limits: Sequence[str], language: Language) -> str:
    """What nobody should take for real."""
    say, rows = language.say, "".join(f"<li>{_e(language.render(one))}</li>" for one in limits)
    return _heading("limits", say("What not to take for real")) + f"<ul>{rows}</ul>" if rows else ""


def _findings(report: Report, language: Language) -> str:
    """What was kept and lost, a sentence each."""
    say, said = language.say, language.render
    rows = "".join(
        f"<li class='{one.kind}'><b>{_e(said(WORDS[one.kind]))}.</b> {_e(said(one.text))}</li>"
        for one in findings(report)
    )
    return _heading("findings", say("In short")) + f"<ul>{rows}</ul>" if rows else ""


def _scores(report: Report, language: Language) -> str:
    say, said = language.say, language.render
    cards = "".join(
        f"<div class='card'><small>{_e(said(s['title']))}</small><b>{_value(s, language)}</b>"
        f"<small>{_e(_goal(s, language))}</small>"
        f"<details><summary>{_e(say('What it is'))}</summary>{_e(said(s['meaning']))} "
        f"{_e(said(s['note']))} <i>{_e(s['source'])}</i></details></div>"
        for s in report["scores"]
    )
    return _heading("scores", say("Scores")) + f"<div class='cards'>{cards}</div>" if cards else ""


def _value(score: Mapping[str, Any], language: Language) -> str:
    if score["value"] is None:
        return "—"
    number, band = language.number, score.get("half_width")
    about = f" <small>± {number(f'{band:.3f}')}</small>" if band else ""
    return f"{number(format(score['value'], '.4g'))} {_e(language.render(score['unit']))}{about}"


def _goal(score: Mapping[str, Any], language: Language) -> str:
    """Which way is closer, and what real data reach."""
    say = language.say
    goal = say("higher is closer") if score["goal"] == "higher" else say("lower is closer")
    if score["ceiling"] is None:
        return goal
    return goal + say(" · real data {value:.4g}", value=score["ceiling"])


def _exposure(report: Report, language: Language) -> str:
    """The attacks as a table, or nothing when there was no holdout."""
    if not report["attacks"]:
        return ""
    say, said, number = language.say, language.render, language.number
    heads = (
        say("Attack"),
        say("On the table"),
        say("Baseline"),
        say("Lead needed"),
        "p",
        say("Verdict"),
        say("What it is"),
    )
    rows = [
        (
            said(a["title"]),
            *(number(f"{a[key]:.3f}") for key in ("value", "baseline")),
            "—" if a["lead_needed"] is None else number(f"{a['lead_needed']:.3f}"),
            number(f"{a['p']:.4f}"),
            said(STANDINGS[standing(a)]),
            said(a["meaning"]),
        )
        for a in report["attacks"]
    ]
    return _heading("exposure", say("Is anyone exposed?")) + html_table(heads, rows)


def _conclusions(rows: Sequence[Mapping[str, Any]], language: Language) -> str:
    """The questions that matter, from real and from synthetic rows."""
    if not rows:
        return ""
    say, said = language.say, language.render
    heads = (say("Question"), say("Real"), say("Synthetic"), "±", say("Differs in"), say("Note"))
    cells = []
    for row in rows:
        numbers = ["" if row[key] is None else f"{row[key]:.4g}" for key in VALUES]
        differs = ", ".join(said(reason) for reason in row["differs"] or ())
        cells.append(
            [said(row["what"]), *map(language.number, numbers), differs, said(row["note"])]
        )
    return _heading("conclusions", say("Questions that matter")) + html_table(heads, cells)


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls by itself where the page is narrow."""
    top = "".join(f"<th>{_e(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class='scroll'><table><tr>{top}</tr>{body}</table></div>"


def _figure(key: str, words: str, figure: Any, drawn: dict[str, Any], language: Language) -> str:
    words = language.render(words)
    drawn[key] = say_figure(figure, language)
    drawn[key]["layout"].pop("template", None)
    for trace in drawn[key]["data"]:
        if trace["type"] == "scattergl":  # its drawing code is built at run time: not allowed here
            trace["type"] = "scatter"
    height = drawn[key]["layout"].get("height", 340)
    return (
        f"<figure><div class='plot' role='img' aria-label='{_e(words)}' "
        f"data-figure='{_e(key)}' style='min-height:{height}px'></div>"
        f"<figcaption>{_e(words)}</figcaption></figure>"
    )


def _whole(report: Report, drawn: dict[str, Any], language: Language) -> str:
    """Every figure of the whole table that this report's view may show."""
    figures = [(one, one.drawn(report)) for one in report_figures()]
    whole = "".join(
        _heading(one.id, language.render(one.title))
        + _figure(one.id, one.describe(report), figure, drawn, language)
        for one, figure in figures
        if figure is not None
    )
    shown = {
        " · ".join(filter(None, (language.render(title), history["file"]))): one
        for at, history in enumerate(report["histories"])
        for title, one in history_columns({**report, "history": (at, 0)}).items()
    }
    title = language.say("Histories")
    return whole + _columns({"columns": shown}, drawn, (), language, ("histories", title))


def _columns(
    report: Report,
    drawn: dict[str, Any],
    hidden: Collection[str],
    language: Language,
    heading: tuple[str, str] | None = None,
) -> str:
    """Every column's picture; those that were hidden say so in their heading."""
    if not report["columns"]:
        return ""
    say = language.say
    key, title = heading or ("columns", say("Columns"))
    mark = f" <small>{_e(say('(hidden on purpose: not the real shares)'))}</small>"
    parts = (
        f"<div><h3>{_e(name)}{mark if name in hidden else ''}</h3>"
        + _figure(
            f"{key}:{name}",
            describe_column(report, name),
            column_figure(report, name),
            drawn,
            language,
        )
        + "</div>"
        for name in report["columns"]
    )
    shown = f"<div class='columns'>{''.join(parts)}</div>"
    return _heading(key, title) + shown


def _utility(report: Report, language: Language) -> str:
    if not report["utility"]:
        return ""
    say, said, number = language.say, language.render, language.number
    heads = (
        say("Model"),
        say("Measure"),
        say("Trained on real"),
        say("Trained on synthetic"),
        say("Guessing"),
    )
    scores = ("real", "synthetic", "baseline")
    rows = [
        (said(row["model"]), said(row["metric"]), *(number(f"{row[key]:.3f}") for key in scores))
        for row in report["utility"]
    ]
    title = say("Predicting {target}", target=report["target"])
    return _heading("utility", title) + html_table(heads, rows)


def _groups(report: Report, drawn: dict[str, Any], language: Language) -> str:
    """Groups of single columns, or of those that were asked for first."""
    first, *others = report["groupings"] or [None]
    parts = []
    for one in [first, *(other for other in others if len(other["columns"]) == 1)] if first else []:
        words, rows = joined(one["sentences"]), group_table(one)
        names = ", ".join(one["columns"])
        parts.append(f"<h3>{_e(names)}</h3>")
        if drawing := groups_figure(one):
            parts.append(_figure(f"groups:{names}", words, drawing, drawn, language))
        heads = [language.render(head) for head in rows[0]]
        body = [[language.render(cell) for cell in row.values()] for row in rows]
        parts.append(html_table(heads, body))
    return _heading("groups", language.say("Groups")) + "".join(parts) if parts else ""


def _remarks(remarks: Sequence[Mapping[str, str]], language: Language) -> str:
    if not remarks:
        return ""
    rows = [[one[key] for key in ("author", "time", "about", "text")] for one in remarks]
    say = language.say
    heads = (say("Who"), say("When"), say("About"), say("What"))
    return _heading("remarks", say("What people said")) + html_table(heads, rows)
