"""review: a synthetic table against the real one, as one HTML file that needs no network."""

from __future__ import annotations

import argparse
import html
import sys
from collections.abc import Iterator

import plotly.graph_objects as go

from core import figures
from core.commands.common import CommandError, out_path, print_json, read_frame, read_schema
from core.quality.report import build_report
from core.quality.types import Report, Score
from core.runs.pipeline import limit_threads
from core.runs.workspace import replacing
from core.table.holdout import held_out
from core.table.infer import infer_schema

__all__ = ["review"]

STAMP = (
    "Inside only: figures and numbers below were computed from real records without noise. "
    "Do not share this file outside the organisation."
)
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.3rem .8rem;text-align:left;"
    "border-bottom:1px solid #ccc}.stamp{border:2px solid #D55E00;padding:.6rem 1rem}"
)


def review(options: argparse.Namespace) -> int:
    """Compare two tables and write what was found."""
    inputs = [options.real, options.synthetic]
    out = out_path(options.out, endings=(".html",), inputs=inputs)
    limit_threads()
    real, synthetic = read_frame(options.real), read_frame(options.synthetic)
    test = None if options.holdout is None else read_frame(options.holdout)
    schema = infer_schema(real) if options.schema is None else read_schema(options.schema)
    if options.target is not None:
        if options.target not in schema.names:
            raise CommandError(f"no column is called '{options.target}'")
        schema = schema.model_copy(update={"target": options.target})
    if test is None and schema.holdout:
        kept = held_out(len(real), schema.holdout)
        real, test = real[~kept], real[kept]
    lacking = [name for name in schema.names if name not in real.columns]
    if lacking or not set(schema.names) & set(synthetic.columns):
        raise CommandError("the two tables have no columns in common that the schema names")

    def hear(stage: str, fraction: float) -> None:
        print(f"{fraction:4.0%}  {stage}", file=sys.stderr, flush=True)

    report = build_report(real, synthetic, schema, test=test, observe=hear)
    title = f"{options.synthetic.name} against {options.real.name}"
    with replacing(out) as file:
        file.write(page(report, title).encode())
    for score in report.scores:
        print(_score_line(score))
    print(f"wrote {out} (inside only: it shows real data)")
    if options.json:
        print_json({"out": str(out), "report": report.model_dump(mode="json")})
    return 0


def _score_line(score: Score) -> str:
    value = "not measured" if score.value is None else f"{score.value:.4g} {score.unit}".rstrip()
    return f"{score.title}: {value} ({score.goal} is closer)"


def page(report: Report, title: str) -> str:
    """The report as one HTML document; the plotting library is inside it, once."""
    rows = "".join(
        f"<tr title='{html.escape(score.meaning, quote=True)}'>"
        f"<td>{html.escape(_score_line(score))}</td><td>{html.escape(score.meaning)}</td>"
        f"<td>{html.escape(score.source)}</td></tr>"
        for score in report.scores
    )
    drawn = "".join(
        f"<h2>{html.escape(name)}</h2>"
        + figure.to_html(full_html=False, include_plotlyjs=first == 0)
        for first, (name, figure) in enumerate(_figures(report))
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in report.notes)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style><body><h1>{html.escape(title)}</h1><p class='stamp'>{STAMP}</p>"
        f"<p>{report.rows_real} real and {report.rows_synthetic} synthetic records.</p>"
        f"<ul>{notes}</ul><table><tr><th>Score</th><th>What it is</th><th>Source</th></tr>{rows}"
        f"</table>{_exposure(report)}{drawn}</body></html>"
    )


def _exposure(report: Report) -> str:
    """The attacks as a table, or nothing when there was no holdout."""
    if not report.attacks:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(a.title)}</td><td>{a.value:.3f}</td><td>{a.baseline:.3f}</td>"
        f"<td>{a.half_width:.3f}</td><td>{'works' if a.exposed else 'no better than without'}</td>"
        f"<td>{html.escape(a.meaning)}</td></tr>"
        for a in report.attacks
    )
    return (
        "<h2>Is anyone exposed?</h2><table><tr><th>Attack</th><th>On the table</th>"
        f"<th>Baseline</th><th>±</th><th>Verdict</th><th>What it is</th></tr>{rows}</table>"
    )


def _figures(report: Report) -> Iterator[tuple[str, go.Figure]]:
    """Title and figure of each part that was measured."""
    shown = report.model_dump(mode="json")
    parts = (
        ("Both tables on the real one's two main axes", figures.pca_figure(shown)),
        ("Pairs of columns", figures.pairs_figure(shown)),
        ("How strongly columns belong together", figures.association_figure(shown)),
        ("How often each value occurs", figures.probability_figure(shown)),
        ("How well each column is predicted", figures.prediction_figure(shown)),
    )
    yield from ((title, figure) for title, figure in parts if figure is not None)
    for name in report.columns:
        yield name, figures.column_figure(shown, name)
