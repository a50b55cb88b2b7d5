"""What a launcher says to the sampling process, and what that answers."""

from __future__ import annotations

from core.runs.execution.launcher import SampleRequest

__all__ = ["REFUSED", "arguments", "facts_name"]

REFUSED = 3  # exit status: the sentence on stdout says why such rows cannot be had


def arguments(request: SampleRequest) -> list[str]:
    """Of the process's command line, beside run, home and file."""
    shape = request.shape
    words = ["--rows", str(request.rows), "--format", request.format]
    words += ["--seed", str(request.seed)] if request.seed is not None else []
    words += ["--escape-formulas"] if request.escape_formulas else []
    words += [f"--where={text}" for text in shape.where]  # texts may begin with a dash
    words += [f"--share={shape.share}"] if shape.share is not None else []
    return words + (["--fill-missing"] if shape.fill_missing else [])


def facts_name(table: str) -> str:
    """The file that says what became of a request, beside that of the table that was made."""
    return f"{table}.json"
