"""schema: the proposed schema of a table as a file that the steward checks and changes."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict

from pydantic import ValidationError

from core.cli.common import print_json
from core.cli.shared_options import files
from core.proposing.rule_suggestions import suggest_rules
from core.proposing.schema_matching import adopted, compare
from core.schema.form import DELIMITERS, FileForm
from core.schema.schema import Schema
from core.services.synthesis import table_files
from core.services.synthesis.options import RefusedError
from core.services.synthesis.schema_options import (
    say_dangers,
    say_violations,
    with_rules,
    with_target,
)
from core.writing.whole_files import replacing


def schema(options: argparse.Namespace) -> int:
    """Write the proposal; a column that is changed in the file counts as set by the steward."""
    if options.json_schema:
        return _json_schema(options)
    if options.table is None:
        raise RefusedError("name a table and --out FILE.json, or ask for --json-schema")
    if options.out is None:
        raise RefusedError("say with --out FILE.json where the schema goes")
    out = table_files.out_path(options.out, endings=(".json",), inputs=files(options.table))
    rows, proposed = table_files.read_file(options.table, query=options.query, form=_form(options))
    comparison = None
    if options.like is not None:
        saved = table_files.read_schema(options.like)
        comparison = compare(proposed, saved)
        print(f"like {options.like.name}: {comparison.words}", file=sys.stderr)
        for name, what in comparison.changed.items():
            print(
                f"note: `{name}`: as last time, not as proposed: {', '.join(what)}", file=sys.stderr
            )
        proposed = adopted(proposed, saved)
    frame = table_files.typed_frame(rows, proposed)
    proposed = with_rules(with_target(proposed, options.target), options.rule or (), frame)
    with replacing(out) as file:
        file.write(proposed.model_dump_json(indent=1).encode())
    say_dangers(frame, proposed)
    table_files.say_misfits(rows, proposed.columns)
    say_violations(frame, proposed)
    for rule in suggest_rules(proposed, frame):
        print(f"suggestion: --rule {shlex.quote(rule.text)} (holds in the rows)", file=sys.stderr)
    for column in proposed.columns:
        if column.note:
            print(f"note: `{column.name}`: {column.note}", file=sys.stderr)
    print(
        f"wrote {out}: {len(proposed.columns)} columns, read from the rows and rounded. Keep it "
        "inside; check bounds and categories, change what is not public, then pass it as --schema"
    )
    if options.json:
        told = {"out": str(out), "columns": len(proposed.columns)}
        print_json(told | {"like": None if comparison is None else asdict(comparison)})
    return 0


def _form(options: argparse.Namespace) -> FileForm:
    """How the file is written, as far as the command says it."""
    marks = dict(zip(("comma", "semicolon", "tab", "bar"), DELIMITERS, strict=True))
    asked = {"delimiter": marks.get(options.delimiter), "encoding": options.encoding}
    try:
        return FileForm.model_validate({name: text for name, text in asked.items() if text})
    except ValidationError:
        raise RefusedError("--encoding takes a name such as utf-8 or cp1252") from None


def _json_schema(options: argparse.Namespace) -> int:
    """Print what a schema file may hold, or write it."""
    text = json.dumps(Schema.model_json_schema(), indent=1, ensure_ascii=False)
    if options.out is None:
        print(text)
    else:
        with replacing(table_files.out_path(options.out, endings=(".json",), inputs=[])) as file:
            file.write(text.encode())
        print(f"wrote {options.out}")
    if options.json:
        print_json(Schema.model_json_schema())
    return 0
