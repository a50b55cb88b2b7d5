"""The log of operations: JSON lines for machines, which hold no value by how they are made.

`record` takes fields of `FIELDS` alone and checks the form of each: ids, states, numbers. Nothing
else gets in: no cell, no label or name that a person wrote, no address. Of what libraries log, and
of what is raised, a line says where and of which kind, never the words, since words may quote a
value. Without FACSIMILE_LOG nothing is logged here and the console stays as it was.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

VARIABLE = "FACSIMILE_LOG"
WITHHELD = "withheld"
# as `core.runs.events.State`, which imports what a server starts without
STATES = ("queued", "running", "paused", "done", "failed", "cancelled", "lost")
FRAMES = 12  # of a fault, innermost last
_log = logging.getLogger("facsimile")
_bound: dict[str, Any] = {}  # fields that stand in every line of this process


def _matching(pattern: str) -> Callable[[Any], bool]:
    form = re.compile(pattern)
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


def _number(value: Any) -> bool:
    """A finite number, or None where there is none, such as the ε of no differential privacy."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and math.isfinite(value))


_ID = _matching(r"[0-9a-f]{6,32}")
# What a line may say, each with the form that it must have. No size of what was read from people:
# how many rows they have, or how long a file about them is, is nobody's outside.
FIELDS: dict[str, Callable[[Any], bool]] = {
    "run": _ID,
    "table": _ID,
    "entry": _matching(r"\d+-[0-9a-f]{12}"),
    "state": _matching("|".join(STATES)),
    "model": _matching(r"[a-z][a-z0-9_]{1,30}"),
    "device": _matching("cpu|cuda"),
    "roles": _matching(r"(none|steward|reviewer|privacy_officer)(,[a-z_]+)*"),
    "columns": _number,
    "epsilon": _number,
    "delta": _number,
}


def wanted() -> str:
    """What FACSIMILE_LOG asks for: "" for nothing, "json" for the console, else a file's path."""
    return os.environ.get(VARIABLE, "").strip()


def configure(**fields: Any) -> None:
    """Send this process's log to where FACSIMILE_LOG says, as JSON lines; nothing when unset.

    What libraries set up for themselves is undone, so that no line goes past the form.

    Args:
      **fields: of `FIELDS`, that stand in every line, such as the run that a worker works off.
    """
    where = wanted()
    if not where:
        return
    _bound.update(_checked(fields))
    root = logging.getLogger()
    for logger in map(logging.getLogger, list(root.manager.loggerDict)):
        if logger.handlers:  # without one it is silent already, or its parent speaks for it
            route_to_root(logger)
    handler = logging.StreamHandler(sys.stderr) if where == "json" else _file(where)
    handler.setFormatter(JsonLines())
    root.handlers[:] = [handler]
    _log.setLevel(logging.INFO)


def route_to_root(logger: logging.Logger) -> None:
    """Leave what a logger says to the root's handler alone."""
    logger.handlers.clear()
    logger.propagate = True


def _file(path: str) -> logging.Handler:
    """Appends whole lines, so that servers and workers may share the file; mode 0600."""
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return logging.FileHandler(path, encoding="utf-8")


def record(event: str, **fields: Any) -> None:
    """Log that something happened.

    Args:
      event: a literal of the code, such as "debit".
      **fields: of `FIELDS`; one that has not its form is withheld.

    Raises:
      KeyError: a field that `FIELDS` does not hold.
    """
    if _log.isEnabledFor(logging.INFO) and wanted():
        _log.info(event, extra={"fields": _checked(fields)})


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value if FIELDS[name](value) else WITHHELD for name, value in fields.items()}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; of another logger's only where it arose, not its words."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "pid": record.process,
            "event": "library",
        }
        if record.name == _log.name:
            line["event"] = record.msg
            line |= _bound | getattr(record, "fields", {})
        else:
            line |= {"logger": record.name, "at": f"{record.module}:{record.lineno}"} | _bound
        if record.exc_info and record.exc_info[0] is not None:
            line |= _fault(record.exc_info[0], record.exc_info[2])
        return json.dumps(line)


def _fault(kind: type[BaseException], trace: TracebackType | None) -> dict[str, Any]:
    """What was raised and where; its words may quote a value and stay out."""
    frames = traceback.extract_tb(trace)[-FRAMES:]
    lines = [f"{os.path.basename(one.filename)}:{one.lineno} {one.name}" for one in frames]
    return {"fault": kind.__name__, "frames": lines}
