"""More rows from a saved model, in a process of its own: the UI process never imports torch.

    python -m core.runs.execution.sampling_process RUN_ID --home HOME --name NAME --request JSON

The request is a `SampleRequest`. The file goes to the run's `exports`; beside it lies another one
that says what became of the request. Rows that cannot be had, and an object store that does not
answer, are one sentence on stdout and the exit status `REFUSED`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from core.models.in_parts import sample_parts
from core.models.registry import load_fitted
from core.models.shaped_output import ShapeFacts, draw_shaped
from core.runs.errors import StorageError
from core.runs.execution.launching.launcher import REFUSED, SampleRequest, facts_name
from core.runs.execution.synthetic_label import label_of
from core.runs.execution.threads import limit_threads
from core.runs.storage.artefacts import MODEL, save_json
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import SchemaError
from core.schema.surrogates import check_room
from core.writing.excel import write_excel
from core.writing.tables import write_csv_parts, write_parquet_parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample and write one file, as the arguments say; 0 when it is there."""
    parser = argparse.ArgumentParser(prog="core.runs.execution.sampling_process")
    parser.add_argument("run_id")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--request", type=SampleRequest.model_validate_json, required=True)
    options = parser.parse_args(arguments)
    os.umask(0o077)
    limit_threads()
    try:
        _sample(options)
    except (SchemaError, StorageError) as error:
        print(error)
        return REFUSED
    return 0


def _sample(options: argparse.Namespace) -> None:
    with RunStore(Workspace(options.home)) as store:
        run = store.run(options.run_id)
        artefacts = store.artefacts(run.id)
        model = load_fitted(run.model, artefacts.local(MODEL))
    request: SampleRequest = options.request
    if request.shape.plain:  # as many as are wanted, some at a time
        check_room(model.domain.columns, request.rows, model.domain.person)
        facts = ShapeFacts(rows=request.rows, seed=request.seed, drawn=request.rows)
        parts = sample_parts(model, request.rows, request.seed)
    else:
        drawn = draw_shaped(model, request.rows, request.shape, request.seed)
        facts, parts = drawn.facts, iter([drawn.table])
    exports = artefacts.within("exports")
    save_json(exports, facts_name(options.name), facts)
    with exports.filling(options.name) as out:
        label = label_of(artefacts, run.id)
        if request.format == "parquet":
            # files that rows are taken apart into are written from the cells as they were drawn
            schema = None if run.schema.linked else run.schema
            write_parquet_parts(parts, out, schema=schema, label=label)
        elif request.format == "xlsx":
            write_excel(parts, out, schema=run.schema, label=label)
        else:
            escaped = request.escape_formulas
            write_csv_parts(parts, out, schema=run.schema, escape_formulas=escaped)


if __name__ == "__main__":
    sys.exit(main())
