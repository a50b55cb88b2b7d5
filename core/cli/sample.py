"""sample: more rows of a trained model, of chosen values or at chosen shares; spends nothing."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from core.cli.common import print_json
from core.models.registry import load_fitted
from core.models.saved_model import Fitted
from core.models.shaped_output import Shape, ShapeFacts, draw_shaped
from core.runs.execution.synthetic_label import write_label
from core.runs.execution.threads import limit_threads
from core.services.export import pack
from core.services.shaping import DrawnTable, certificate_of, table_name
from core.services.synthesis.options import RefusedError
from core.services.synthesis.saved_runs import TrainedModel, trained_model
from core.services.synthesis.table_files import (
    OUT_ENDINGS,
    mark_without_privacy,
    out_path,
    require_consent,
    write_table,
)
from core.writing.tables import write_parquet_parts
from core.writing.whole_files import replacing

ZIP = ".zip"


def sample(options: argparse.Namespace) -> int:
    """Draw rows and write them, a table for each seed; all of them or none."""
    out = out_path(options.out, endings=(*OUT_ENDINGS, ZIP), inputs=[])
    if options.rows < 1:
        raise RefusedError("--rows must be at least 1")
    if options.escape_formulas and out.suffix.lower() == ".parquet":
        raise RefusedError("--escape-formulas is for a .csv or .zip file")
    seeds: list[int | None] = list(dict.fromkeys(options.seed or [None]))
    shape = shape_of(options)
    trained = trained_model(options.run)
    if not trained.private:
        require_consent(given=options.without_privacy)
    limit_threads()
    fitted = load_fitted(trained.model, trained.folder)
    files, facts = _write(options, trained, fitted, shape, seeds, out)
    for one in facts:
        of_seed = "" if one.seed is None else f" (seed {one.seed})"
        for words in (f"{one.rows:,} rows, {one.drawn:,} drawn{of_seed}", *one.words):
            print(words)
    print(f"wrote {', '.join(map(str, files))}: nothing was spent; no real row was read")
    if options.json:
        certificate = certificate_of(trained.certificate, facts)
        told = {
            "out": [str(file) for file in files],
            "private": trained.private,
            "claim": certificate.get("claim"),
            "facts": [one.model_dump(mode="json") | {"words": list(one.words)} for one in facts],
            "formulas_escaped": options.escape_formulas,
        }
        print_json(told)
    return 0


def shape_of(options: argparse.Namespace) -> Shape:
    """What was asked of rows."""
    return Shape(
        where=tuple(options.where or ()), share=options.share, fill_missing=options.fill_missing
    )


def _write(
    options: argparse.Namespace,
    trained: TrainedModel,
    fitted: Fitted,
    shape: Shape,
    seeds: list[int | None],
    out: Path,
) -> tuple[list[Path], list[ShapeFacts]]:
    """Draw every table before the first file is put in its place.

    Args:
      out: a ZIP of all tables, or where one table goes.
    """
    several, zipped = len(seeds) > 1, out.suffix.lower() == ZIP
    written = trained.written(fitted.domain)
    if (linked := written.linked) and not zipped:
        raise RefusedError("rows of two linked files go to a .zip (--out)")
    inside = f"{out.stem}.{'parquet' if linked else 'csv'}" if zipped else out.name
    files = (
        [out]
        if zipped
        else [out.with_name(table_name(out.name, s, several=several)) for s in seeds]
    )
    tables = []
    with tempfile.TemporaryDirectory(prefix=".sample-", dir=out.parent) as folder:
        for at, seed in enumerate(seeds):
            drawn = draw_shaped(fitted, options.rows, shape, seed)
            path = Path(folder) / f"{at}{Path(inside).suffix}"
            papers, escape = trained.certificate, options.escape_formulas
            if written.linked:
                write_parquet_parts([drawn.table], path)
            else:
                write_table(drawn.table, path, papers, schema=written, escape_formulas=escape)
            tables.append(DrawnTable(path, drawn.facts))
        facts = [one.facts for one in tables]
        if not trained.private:
            mark_without_privacy(out, certificate_of(trained.certificate, facts))
        if zipped:
            with replacing(out) as file:
                pack(
                    file,
                    tables,
                    name=inside,
                    domain=fitted.domain,
                    schema=written,
                    certificate=trained.certificate,
                    escaped=options.escape_formulas,
                )
        else:
            for one, target in zip(tables, files, strict=True):
                write_label(target, trained.certificate)
                one.path.replace(target)
    return files, facts
