"""audit: a lower bound on a model's ε, from attacks on its own code; exit 1 refutes a claim."""

from __future__ import annotations

import argparse
import math
import secrets
import sys
from dataclasses import replace

from core.audit.audit import LONG, QUICK, Audit, Trial, run_audit
from core.cli.common import print_json
from core.models.registry import cards
from core.runs.execution.threads import limit_threads
from core.runs.workspace import Workspace
from core.schema.person import MOST_ROWS
from core.services.evidence.documents import keep_audit
from core.services.synthesis.options import RefusedError

REFUTED = 1
FEWEST = 8  # canaries: with fewer no guess refutes anything


def audit(options: argparse.Namespace) -> int:
    """Attack a model and print what was found; 1 when its claim is refuted, else 0."""
    known = [card.id for card in cards()]
    if options.model not in known:
        raise RefusedError(f"no model is called '{options.model}'; there are: {', '.join(known)}")
    if not (math.isfinite(options.epsilon) and options.epsilon > 0.0):
        raise RefusedError("--epsilon must be positive and finite: no claim, nothing to refute")
    if options.delta is not None and not 0.0 < options.delta < 1e-2:
        raise RefusedError(f"--delta must lie between 0 and 0.01, not {options.delta:g}")
    sizes = LONG if options.long else QUICK
    if not 1 <= options.rows_per_person <= MOST_ROWS:
        raise RefusedError(
            f"--rows-per-person must lie in 1 to {MOST_ROWS}, not {options.rows_per_person}"
        )
    sizes = replace(sizes, rows=options.rows_per_person)
    if options.canaries is not None:
        if options.canaries < FEWEST:
            raise RefusedError(f"--canaries must be {FEWEST} or more, not {options.canaries}")
        sizes = replace(sizes, canaries=options.canaries)
    limit_threads()
    trial = Trial(
        options.model,
        options.epsilon,
        delta=options.delta,
        seed=secrets.randbits(31) if options.seed is None else options.seed,
        sizes=sizes,
    )
    result = run_audit(trial, tell=lambda words: print(words, file=sys.stderr, flush=True))
    lines = _lines(result)
    if trial.counted and not options.long:
        lines.append(
            "The counts that its rows are fitted to were left out: scan_focus makes the same ones, "
            "audit it too, or take --long."
        )
    for line in lines:
        print(line)
    if options.json:
        print_json(result.as_json())
    keep_audit(Workspace.default_home(), result)
    return REFUTED if result.refuted else 0


def _lines(result: Audit) -> list[str]:
    """What was found, for people."""
    lines = [
        f"{part.name}: ε ≥ {part.lower_bound:.3f} ({part.confidence:.1%} sure)"
        for part in result.parts
    ]
    lines.append(
        f"together: ε ≥ {result.lower_bound:.3f} at δ {result.delta:.3g}, {result.confidence:.0%} "
        f"sure; claimed: ε {result.claimed:g}"
    )
    if result.power is not None:
        lines.append(
            f"the same attacks on the same mechanism with a tenth of its noise: ε ≥ "
            f"{result.power:.3f} (higher sees more)"
        )
    if result.refuted:
        lines.append(
            f"REFUTED: {result.model} does not keep the ε it claims. Do not release what it makes."
        )
    else:
        lines.append("Not refuted. This proves nothing: an attack that fails is no proof.")
    return lines
