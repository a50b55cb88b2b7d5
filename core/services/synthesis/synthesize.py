"""synthesize: from rows in memory to a synthetic table, in this process."""

from __future__ import annotations

import math
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.encoding.holdout import people_trained_on, split_rows
from core.encoding.layout.layout import Layout
from core.models.events import OnEvent
from core.privacy.discovery.open_domain import as_learned
from core.privacy.ledger.filters import opening
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.quality.metrics.noisy import NoisyCells, NoisyScore, score
from core.runs.accounts.learned_earlier import taken_columns, with_learned
from core.runs.accounts.spending import left_words
from core.runs.execution.job import Job
from core.runs.execution.noisy_scores import ScoreCounts, count_synthetic
from core.runs.execution.pipeline import Outcome, choose_device, execute
from core.runs.execution.threads import limit_threads
from core.runs.execution.training_rows import FrameRows
from core.runs.request import RunRequest
from core.runs.storage.artefacts import LocalArtefacts, load_json
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.schema import Schema
from core.services.inference.paid_figures import rows_of
from core.services.planning import make_plan
from core.services.public_domains import with_references
from core.services.reviews import inside_view_words
from core.services.synthesis.accounts import account_for
from core.services.synthesis.options import RefusedError, SynthesisOptions
from core.services.synthesis.saved_runs import check_save, earlier_run, save_run
from core.services.synthesis.schema_options import say_dangers
from core.services.synthesis.table_files import require_consent, say_misfits


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """What a run came to.

    Attributes:
      schema: that it ran with; what was learned is in it.
      outcome: the table, what may be claimed, the certificate.
      device: "cpu" or "cuda".
      ledger: what was recorded, in words.
      selection: a sentence on choices among runs that ε does not cover, or "".
      score: by noisy counts, where the plan bought some.
      measured: what paid questions came to, a sentence each.
    """

    plan: Plan
    schema: Schema
    outcome: Outcome
    device: str
    ledger: str
    selection: str
    score: NoisyScore | None
    measured: tuple[str, ...]

    @property
    def certificate(self) -> dict[str, Any]:
        """The privacy certificate, with what is true of choices among runs."""
        stored = self.outcome.privacy_certificate
        extra = [self.selection] if self.selection else []
        return stored | {"conditions": [*stored["conditions"], *extra]}


def check_options(options: SynthesisOptions) -> None:
    """Refuse what cannot be, before anything is read.

    Raises:
      RefusedError: an amount out of range, or no differential privacy without the flag.
    """
    request = options.request
    if request.rows is not None and request.rows < 1:
        raise RefusedError("--rows must be at least 1")
    check_amounts(request)
    if request.epsilon == math.inf:
        require_consent(given=bool(request.without_privacy))
    if request.review is not None and options.save is None:
        raise RefusedError("--review buys pictures that only --save FOLDER keeps; name a folder")


def synthesize(
    options: SynthesisOptions, frame: pd.DataFrame, schema: Schema, *, on_event: OnEvent
) -> Synthesis:
    """Pay for, train and sample, in this process.

    Args:
      schema: as declared or proposed; what nobody declared is learned first, with noise.
    """
    schema = to_learn(options, frame, schema)
    trained, n = _trained_on(frame, schema)
    plan = _plan_for(schema, n, options.request)
    if options.save is not None:
        check_save(options.save, plan)
    if plan.budget.private:
        say_dangers(frame, schema)
    limit_threads()
    device = choose_device(options.request.device)
    with RunStore(Workspace.default()) as store:
        # whose people these are is asked of all records, those kept out too
        account_id = account_for(options, store, frame)
        with tempfile.TemporaryDirectory(prefix="synth-", dir=store.workspace.home) as folder:
            job = Job(
                table=options.table,
                plan=plan,
                schema=schema,
                request=options.request,
                device=device,
                artefacts=LocalArtefacts(Path(folder)),
                account_id=account_id,
                debit_key=f"cli-{secrets.token_hex(8)}",
                inferred=options.declare_public and (not options.declared or bool(options.rule)),
                learned_by=earlier_run(options.learned_by),
            )
            outcome = execute(job, FrameRows(trained), store=store, on_event=on_event)
            rows, domain = outcome.tables.synthetic, outcome.schema.domain()
            measured = rows_of(plan, job.artefacts, rows, domain)
            synthesis = Synthesis(
                plan=plan,
                schema=outcome.schema,
                outcome=outcome,
                device=device,
                ledger=_ledger_words(store.ledger, account_id),
                selection=inside_view_words(store, account_id) if outcome.guarantee.private else "",
                score=_score(outcome, job),
                measured=tuple(row["note"] for row in measured),
            )
            if options.save is not None:
                save_run(options.save, job, outcome, synthesis.certificate)
            outcome.tables.load()  # the folder they lie in goes
        return synthesis


def to_learn(options: SynthesisOptions, frame: pd.DataFrame, schema: Schema) -> Schema:
    """The schema whose domains the run learns: all that nobody declared, or the named ones.

    Raises:
      RefusedError: no column has such a name, or the earlier run learned nothing of what is open.
    """
    if unknown := sorted(set(options.learn) - set(schema.names)):
        raise RefusedError(f"no column is called '{unknown[0]}' (--learn)")
    if options.learn:
        schema = as_learned(schema, options.learn)
    if not options.declares_domains:
        schema = as_learned(schema)
        schema = with_references(schema) if options.references else schema
    known = with_learned(schema, earlier_run(options.learned_by))
    if options.learned_by is not None and known == schema:
        raise RefusedError(f"run {options.learned_by} learned nothing that is still to be learned")
    say_misfits(frame, (c for c in taken_columns(known) if c not in schema.columns))
    return known


def foreseen(options: SynthesisOptions, frame: pd.DataFrame, schema: Schema) -> tuple[Schema, Plan]:
    """The given schema with what a run would learn open, and the plan; stores nothing."""
    schema = to_learn(options, frame, schema)
    _, n = _trained_on(frame, schema)
    return schema, _plan_for(schema, n, options.request)


def _trained_on(frame: pd.DataFrame, schema: Schema) -> tuple[pd.DataFrame, int]:
    """The rows that are trained on, and how many records they are: people, where put together."""
    person = schema.person
    trained, _ = split_rows(frame, schema.holdout, person)
    if person is None or not person.grouped:
        return trained, len(trained)
    return trained, people_trained_on([trained[list(person.columns)]], 0.0)


def check_amounts(request: RunRequest) -> None:
    """Refuse amounts out of range, before anything is read."""
    if not request.epsilon > 0.0:  # nan too
        raise RefusedError(f"--epsilon must be above 0, or inf, not {request.epsilon:g}")
    for name in ("score", "review"):
        share = getattr(request, name)
        if share is not None and not 0.0 < share <= 0.5:
            raise RefusedError(f"--{name} must lie in 0 to 0.5, not {share:g}")
    if request.delta is not None and not 0.0 < request.delta < 1.0:
        raise RefusedError(f"--delta must lie between 0 and 1, not {request.delta:g}")


def _plan_for(schema: Schema, n: int, request: RunRequest) -> Plan:
    """The plan for n records."""
    try:
        return make_plan(schema, n, request)
    except (ValueError, KeyError) as error:  # a plan touches no row, so its words are plain
        raise RefusedError(str(error.args[0] if error.args else error)) from None


def _score(outcome: Outcome, job: Job) -> NoisyScore | None:
    """How near the table is by noisy counts, where the plan bought some; opens no real row."""
    domain = Layout(outcome.schema.domain()).domain
    synthetic = count_synthetic(outcome.tables.modelled, domain, job.plan.n, job.plan.shift)
    released = load_json(job.artefacts, ScoreCounts.artefact, NoisyCells)
    return None if synthetic is None or released is None else score(released, synthetic)


def _ledger_words(ledger: Ledger, account_id: str) -> str:
    opened = opening(ledger.entries(account_id))
    assert opened is not None, "the run's debit opened the account"
    return f"recorded; {' '.join(left_words(ledger.left(account_id), opened.delta))}"
