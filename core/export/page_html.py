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
from typing import Any

from core.export.findings import STANDINGS, findings, standing
from core.figures.column import column_figure, describe_column
from core.figures.report_figure import report_figures

__all__ = ["page"]

Report = Mapping[str, Any]

STAMPS = {
    "inside": (
        "INSIDE ONLY",
        "Figures and numbers were computed from real records without noise. Do not share this "
        "file outside the organisation.",
    ),
    "outside": (
        "MAY BE SHOWN OUTSIDE",
        "Nothing here was computed from real records but through the synthetic table itself and "
        "what its privacy plan paid for.",
    ),
}
HIDDEN = " <small>(hidden on purpose: not the real shares)</small>"
WORDS = {
    "kept": "Kept",
    "lost": "Lost",
    "counted": "Counted",
    "hidden": "Hidden on purpose",
    "safe": "People",
    "edge": "People, at the edge of chance",
    "exposed": "People are exposed",
    "unknown": "People",
}
STYLE = """
:root{color-scheme:light dark;--ink:#17242c;--paper:#fff;--soft:#f3f6f8;--line:#d5dee4}
@media(prefers-color-scheme:dark){
:root{--ink:#e6edf1;--paper:#10181d;--soft:#19252c;--line:#31424c}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0}
main{max-width:68rem;margin:0 auto;padding:1rem}
.stamp{position:sticky;top:0;z-index:9;padding:.5rem 1rem;color:#fff;font-size:.9rem}
.inside{background:#a63c06}.outside{background:#00694f}
@media print{.stamp{position:fixed;left:0;right:0;-webkit-print-color-adjust:exact;
print-color-adjust:exact}main{padding-top:5rem}figure{break-inside:avoid}}
nav a{margin-right:1rem}a{color:inherit}
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.75rem}
.card{background:var(--soft);border:1px solid var(--line);border-radius:.5rem;padding:.75rem}
.card b{display:block;font-size:1.6rem}.card b small{display:inline;font-weight:400}
.card small{display:block}details{font-size:.85rem;margin-top:.4rem}summary{cursor:pointer}
li.lost b,li.edge b,li.exposed b{color:#d55e00}
.columns{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:1rem}
figure{margin:0 0 1.5rem}figcaption{font-size:.9rem}
.plot{width:100%}table{border-collapse:collapse;width:100%}
td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
.scroll{overflow-x:auto}
"""
SCRIPT = """
const unpack=async id=>{const raw=document.getElementById(id).textContent.trim();
const bytes=Uint8Array.from(atob(raw),c=>c.charCodeAt(0));
const stream=new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
return new Response(stream).text()};
(async()=>{const code=document.createElement('script');
code.textContent=await unpack('library');document.head.append(code);
const all=JSON.parse(await unpack('figures'));
const ink=getComputedStyle(document.body).color;
const seen=new IntersectionObserver(found=>{for(const one of found){if(!one.isIntersecting)continue;
seen.unobserve(one.target);const figure=all[one.target.dataset.figure];
figure.layout.font={color:ink,family:'system-ui,sans-serif'};
Plotly.newPlot(one.target,figure.data,figure.layout,{responsive:true,displaylogo:false})}},
{rootMargin:'600px'});
document.querySelectorAll('.plot').forEach(place=>seen.observe(place));
addEventListener('beforeprint',()=>document.querySelectorAll('.plot').forEach(place=>{
if(!place.data){const figure=all[place.dataset.figure];
Plotly.newPlot(place,figure.data,figure.layout,{staticPlot:true})}}));
document.documentElement.dataset.ready='yes'})();
"""


def page(
    report: Report,
    title: str,
    *,
    claim: str = "",
    remarks: Sequence[Mapping[str, str]] = (),
    limits: Sequence[str] = (),
    hidden: Collection[str] = (),
) -> str:
    """The report as one HTML document.

    Args:
      report: `Report.model_dump(mode="json")`; its `view` decides the stamp.
      title: of the document.
      claim: what is claimed of the synthetic table's privacy, in a sentence.
      remarks: comments and verdicts: "author", "time", "about", "text".
      limits: what must not be taken for real, a sentence each.
      hidden: columns whose distribution is not the real one, on purpose.
    """
    head, text = STAMPS[report["view"]]
    stamp = f"<div class='stamp {report['view']}' role='note'><b>{head}.</b> {text}</div>"
    drawn: dict[str, Any] = {}
    body = "".join(
        (
            f"<h1>{_e(title)}</h1><p>{_size(report)} {_e(claim)}</p>",
            "".join(f"<p>{_e(note)}</p>" for note in report["notes"]),
            _limits(limits),
            _findings(report),
            _scores(report),
            _exposure(report),
            _whole(report, drawn),
            _columns(report, drawn, hidden),
            _utility(report),
            _remarks(remarks),
        )
    )
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{_e(title)}</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">"
        f"<style>{STYLE}</style></head><body>{stamp}<main>{body}</main>"
        f"<script type='text/plain' id='library'>{_library()}</script>"
        f"<script type='text/plain' id='figures'>{_packed(json.dumps(drawn))}</script>"
        f"<script>{SCRIPT}</script></body></html>"
    )


def _e(text: object) -> str:
    return html.escape(str(text), quote=True)


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@cache
def _library() -> str:
    from plotly.offline import get_plotlyjs  # late: heavy, and only an export needs it

    return _packed(get_plotlyjs())


def _size(report: Report) -> str:
    real = "" if report["view"] == "outside" else f"{report['rows_real']:,} real and "
    return f"{real}{report['rows_synthetic']:,} synthetic records."


def _limits(limits: Sequence[str]) -> str:
    """What nobody should take for real."""
    rows = "".join(f"<li>{_e(one)}</li>" for one in limits)
    return f"<h2 id='limits'>What not to take for real</h2><ul>{rows}</ul>" if rows else ""


def _findings(report: Report) -> str:
    """What was kept and lost, a sentence each."""
    rows = "".join(
        f"<li class='{one.kind}'><b>{WORDS[one.kind]}.</b> {_e(one.text)}</li>"
        for one in findings(report)
    )
    return f"<h2 id='findings'>In short</h2><ul>{rows}</ul>" if rows else ""


def _scores(report: Report) -> str:
    cards = "".join(
        f"<div class='card'><small>{_e(s['title'])}</small><b>{_value(s)}</b>"
        f"<small>{_e(s['goal'])} is closer{_ceiling(s)}</small>"
        f"<details><summary>What it is</summary>{_e(s['meaning'])} {_e(s['note'])} "
        f"<i>{_e(s['source'])}</i></details></div>"
        for s in report["scores"]
    )
    return f"<h2 id='scores'>Scores</h2><div class='cards'>{cards}</div>" if cards else ""


def _value(score: Mapping[str, Any]) -> str:
    if score["value"] is None:
        return "—"
    band = score.get("half_width")
    about = f" <small>± {band:.3f}</small>" if band else ""
    return f"{score['value']:.4g} {_e(score['unit'])}{about}"


def _ceiling(score: Mapping[str, Any]) -> str:
    return "" if score["ceiling"] is None else f" · real data {score['ceiling']:.4g}"


def _exposure(report: Report) -> str:
    """The attacks as a table, or nothing when there was no holdout."""
    if not report["attacks"]:
        return ""
    heads = ("Attack", "On the table", "Baseline", "±", "Verdict", "What it is")
    rows = [
        (
            a["title"],
            f"{a['value']:.3f}",
            f"{a['baseline']:.3f}",
            f"{a['half_width']:.3f}",
            STANDINGS[standing(a)],
            a["meaning"],
        )
        for a in report["attacks"]
    ]
    return "<h2 id='exposure'>Is anyone exposed?</h2>" + _table(heads, rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls by itself where the page is narrow."""
    top = "".join(f"<th>{_e(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div class='scroll'><table><tr>{top}</tr>{body}</table></div>"


def _figure(key: str, words: str, figure: Any, drawn: dict[str, Any]) -> str:
    drawn[key] = json.loads(figure.to_json())
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


def _whole(report: Report, drawn: dict[str, Any]) -> str:
    """Every figure of the whole table that this report's view may show."""
    figures = [(one, one.drawn(report)) for one in report_figures()]
    return "".join(
        f"<h2 id='{one.id}'>{_e(one.title)}</h2>"
        + _figure(one.id, one.describe(report), figure, drawn)
        for one, figure in figures
        if figure is not None
    )


def _columns(report: Report, drawn: dict[str, Any], hidden: Collection[str]) -> str:
    """Every column's picture; those that were hidden say so in their heading."""
    if not report["columns"]:
        return ""
    parts = (
        f"<div><h3>{_e(name)}{HIDDEN if name in hidden else ''}</h3>"
        + _figure(
            f"column:{name}",
            describe_column(report, name),
            column_figure(report, name),
            drawn,
        )
        + "</div>"
        for name in report["columns"]
    )
    return f"<h2 id='columns'>Columns</h2><div class='columns'>{''.join(parts)}</div>"


def _utility(report: Report) -> str:
    if not report["utility"]:
        return ""
    heads = ("Model", "Measure", "Trained on real", "Trained on synthetic", "Guessing")
    scores = ("real", "synthetic", "baseline")
    rows = [
        (row["model"], row["metric"], *(f"{row[key]:.3f}" for key in scores))
        for row in report["utility"]
    ]
    return f"<h2 id='utility'>Predicting {_e(report['target'])}</h2>" + _table(heads, rows)


def _remarks(remarks: Sequence[Mapping[str, str]]) -> str:
    if not remarks:
        return ""
    rows = [[one[key] for key in ("author", "time", "about", "text")] for one in remarks]
    title = "<h2 id='remarks'>What people said</h2>"
    return title + _table(("Who", "When", "About", "What"), rows)
