"""review: a synthetic table against the real one, as one HTML file that needs no network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core.cli.common import print_json
from core.encoding.holdout import split_rows
from core.export.page_html import page
from core.quality.report.build_report import build_report
from core.quality.report.outside import outside_report
from core.quality.report.types import Score
from core.runs.execution.threads import limit_threads
from core.schema.schema import Schema
from core.services.synthesis.options import RefusedError
from core.services.synthesis.schema_options import keep_out, with_target
from core.services.synthesis.table_files import out_path, read_file, read_schema, typed_frame
from core.writing.whole_files import replacing

WHO = {
    "inside": "inside only: it shows real data",
    "outside": "may be shown outside if the synthetic table and the schema's bounds and labels may",
}
NEXT = {
    "inside": "\nChoosing among tables after reports like this one is not covered by their ε. "
    "Their certificates cannot know of it: say it when you pass a table on.",
    "outside": "",
}


def review(options: argparse.Namespace) -> int:
    """Compare two tables and write what was found."""
    out = _out(options)
    limit_threads()
    declared = None if options.schema is None else read_schema(options.schema)
    rows, schema = read_file(options.real, schema=declared)
    schema = with_target(schema, options.target)
    real = typed_frame(rows, schema)
    # the synthetic file need not be in the real one's encoding
    synthetic = typed_frame(read_file(options.synthetic)[0], schema)
    test = None
    if options.holdout is not None:
        test = typed_frame(read_file(options.holdout, schema=schema)[0], schema)
    lacking = [name for name in schema.names if name not in real.columns]
    if lacking or not set(schema.names) & set(synthetic.columns):
        raise RefusedError("the two tables have no columns in common that the schema names")
    share = keep_out(schema, options.keep_out).holdout
    if test is None and share:
        real, test = split_rows(real, share, schema.person)

    def on_progress(stage: str, fraction: float) -> None:
        print(f"{fraction:4.0%}  {stage}", file=sys.stderr, flush=True)

    if options.view == "outside":
        report = outside_report(synthetic, schema)
    else:
        grouping = _groups(options.group, schema), options.columns_at_a_time
        report = build_report(
            real, synthetic, schema, test=test, on_progress=on_progress, grouping=grouping
        )
    title = options.synthetic.name
    if options.view == "inside":
        title += f" against {options.real.name}"
    with replacing(out) as file:
        file.write(page(report.model_dump(), title).encode())
    for score in report.scores:
        print(_score_line(score))
    for group in report.groupings[:1]:
        print(f"Groups of {', '.join(group.columns)}:", *group.sentences)
    print(f"wrote {out} ({WHO[report.view]}){NEXT[report.view]}")
    if options.json:
        print_json({"out": str(out), "report": report.model_dump()})
    return 0


def _out(options: argparse.Namespace) -> Path:
    """Where the report goes; one for outside shows a domain in its bins, so it must be declared."""
    if options.view == "outside" and options.schema is None and not options.declare_public:
        raise RefusedError(
            "nobody has declared this table's bounds and categories public, so nothing was read. "
            "Either write them with `python -m core.cli schema TABLE --out FILE.json`, check them "
            "and pass --schema FILE.json, or take them unseen with --declare-public"
        )
    return out_path(options.out, endings=(".html",), inputs=[options.real, options.synthetic])


def _groups(asked: list[str] | None, schema: Schema) -> tuple[str, ...]:
    """The columns whose groups are asked for, at most two."""
    names = dict.fromkeys(asked or ())
    keys = () if schema.person is None else schema.person.columns
    compared = [column.name for column in schema.columns if column.modelled]
    if unknown := [name for name in names if name not in compared or name in keys]:
        raise RefusedError(f"--group {unknown[0]} is no column of the table that is compared")
    if len(names) > 2:
        raise RefusedError("--group takes at most two columns")
    return tuple(names)


def _score_line(score: Score) -> str:
    value = "not measured" if score.value is None else f"{score.value:.4g} {score.unit}".rstrip()
    return f"{score.title}: {value} ({score.goal} is closer) {score.note}".rstrip()
