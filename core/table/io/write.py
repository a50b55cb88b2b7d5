"""Frames to files, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from core.table.io.replacing import replacing

__all__ = ["csv_text", "escape_formulas", "write_csv", "write_parquet"]

Series: TypeAlias = "pd.Series[Any]"

# What spreadsheets run (OWASP "CSV injection"); those of East Asia take the wide signs too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
NUMBER = r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"


def write_csv(frame: pd.DataFrame, path: Path, *, escape_formulas: bool = False) -> None:
    """Write UTF-8 CSV with a header, "." decimals and empty cells for absent values.

    Args:
      frame: what `read_table` gives back from the file, dates as text excepted.
      path: replaced only when the whole file has been written.
      escape_formulas: put an apostrophe before text a spreadsheet would run as a formula; the
        file then no longer reads back as it was.
    """
    with replacing(path) as file:
        (_escaped(frame) if escape_formulas else frame).to_csv(
            file, index=False, encoding="utf-8", lineterminator="\n"
        )


def csv_text(frame: pd.DataFrame, *, escape_formulas: bool = False) -> str:
    """What `write_csv` writes, as text; for small frames."""
    shown = _escaped(frame) if escape_formulas else frame
    return str(shown.to_csv(index=False, lineterminator="\n"))


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write Parquet without an index; the path is replaced only when the whole file is written."""
    with replacing(path) as file:
        frame.to_parquet(file, index=False)


def escape_formulas(text: Series) -> Series:
    """Text cells made inert for spreadsheets; numbers are inert and keep their sign.

    >>> escape_formulas(pd.Series(["=1+1", "plain", "-5", "-5+1"])).tolist()
    ["'=1+1", 'plain', '-5', "'-5+1"]
    """
    runs = text.str.startswith(FORMULA_STARTS, na=False) & ~text.str.fullmatch(NUMBER, na=True)
    return text.mask(runs, "'" + text)


def _escaped(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with text cells and headers made inert; numbers keep their sign."""
    out = frame.copy(deep=False)
    for name in out.columns:
        dtype = out[name].dtype
        if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
            out[name] = out[name].astype("str")
        if pd.api.types.is_string_dtype(out[name].dtype):
            out[name] = escape_formulas(out[name])
    out.columns = pd.Index(escape_formulas(pd.Series(out.columns, dtype="str")))
    return out
