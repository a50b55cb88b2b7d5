"""schema: the proposed schema of a table as a file that the steward checks and changes."""

from __future__ import annotations

import argparse
import sys

from core.cli.common import (
    out_path,
    print_json,
    read_file,
    say_dangers,
    say_violations,
    with_rules,
    with_target,
)
from core.table.infer import infer_schema
from core.table.io.replacing import replacing
from core.table.suggestions import suggest_rules

__all__ = ["schema"]


def schema(options: argparse.Namespace) -> int:
    """Write the proposal; a column that is changed in the file counts as set by the steward."""
    out = out_path(options.out, endings=(".json",), inputs=[options.table])
    result = read_file(options.table)
    frame, proposed = result.frame, with_target(options, infer_schema(result.frame, result.form))
    proposed = with_rules(options, proposed, frame)
    with replacing(out) as file:
        file.write(proposed.model_dump_json(indent=1).encode())
    say_dangers(frame, proposed)
    say_violations(frame, proposed)
    for rule in suggest_rules(proposed):
        print(f"suggestion: --rule '{rule.text}'", file=sys.stderr)
    for column in proposed.columns:
        if column.note:
            print(f"note: `{column.name}`: {column.note}", file=sys.stderr)
    print(
        f"wrote {out}: {len(proposed.columns)} columns, read from the rows and rounded. Keep it "
        "inside; check bounds and categories, change what is not public, then pass it as --schema"
    )
    if options.json:
        print_json({"out": str(out), "columns": len(proposed.columns)})
    return 0
