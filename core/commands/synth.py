"""plan and synth: what a run would spend, and the run itself, in this process."""

from __future__ import annotations

import argparse
import json
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from core.commands.common import (
    CommandError,
    claim_of,
    claim_words,
    domain_words,
    out_path,
    print_json,
    read_with_schema,
)
from core.models.synthesizer import FitEvent, Wish, synthesizer
from core.privacy.ledger import Entry, Ledger
from core.privacy.plan import Plan
from core.runs.accounts import account_of, limited, open_account, people_of
from core.runs.pipeline import Job, Outcome, choose_device, execute, limit_threads
from core.runs.reporter import Pace, Stopwatch, peak_memory_mb
from core.runs.service import make_plan
from core.runs.store import RunStore
from core.runs.workspace import Workspace
from core.table.schema import Schema
from core.table.write import write_csv, write_parquet

__all__ = ["plan", "synth"]

SPEAK_SECONDS = 5.0
OUT_ENDINGS = (".csv", ".parquet")
NOT_PRIVATE = "not-private"


def plan(options: argparse.Namespace) -> int:
    frame, schema = read_with_schema(options)
    plan = plan_for(options, schema, len(frame))
    print(f"{plan.model} on {plan.n} records: {claim_words(claim_of(plan.guarantee))}")
    for phase in plan.phases:
        rate = "" if phase.sampling_rate is None else f", sampling rate {phase.sampling_rate:.4g}"
        noise = f"noise multiplier {phase.noise_multiplier:.4g}"
        print(f"  {phase.share:4.0%}  {phase.title}: {phase.count} × {noise}{rate}")
    print(f"domain: {domain_words(options)}")
    if options.json:
        more = {"rows": plan.n, "digest": plan.digest, "settings": plan.settings}
        phases = [phase.model_dump(mode="json") for phase in plan.phases]
        claim = claim_of(plan.guarantee)
        domain = domain_words(options)
        print_json(claim | {"model": plan.model, "phases": phases, "domain": domain} | more)
    return 0


def plan_for(options: argparse.Namespace, schema: Schema, n: int) -> Plan:

    if not options.epsilon > 0.0:  # nan too
        raise CommandError(f"--epsilon must be above 0, or inf, not {options.epsilon:g}")
    if options.delta is not None and not 0.0 < options.delta < 1.0:
        raise CommandError(f"--delta must lie between 0 and 1, not {options.delta:g}")
    try:
        return make_plan(
            schema,
            n,
            model=options.model,
            epsilon=options.epsilon,
            delta=options.delta,
            settings=settings_of(options.settings),
        )
    except (ValueError, KeyError) as error:  # a plan touches no row, so its words are plain
        raise CommandError(str(error.args[0] if error.args else error)) from None


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are numbers, true or false.

    >>> settings_of(["steps=500", "rate=0.1", "fast=true"])
    {'steps': 500, 'rate': 0.1, 'fast': True}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            value = json.loads(text.lower())
        except json.JSONDecodeError:
            value = None
        if not name or not equals or not isinstance(value, bool | int | float):
            raise CommandError(f"--settings takes NAME=NUMBER or NAME=true, not '{pair}'")
        settings[name] = value
    return settings


class _Console:
    """A fit's observer that says on stderr how far it is."""

    def __init__(self, *, quiet: bool) -> None:
        self.watch = Stopwatch()
        self._pace = Pace(SPEAK_SECONDS)
        self._quiet = quiet

    def __call__(self, event: FitEvent) -> Wish:
        data = event.data
        if event.kind == "phase":
            self.watch.enter(data["name"])
            self._say(f"{data['title']} …")
        elif event.kind == "note":
            self._say(data["text"])
        elif event.kind == "progress" and self._pace.due():
            self._say(f"  step {data['step']} of {data['steps']}")
        return Wish.GO_ON

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)


def synth(options: argparse.Namespace) -> int:

    began = time.monotonic()
    out = _out(options.out, options.table, private=math.isfinite(options.epsilon))
    if options.rows is not None and options.rows < 1:
        raise CommandError("--rows must be at least 1")
    console = _Console(quiet=options.quiet)
    console.watch.enter("table")
    frame, schema = read_with_schema(options)
    plan = plan_for(options, schema, len(frame))
    limit_threads()
    device = choose_device(options.device)
    outcome, ledger_words = _fit(
        options, frame, schema=schema, plan=plan, device=device, console=console,
        workspace=Workspace.default(),
    )  # fmt: skip
    console.watch.enter("write")
    synthetic = outcome.synthetic
    (write_csv if out.suffix == ".csv" else write_parquet)(synthetic, out)
    console.watch.enter(None)
    claim = claim_of(outcome.guarantee)
    print(f"wrote {out}: {len(synthetic)} records, {synthetic.shape[1]} columns")
    if out != options.out:
        print("the file's name says that it has no differential privacy")
    print(claim_words(claim))
    print(f"domain: {domain_words(options)}")
    print(f"ledger: {ledger_words}")
    if options.json:
        print_json(
            claim
            | {
                "model": plan.model,
                "rows": len(synthetic),
                "columns": synthetic.shape[1],
                "seconds": console.watch.seconds | {"total": round(time.monotonic() - began, 3)},
                "peak_memory_mb": round(peak_memory_mb(0.0), 1),
                "device": device,
                "phases": outcome.certificate["phases"],
                "domain": domain_words(options),
                "ledger": ledger_words,
                "lmdp": None,
                "out": str(out),
            }
        )
    return 0


def _fit(
    options: argparse.Namespace,
    frame: Any,
    *,
    schema: Schema,
    plan: Plan,
    device: str,
    console: _Console,
    workspace: Workspace,
) -> tuple[Outcome, str]:
    """What came out, and what the ledger says of it."""


    people = people_of(frame)
    with (
        RunStore(workspace) as store,
        tempfile.TemporaryDirectory(prefix="synth-", dir=workspace.home) as folder,
    ):
        ledger = Ledger(store.engine)

        def debit() -> Entry:
            open_account(ledger, people, len(frame))
            key = f"cli-{secrets.token_hex(8)}"
            confirmed = not plan.budget.private  # `--epsilon inf` is said in so many words
            return ledger.debit(people, plan, key, allow_non_private=confirmed)

        job = Job(
            table=options.table.name,
            plan=plan,
            schema=schema,
            rows=len(frame) if options.rows is None else options.rows,
            seed=options.seed,
            device=device,
            folder=Path(folder),
            inferred=options.schema is None,
        )
        outcome = execute(
            job, lambda names: frame[list(names)], debit=debit, observe=console, find=synthesizer
        )
        return outcome, _ledger_words(ledger, people, plan.budget.delta)


def _ledger_words(ledger: Ledger, people: str, delta: float) -> str:

    opened = account_of(ledger, people)
    if opened is None or not limited(opened):
        return "recorded; no limit set for this table"
    return f"recorded; {ledger.left(people).words(delta)} is left of ε {opened.limit:g}"
