"""plan and synth: what a run would spend, and the run itself, in this process."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from core.cli.common import (
    claim_of,
    claim_words,
    domain_words,
    lmdp_words,
    print_json,
    synthesis_options,
)
from core.cli.shared_options import files
from core.message import from_json
from core.models.events import FitEvent, Signal
from core.privacy.plan import Plan
from core.proposing.rule_suggestions import MOST_ROWS, sequence_rules
from core.quality.metrics.noisy import NoisyScore
from core.runs.accounts.spending import promised_claim
from core.runs.execution.pipeline import Outcome
from core.runs.execution.reporter import Pace, Stopwatch, peak_memory_mb
from core.schema.coverage import coverage, coverage_facts
from core.schema.schema import Schema
from core.services.declarations import steady_columns
from core.services.estimates.domain_forecast import learned_forecast
from core.services.export import certificate_table, sql_tables
from core.services.linking.files import LinkedFile, keys_of, link_all
from core.services.linking.unlinking import file_names
from core.services.synthesis.accounts import foresee
from core.services.synthesis.locations import PASSWORD, Url
from core.services.synthesis.options import RefusedError, SynthesisOptions
from core.services.synthesis.schema_options import say_dangers, with_schema
from core.services.synthesis.synthesize import check_amounts, check_options, foreseen, synthesize
from core.services.synthesis.table_files import (
    OUT_ENDINGS,
    mark_without_privacy,
    out_path,
    read_file,
    read_schema,
    write_table,
)
from core.writing.sql import SqlTarget

SPEAK_SECONDS = 5.0
ESCAPED = "text that a spreadsheet would run as a formula has an apostrophe in front"


def plan(options: argparse.Namespace) -> int:
    """What a run would spend; spends nothing."""
    asked = synthesis_options(options)
    check_amounts(asked.request)
    frame, schema = read_with_schema(options, asked)
    schema, planned = foreseen(asked, frame, schema)
    if planned.budget.private:
        say_dangers(frame, schema)
    promised = promised_claim(planned, schema)
    claim, domain = claim_of(promised), domain_words(options)
    print(f"{planned.model} on {planned.n} {_many(planned)}: {claim_words(claim)}")
    for phase in planned.phases:
        rate = "" if phase.sampling_rate is None else f", sampling rate {phase.sampling_rate:.4g}"
        noise = f"noise multiplier {phase.noise_multiplier:.4g}"
        print(f"  {phase.share:4.0%}  {phase.title}: {phase.count} × {noise}{rate}")
    lines = learned_forecast(planned, schema)
    for line in lines:
        print(f"  learns '{line.name}': {line.words}")
    print("\n".join((f"domain: {domain}", *promised.conditions)))
    for refused in foresee(asked, frame, schema, planned):
        print(f"would be refused: {refused}")
    if options.json:
        phases = from_json([phase.model_dump(mode="json") for phase in planned.phases])
        unit = None if planned.unit is None else planned.unit.words
        facts = {
            "rows": planned.n,
            "unit": unit,
            "digest": planned.digest,
            "settings": planned.settings,
            "learned": [line.name for line in lines],
            "conditions": promised.conditions,
        }
        print_json(claim | {"model": planned.model, "phases": phases, "domain": domain} | facts)
    return 0


def read_with_schema(
    options: argparse.Namespace, asked: SynthesisOptions
) -> tuple[pd.DataFrame, Schema]:
    """Typed rows of the table that a command names, and their schema."""
    declared = None if options.schema is None else read_schema(options.schema)
    if options.linked is None:
        if options.key is not None:
            raise RefusedError("--key needs --linked")
        rows, read = read_file(options.table, query=options.query, schema=declared)
        frame, schema = with_schema(asked, rows, read)
        _suggest_constants(frame, schema)
        return frame, schema
    if options.key is None:
        raise RefusedError("--linked needs --key, the column that says who")
    paths = [options.table, *options.linked]
    keys = keys_of(options.key, len(options.linked))
    if len(keys) != len(paths):
        raise RefusedError("--key needs one column, or one for each linked file (COL=COL,COL)")
    files = [
        LinkedFile(*read_file(path, query="" if at else options.query), path_name(path), key)
        for at, (path, key) in enumerate(zip(paths, keys, strict=True))
    ]
    linked = link_all(files, order=options.order, most=options.rows_per_person)
    for note in linked.notes:
        print(f"note: {note}", file=sys.stderr)
    own = asked.model_copy(update={"order": None, "rows_per_person": None})
    frame, schema = with_schema(own, linked.rows, declared or linked.schema)
    for rule in sequence_rules(schema, frame):
        print(f"suggestion: --rule {shlex.quote(rule.text)} (holds in the rows)", file=sys.stderr)
    return frame, schema


def _suggest_constants(frame: pd.DataFrame, schema: Schema) -> None:
    """Say which columns never differ within a person, where none is declared to be so."""
    person = schema.person
    if person is None or person.constant or not person.grouped:
        return
    found = steady_columns(frame.head(MOST_ROWS), person.columns)
    if found := [name for name in found if schema[name].modelled]:
        names = shlex.quote(",".join(found))
        print(f"suggestion: --constant {names} (do not differ within a person)", file=sys.stderr)


def path_name(path: Path | Url) -> str:
    """What a table is called, without its file's ending."""
    return path.stem if isinstance(path, Path) else path.name


def _many(plan: Plan) -> str:
    """What the plan counts, and what it protects where that was said."""
    if plan.unit is None:
        return "records"
    return f"{'people' if plan.unit.grouped else 'records'}, {plan.unit.words}"


class _Console:
    """A fit's observer that says on stderr how far it is."""

    def __init__(self, *, quiet: bool) -> None:
        self.watch = Stopwatch()
        self._pace = Pace(SPEAK_SECONDS)
        self._quiet = quiet

    def __call__(self, event: FitEvent) -> Signal:
        data = event.data
        if event.kind == "phase":
            self.watch.enter(data["name"])
            self._say(f"{data['title']} …")
        elif event.kind == "note":
            self._say(data["text"])
        elif event.kind == "progress" and self._pace.due():
            self._say(f"  step {data['step']} of {data['steps']}")
        return Signal.GO_ON

    def _say(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)


def synth(options: argparse.Namespace) -> int:
    """Make a synthetic table in this process and write it, whole or not at all."""
    began = time.monotonic()
    out = _synthetic_path(options)
    asked = synthesis_options(options)
    check_options(asked)
    target = None if options.to is None else SqlTarget(options.to, os.environ.get(PASSWORD, ""))
    console = _Console(quiet=options.quiet)
    console.watch.enter("table")
    frame, schema = read_with_schema(options, asked)
    name = path_name(options.table)
    if target is not None:
        target.check([*(file_names(schema) or [name]), certificate_table(name)])
    synthesis = synthesize(asked, frame, schema, on_event=console)
    outcome = synthesis.outcome
    console.watch.enter("write")
    if not outcome.guarantee.private:
        mark_without_privacy(out, synthesis.certificate)
    write_table(
        outcome.tables.synthetic,
        out,
        synthesis.certificate,
        schema=synthesis.schema,
        escape_formulas=options.escape_formulas,
    )
    if target is not None:
        rows, papers = outcome.tables.synthetic, synthesis.certificate
        target.write(sql_tables(rows, synthesis.schema, papers, name))
    console.watch.enter(None)
    claim, domain = claim_of(outcome.guarantee), domain_words(options)
    _say_outcome(synthesis.plan, outcome, out=out)
    print(f"domain: {domain}\nledger: {synthesis.ledger}")
    certificate = synthesis.certificate
    said = [synthesis.selection] if synthesis.selection else []
    said += [*_score_lines(synthesis.score), *synthesis.measured]
    said += [*([ESCAPED] if options.escape_formulas else [])]
    for line in [*lmdp_words(certificate["lmdp"]), *said]:
        print(line)
    if options.json:
        total = {"total": round(time.monotonic() - began, 3)}
        result = {
            "seconds": console.watch.seconds | total,
            "peak_memory_mb": round(peak_memory_mb(), 1),
            "device": synthesis.device,
            "domain": domain,
            "conditions": certificate["conditions"],
            "ledger": synthesis.ledger,
            "measured": synthesis.measured,
            "score": None if synthesis.score is None else asdict(synthesis.score),
            "out": str(out),
            "formulas_escaped": options.escape_formulas,
        }
        print_json(claim | _facts(synthesis.plan, outcome) | result)
    return 0


def _say_outcome(plan: Plan, outcome: Outcome, *, out: Path) -> None:
    """Print what was made, and what it claims."""
    rows, columns = outcome.tables.synthetic.shape
    print(f"wrote {out}: {rows} records, {columns} columns")
    if not plan.budget.private:
        print("the file beside it says that it has no differential privacy")
    unit = "" if plan.unit is None else f", {plan.unit.words}"
    print(f"{claim_words(claim_of(outcome.guarantee))}{unit}")
    opinion = outcome.privacy_certificate.get("second_opinion")
    if opinion is not None:
        print(opinion["statement"])
    for sentence in (*coverage(outcome.schema).sentences, *outcome.schema.fallen.values()):
        print(f"note: {sentence}")


def _facts(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """What the last line says of the run, besides what it claims and took."""
    rows, columns = outcome.tables.synthetic.shape
    certificate = outcome.privacy_certificate
    return {
        "model": plan.model,
        "rows": rows,
        "columns": columns,
        "phases": certificate["phases"],
        "unit": None if plan.unit is None else plan.unit.words,
        "coverage": coverage_facts(outcome.schema),
        "second_opinion": certificate.get("second_opinion"),
        "lmdp": certificate["lmdp"],
    }


def _synthetic_path(options: argparse.Namespace) -> Path:
    """Where the synthetic table will be: as asked; without privacy only on a flag."""
    path: Path = options.out
    if options.linked is not None:
        return out_path(path, endings=(".zip",), inputs=files(options.table, *options.linked))
    if options.escape_formulas and path.suffix.lower() != ".csv":
        raise RefusedError("--escape-formulas is for a .csv file; a .parquet file runs no formula")
    return out_path(path, endings=OUT_ENDINGS, inputs=files(options.table))


def _score_lines(measured: NoisyScore | None) -> list[str]:
    if measured is None:
        return []
    return [
        f"noisy score: {measured.value:.4f} ± {measured.half_width:.4f} (mean distance of columns "
        "and pairs beyond what noise shows; lower is closer; covered by ε)"
    ]
