"""Synthetic tables as files: written where `--out` says, marked where they claim no privacy."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd

from core.cli.common import CommandError
from core.schema.schema import Schema
from core.writing.tables import write_csv_parts, write_parquet_parts
from core.writing.whole_files import replacing

__all__ = ["OUT_ENDINGS", "mark_without_privacy", "require_flag", "write_table"]

OUT_ENDINGS = (".csv", ".parquet")
MARK = "not-private.json"


def write_table(
    frame: pd.DataFrame, out: Path, *, schema: Schema, escape_formulas: bool = False
) -> None:
    """Write CSV or Parquet, by the file's ending, whole or not at all.

    Args:
      schema: says how cells are written and of which type they are.
      escape_formulas: see `write_csv_parts`.
    """
    if out.suffix.lower() == ".csv":
        write_csv_parts([frame], out, schema=schema, escape_formulas=escape_formulas)
    else:
        write_parquet_parts([frame], out, schema=schema)


def require_flag(options: argparse.Namespace) -> None:
    """Refuse rows without differential privacy unless `--without-privacy` was given.

    Raises:
      CommandError: it was not; nothing was read or written.
    """
    if not options.without_privacy:
        raise CommandError(
            "these rows would have no differential privacy, so nothing was read or written; say "
            f"--without-privacy to have them, and a file OUT.{MARK} beside them that says so"
        )


def mark_without_privacy(out: Path, certificate: dict[str, Any]) -> Path:
    """Write, before the table, the certificate that says it has no differential privacy.

    Args:
      out: where the table goes; the mark has the same name and an ending of its own.
    """
    mark = out.with_name(f"{out.name}.{MARK}")
    with replacing(mark) as file:
        file.write(json.dumps(certificate, indent=2, ensure_ascii=False).encode())
    return mark
