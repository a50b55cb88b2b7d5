"""What the evidence for a release is made of: documents of a run, gathered for who may see them.

A document for outside holds nothing that was computed from real rows but what ε paid for; those
that do are named as of the inside and are gathered for it alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from core.export.attack_sentences import exposure
from core.export.evidence_pack import INSIDE
from core.export.findings import findings
from core.export.guides import guides
from core.message import Message, day, joined, minute
from core.models.registry import cards
from core.privacy.accounting.attacker import BestAttack, best_attack
from core.quality.report.types import View
from core.quality.verdict import verdict
from core.runs.errors import RunStoreError
from core.runs.execution.synthetic_label import ENDING, synthetic_label
from core.runs.records import RunRecord
from core.runs.storage.reviews import notes
from core.runs.storage.store import RunStore
from core.runs.workspace import private_folder
from core.services import export, limits, reviews
from core.services.inference.paid_figures import measured
from core.services.plan_advice import phase_words
from core.writing.whole_files import replacing

AUDITS = "audits"  # folder of a workspace: of each model the last one on this machine
LIBRARIES = ("dp-accounting", "numpy", "opacus", "pandas", "pyarrow", "torch")  # that are told


def documents(store: RunStore, run: RunRecord, view: View) -> dict[str, Any]:
    """JSON values by name in the pack.

    Raises:
      RunStoreError: the run is not done, waits for a review, or claims no privacy.
    """
    certificate, claims = reviews.privacy_certificate(store, run.id), guides()["claim"]
    if certificate is None:
        raise RunStoreError("This run is not finished, so there is no evidence of it yet.")
    if not run.private:
        raise RunStoreError(
            "This run has no differential privacy, so there is no guarantee to answer for."
        )
    if view == "outside" and (waits := reviews.waits_for(store, run)):
        raise RunStoreError("This run waits for its review: {waits}", waits=waits)
    outside = reviews.report(store, run.id, "outside")
    found = {
        "certificate.json": certificate,
        ENDING: synthetic_label(certificate, run.id) | _files(store, run),
        "release.json": _terms(store, run),
        "run.json": _run(store, run) | {"made": day(datetime.fromisoformat(certificate["date"]))},
        "best-attack.json": best_attack_words(of_run(run)),
        "verdicts.json": _verdicts(store, run, view),
        "verdict.json": outside and _uses(run, outside),
        "product.json": {n: {**one, "claim": joined([one["claim"]])} for n, one in claims.items()},
        "audit.json": last_audit(store, run.model),
        "outside-report.json": outside,
        "measured.json": measured(store, run),
        # of the installation that packs; the run's own product is in its certificate
        "versions.json": {name: metadata.version(name) for name in LIBRARIES},
    }
    if view == "inside":
        report = reviews.report(store, run.id) or {}
        if tried := report.get("attacks"):
            found[f"{INSIDE}attacks.json"] = {"sentence": exposure(tried).text, "attacks": tried}
        found[f"{INSIDE}findings.json"] = report and {
            "sentences": [one.text for one in findings(report)],
            "groups": [
                *(one["note"] for one in report["scores"] if one["key"] == "k_marginal"),
                *(
                    joined([f"{one['columns'][0]}:", *one["sentences"]])
                    for one in report.get("groupings", ())
                    if len(one["columns"]) == 1
                ),
            ],
            **_uses(run, report),
        }
    return {name: document for name, document in found.items() if document}


def _uses(run: RunRecord, report: dict[str, Any]) -> dict[str, list[Message]]:
    """What the table is fit for, as far as a report of one view may tell."""
    told = verdict(report, run.schema, private=run.private, hidden=limits.hidden_columns(run))
    return {use: list(words) for use, words in told.uses.items()}


def of_run(run: RunRecord) -> BestAttack:
    """A bound on attacks on a private run, from its plan: what may run, whatever did."""
    claim, plan = run.guarantee or run.plan.guarantee, run.plan
    # what an earlier run learned is in the claim and in no phase of this one
    phases = plan.charged if claim.epsilon <= plan.guarantee.epsilon * (1.0 + 1e-9) else None
    return best_attack(phases, claim.epsilon, claim.delta, rows=plan.rows_of_one)


def best_attack_words(bound: BestAttack) -> dict[str, Any]:
    """The bound as JSON values, rounded up to a thousandth."""
    one, ten = bound.found(0.01), bound.found(0.1)
    found = {"right": bound.right, "found_at_1_percent": one, "found_at_10_percent": ten}
    # of those accused, where half of all took part
    found["posterior_at_1_percent"] = one / (one + 0.01)
    return {name: min(1.0, math.ceil(1e3 * value) / 1e3) for name, value in found.items()}


def last_audit(store: RunStore, model: str) -> dict[str, Any] | None:
    """The last audit of a model on this machine, as JSON values; None where there was none."""
    file = store.workspace.home / AUDITS / f"{model}.json"
    return json.loads(file.read_bytes()) if file.is_file() else None


def keep_audit(home: Path, result: Any) -> None:
    """Keep a `core.audit.audit.Audit` in a workspace, if there is one, for the model's evidence."""
    if home.is_dir():
        with replacing(private_folder(home / AUDITS) / f"{result.model}.json") as file:
            file.write(json.dumps(result.as_json()).encode())


def _run(store: RunStore, run: RunRecord) -> dict[str, Any]:
    plan = run.plan
    return {
        "id": run.id,
        "table": run.table_name,
        "model_name": {card.id: card.name for card in cards()}.get(run.model, run.model),
        "unit": Message("one record") if plan.unit is None else plan.unit.words,
        "columns": len(run.schema.domain().columns),
        "accesses": [
            Message("{title}: {words}", title=joined([phase.title]), words=phase_words(phase, plan))
            for phase in plan.phases
        ],
        "limits": limits.limits(store, run),
        "hidden": list(limits.hidden_columns(run)),
        "releases": sum(one.kind == "release" for one in store.ledger.entries(run.account_id)),
    }


def _terms(store: RunStore, run: RunRecord) -> dict[str, str]:
    """What only people could say, with its days as each language writes them."""
    terms = notes.release_terms(store, run.id) or {}
    written = terms.get("review_date")
    return terms | ({"review_date": day(date.fromisoformat(written))} if written else {})


def _verdicts(store: RunStore, run: RunRecord, view: View) -> dict[str, Any] | None:
    given = [
        {
            "author": notes.called(one.author),
            "decision": one.decision.value,
            "time": minute(one.time, " UTC"),
            "reason": one.text,
        }
        for one in notes.review_verdicts(store, run.id, view)
    ]
    each = [Message("{author}: {decision} ({time}).", **one) for one in given]
    return {"sentence": joined(each), "verdicts": given} if given else None


def _files(store: RunStore, run: RunRecord) -> dict[str, Any]:
    """The files of the table that Download hands out, with their hashes."""
    csv = export.file_name(run, "csv")
    made = {
        csv: export.reviewed_file(store, run, format="csv"),
        f"{csv} (safe for spreadsheets)": export.reviewed_file(
            store, run, format="csv", escape_formulas=True
        ),
        export.file_name(run, "parquet"): export.reviewed_file(store, run, format="parquet"),
    }
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in made.items()}
    return {"name": csv, "sha256": hashes}
