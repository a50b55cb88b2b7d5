"""Recipe: a run, or rows drawn from it, as the command and the Python that ask for just that."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.models.registry import synthesizer
from core.privacy.plan import Plan
from core.runs.execution.launcher import SampleRequest
from core.runs.execution.noisy_scores import SCORE
from core.runs.execution.review_histograms import REVIEW
from core.runs.records import RunRecord
from core.services.planning import PlanRequest

__all__ = ["Code", "option_words", "request_of_plan", "run_code", "sample_code"]

FILES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".xls", ".gz", ".zip")
SCHEMA, OUT, SAVE = "schema.json", "synthetic.csv", "run"


@dataclass(frozen=True)
class Code:
    """The same request twice: for a terminal, and for a program."""

    command: str
    python: str


def request_of_plan(plan: Plan) -> PlanRequest:
    """What to ask for to get a plan again."""
    alpha = 0.05 if plan.protection is None else plan.protection.alpha
    protects = plan.protection is not None and synthesizer(plan.model).card.protects
    shares = {phase.name: phase.share for phase in plan.phases}
    return PlanRequest(
        model=plan.model,
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        settings={k: v for k, v in plan.settings.items() if not (protects and k == "alpha")},
        alpha=alpha,
        shift=None if plan.protection is None else plan.protection.shift,
        certificate=None if plan.protection is None else plan.protection.certificate,
        attempts=plan.attempts,
        review=shares.get(REVIEW.name),
        score=shares.get(SCORE.name),
    )


def run_code(
    table: str,
    request: PlanRequest,
    *,
    rows: int,
    seed: int | None,
    device: str,
    account_id: str,
    shift_words: str = "",
    unit_words: str = "",
) -> Code:
    """The command `synth` and the function `synthesize` for one run.

    Args:
      table: its name; the file is called so.
      request: what is asked of the plan.
      seed: of data-free randomness; None draws one.
      device: "auto", "cpu" or "cuda".
      shift_words: what the steward wrote to allow a release that betrays hidden distributions.
      unit_words: what the steward wrote to allow a release that protects another unit.
    """
    asked = {
        "model": request.model,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "settings": request.settings,
        "alpha": request.alpha if request.alpha != 0.05 else None,
        "shift": request.shift,
        "certificate": request.certificate,
        "attempts": request.attempts if request.attempts != 1 else None,
        "review": request.review,
        "score": request.score,
        "people": account_id or None,
        "confirm_shift": shift_words or None,
        "confirm_unit": unit_words or None,
        "rows": rows,
        "seed": seed,
        "device": device if device != "auto" else None,
        "save": SAVE if request.review is not None else None,
        "without_privacy": True if request.epsilon == math.inf else None,
    }
    options = {"schema": SCHEMA, **{k: v for k, v in asked.items() if v is not None and v != {}}}
    file = table if table.lower().endswith(FILES) else f"{table}.csv"
    command = ["synth", file, *option_words({**options, "out": OUT})]
    python = (
        "from core.api import read_table, synthesize\n\n"
        f"frame = read_table({file!r}, schema={SCHEMA!r})\n"
        f"result = synthesize(\n    frame,\n{_arguments({'name': file, **options})})\n"
        f"result.write({OUT!r})"
    )
    return Code(_command(command), python)


def sample_code(run: RunRecord, request: SampleRequest, seeds: Sequence[int], *, out: str) -> Code:
    """The command and the function `sample` for rows drawn from a run.

    Args:
      seeds: one for each table; none for one table of a drawn seed.
    """
    shape = request.shape
    asked = {
        "rows": request.rows,
        "where": list(shape.where),
        "share": shape.share,
        "fill_missing": shape.fill_missing,
        "without_privacy": not run.private,
    }
    options = {name: value for name, value in asked.items() if value}
    written = {"seed": list(seeds), "escape_formulas": request.escape_formulas, "out": out}
    command = [
        "sample",
        run.id,
        *option_words({**options, **written}),
    ]
    first = {"seed": seeds[0]} if seeds else {}
    file = str(Path(out).with_suffix(".csv")) if out.endswith(".zip") else out
    escaped = ", escape_formulas=True" if request.escape_formulas else ""
    python = (
        "from core.api import sample\n\n"
        f"result = sample(\n    {run.id!r},\n{_arguments({**options, **first})})\n"
        f"result.write({file!r}{escaped})"
    )
    return Code(_command(command), python)


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Options by name as words of the command line.

    >>> option_words({"rows": 5, "where": ["a=b", "-c=1"], "fill_missing": True, "seed": None})
    ['--rows=5', '--where=a=b', '--where=-c=1', '--fill-missing']
    """
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={_json(one)}" for key, one in value.items()]
        else:
            several = isinstance(value, Sequence) and not isinstance(value, str)
            words += [f"{option}={one}" for one in (value if several else [value])]
    return words


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _command(words: Sequence[str]) -> str:
    """One command in lines that a shell puts together."""
    quoted = [shlex.quote(word) for word in words]
    first = f"python -m core.cli {' '.join(quoted[:2])}"
    return " \\\n    ".join([first, *quoted[2:]])


def _arguments(options: Mapping[str, Any]) -> str:
    """Keyword arguments, a line each."""
    lines = []
    for name, value in options.items():
        text = "float('inf')" if value == math.inf else repr(value)
        lines.append(f"    {name}={text},\n")
    return "".join(lines)
