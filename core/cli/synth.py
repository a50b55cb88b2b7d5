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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from core.cli.buying import Parts, buy, known_purchases, parts, say_purchase, to_buy
from core.cli.common import (
    ALL,
    CommandError,
    claim_of,
    claim_words,
    domain_words,
    lmdp_words,
    out_path,
    print_json,
    read_with_schema,
    require_declaration,
    say_dangers,
)
from core.cli.people import account_for, foresee
from core.models.events import FitEvent, Wish
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.quality.metrics.noisy import NoisyCells, NoisyScore, score
from core.runs.accounts.account import limited, opening_entry
from core.runs.execution.job import Job
from core.runs.execution.noisy_scores import NOISY_CELLS, count_synthetic
from core.runs.execution.pipeline import Outcome, choose_device, execute, limit_threads
from core.runs.execution.reporter import Pace, Stopwatch, peak_memory_mb
from core.runs.storage.artefacts import LocalArtefacts, load_json
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import Workspace
from core.services.planning import PlanRequest, make_plan
from core.services.reviews import inside_view_words
from core.table.buying import stand_in, unbought
from core.table.holdout import people_trained_on, split_rows
from core.table.io.write import write_csv, write_parquet
from core.table.layout.layout import Layout
from core.table.person import Person
from core.table.schema import Schema

__all__ = ["plan", "synth"]

SPEAK_SECONDS = 5.0
OUT_ENDINGS = (".csv", ".parquet")
NOT_PRIVATE = "not-private"
ESCAPED = "text that a spreadsheet would run as a formula has an apostrophe in front"


def plan(options: argparse.Namespace) -> int:
    """What a run would spend; spends nothing."""
    _check_amounts(options)
    frame, schema = read_with_schema(options)
    schema = known_purchases(options, frame, to_buy(options, schema))
    n = _records(split_rows(frame, *_kept_out(schema))[0], schema)
    split = parts(options, schema, n)
    bought = say_purchase(schema, n, split)
    planned = _plan_for(options, schema if bought is None else stand_in(schema), n, split)
    if planned.budget.private:
        say_dangers(frame, schema)
    claim, domain = claim_of(planned.guarantee), domain_words(options)
    print(f"{planned.model} on {planned.n} {_many(planned)}: {claim_words(claim)}")
    for phase in planned.phases:
        rate = "" if phase.sampling_rate is None else f", sampling rate {phase.sampling_rate:.4g}"
        noise = f"noise multiplier {phase.noise_multiplier:.4g}"
        print(f"  {phase.share:4.0%}  {phase.title}: {phase.count} × {noise}{rate}")
    if bought is not None:
        print(f"together with the purchase: ε {options.epsilon:.4g}, by adding up")
    print(f"domain: {domain}")
    refused = foresee(options, frame, schema, planned)
    if refused is not None and not options.confirm_shift.strip():
        print(f"would be refused: {refused} (--confirm-shift WORDS)")
    if options.json:
        phases = [phase.model_dump(mode="json") for phase in planned.phases]
        unit = None if planned.unit is None else planned.unit.words
        facts = {
            "rows": planned.n,
            "unit": unit,
            "digest": planned.digest,
            "settings": planned.settings,
            "purchase": bought,
        }
        print_json(claim | {"model": planned.model, "phases": phases, "domain": domain} | facts)
    return 0


def _kept_out(schema: Schema) -> tuple[float, Person | None]:
    return schema.holdout, schema.person


def _records(trained: pd.DataFrame, schema: Schema) -> int:
    """How many records rows are: people where rows are put together."""
    person = schema.person
    if person is None or not person.grouped:
        return len(trained)
    return people_trained_on(trained[list(person.columns)], 0.0)


def _many(plan: Plan) -> str:
    """What the plan counts, and what it protects where that was said."""
    if plan.unit is None:
        return "records"
    return f"{'people' if plan.unit.grouped else 'records'}, {plan.unit.words}"


def _check_amounts(options: argparse.Namespace) -> None:
    """Refuse amounts out of range, before anything is read."""
    if not options.epsilon > 0.0:  # nan too
        raise CommandError(f"--epsilon must be above 0, or inf, not {options.epsilon:g}")
    if options.score is not None and not 0.0 < options.score <= 0.5:
        raise CommandError(f"--score must lie in 0 to 0.5, not {options.score:g}")
    if options.delta is not None and not 0.0 < options.delta < 1.0:
        raise CommandError(f"--delta must lie between 0 and 1, not {options.delta:g}")


def _plan_for(options: argparse.Namespace, schema: Schema, n: int, split: Parts) -> Plan:
    settings = settings_of(options.settings)
    try:
        return make_plan(
            schema,
            n,
            PlanRequest(
                model=options.model,
                epsilon=split.epsilon,
                delta=split.delta,
                settings=settings,
                alpha=0.05 if options.alpha is None else options.alpha,
                shift=options.shift,
                certificate=options.certificate,
                attempts=options.attempts,
                score=options.score,
            ),
        )
    except (ValueError, KeyError) as error:  # a plan touches no row, so its words are plain
        raise CommandError(str(error.args[0] if error.args else error)) from None


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are numbers, true, false or a name.

    >>> settings_of(["steps=500", "rate=0.1", "fast=true", "base=ppem"])
    {'steps': 500, 'rate': 0.1, 'fast': True, 'base': 'ppem'}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            value = json.loads(text.lower())
        except json.JSONDecodeError:
            value = text if text.isidentifier() else None
        if not name or not equals or not isinstance(value, bool | int | float | str):
            raise CommandError(
                f"--settings takes NAME=NUMBER, NAME=true or NAME=WORD, not '{pair}'"
            )
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
    """Make a synthetic table in this process and write it, whole or not at all."""
    began = time.monotonic()
    out = _synthetic_path(options)
    if options.rows is not None and options.rows < 1:
        raise CommandError("--rows must be at least 1")
    _check_amounts(options)
    if math.isfinite(options.epsilon) and options.buy != ALL:  # else nothing false is claimed
        require_declaration(options)
    console = _Console(quiet=options.quiet)
    console.watch.enter("table")
    frame, schema = read_with_schema(options)
    schema = to_buy(options, schema)
    trained, _ = split_rows(frame, *_kept_out(schema))
    n = _records(trained, schema)
    # tried before anything is bought, so that no purchase is paid for a run that cannot be planned
    plan = _plan_for(options, stand_in(schema), n, parts(options, schema, n))
    if plan.budget.private:
        say_dangers(frame, schema)
    limit_threads()
    device = choose_device(options.device)
    with RunStore(Workspace.default()) as store:
        # whose people these are is asked of all records, those kept out too
        people = account_for(options, store, frame)
        if unbought(schema).names:
            schema, split = buy(options, store, people, trained, schema, n)
            plan = _plan_for(options, schema, n, split)
        with tempfile.TemporaryDirectory(prefix="synth-", dir=store.workspace.home) as folder:
            job = _job(options, schema, plan, device=device, people=people, folder=Path(folder))
            outcome = execute(job, lambda names: trained[list(names)], store=store, observe=console)
            score = _score(outcome, job)
        spent = _ledger_words(Ledger(store.engine), people)
        selection = inside_view_words(store, people) if outcome.guarantee.private else ""
    console.watch.enter("write")
    _write(outcome, out, schema=schema, escape_formulas=options.escape_formulas)
    console.watch.enter(None)
    claim, domain = claim_of(outcome.guarantee), domain_words(options)
    extra = [selection] if selection else []
    _say_outcome(options, plan, outcome, out=out)
    print(f"domain: {domain}\nledger: {spent}")
    certificate = outcome.privacy_certificate
    said = [ESCAPED] if options.escape_formulas else []
    for line in [*lmdp_words(certificate["lmdp"]), *extra, *_score_lines(score), *said]:
        print(line)
    if options.json:
        total = {"total": round(time.monotonic() - began, 3)}
        result = {
            "seconds": console.watch.seconds | total,
            "peak_memory_mb": round(peak_memory_mb(), 1),
            "device": device,
            "domain": domain,
            "conditions": [*certificate["conditions"], *extra],
            "ledger": spent,
            "score": None if score is None else asdict(score),
            "out": str(out),
            "formulas_escaped": options.escape_formulas,
        }
        print_json(claim | _facts(plan, outcome) | result)
    return 0


def _say_outcome(options: argparse.Namespace, plan: Plan, outcome: Outcome, *, out: Path) -> None:
    """Print what was made, and what it claims.

    Args:
      options: of the command line.
      plan: that ran.
      outcome: of it.
      out: the file that holds the table.
    """
    rows, columns = outcome.synthetic.shape
    print(f"wrote {out}: {rows} records, {columns} columns")
    if out != options.out:
        print("the file's name says that it has no differential privacy")
    unit = "" if plan.unit is None else f", {plan.unit.words}"
    print(f"{claim_words(claim_of(outcome.guarantee))}{unit}")
    for one in outcome.privacy_certificate.get("purchases", ()):
        print(
            f"of it ε {one['epsilon_zero_out']:.4g} bought bounds, lists and mappings "
            f"(ledger entry {one['ledger_entry']})"
        )


def _facts(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """What the last line says of the run, besides what it claims and took."""
    rows, columns = outcome.synthetic.shape
    certificate = outcome.privacy_certificate
    return {
        "model": plan.model,
        "rows": rows,
        "columns": columns,
        "phases": certificate["phases"],
        "unit": None if plan.unit is None else plan.unit.words,
        "purchases": certificate.get("purchases", []),
        "lmdp": certificate["lmdp"],
    }


def _write(outcome: Outcome, out: Path, *, schema: Schema, escape_formulas: bool) -> None:
    if out.suffix.lower() == ".csv":
        write_csv(outcome.synthetic, out, schema=schema, escape_formulas=escape_formulas)
    else:
        write_parquet(outcome.synthetic, out, schema=schema)


def _synthetic_path(options: argparse.Namespace) -> Path:
    """Where the synthetic table will be; without privacy its name says so."""
    path: Path = options.out
    if not math.isfinite(options.epsilon) and NOT_PRIVATE not in path.name:
        path = path.with_name(f"{path.stem}.{NOT_PRIVATE}{path.suffix}")
    if options.escape_formulas and path.suffix.lower() != ".csv":
        raise CommandError("--escape-formulas is for a .csv file; a .parquet file runs no formula")
    return out_path(path, endings=OUT_ENDINGS, inputs=[options.table])


def _job(
    options: argparse.Namespace,
    schema: Schema,
    plan: Plan,
    *,
    device: str,
    people: str,
    folder: Path,
) -> Job:
    """One command's run; its model and checkpoint go with the folder."""
    return Job(
        table=options.table.name,
        plan=plan,
        schema=schema,
        rows=plan.n if options.rows is None else options.rows,
        seed=options.seed,
        device=device,
        artefacts=LocalArtefacts(folder),
        people=people,
        debit_key=f"cli-{secrets.token_hex(8)}",
        allow_non_private=not plan.budget.private,  # `--epsilon inf` says it in words
        shift_words=options.confirm_shift,
        inferred=options.schema is None,
    )


def _score(outcome: Outcome, job: Job) -> NoisyScore | None:
    """How near the table is by noisy counts, where the plan bought some; opens no real row."""
    domain = Layout(job.schema.domain()).domain
    synthetic = count_synthetic(outcome.modelled, domain, job.plan.n)
    released = load_json(job.artefacts, NOISY_CELLS, NoisyCells)
    return None if synthetic is None or released is None else score(released, synthetic)


def _score_lines(measured: NoisyScore | None) -> list[str]:
    if measured is None:
        return []
    return [
        f"noisy score: {measured.value:.4f} ± {measured.half_width:.4f} (mean distance of columns "
        "and pairs beyond what noise shows; lower is closer; covered by ε)"
    ]


def _ledger_words(ledger: Ledger, people: str) -> str:
    opened = opening_entry(ledger, people)
    if opened is None or not limited(opened):
        return "recorded; no limit was set for these people"
    return f"recorded; {ledger.left(people).share:.0%} of the limit ε {opened.limit:g} is left"
