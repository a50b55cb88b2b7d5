"""Trained models that rows are drawn from: of the workspace, or saved by `synth --save`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from core.encoding.layout.layout import Layout
from core.export.page_html import page
from core.privacy.plan import Plan
from core.quality.report.outside import outside_report
from core.quality.report.types import ReleasedHistograms
from core.runs.accounts.learned_earlier import learned_columns
from core.runs.events import State
from core.runs.execution.job import Job
from core.runs.execution.paid_release import ReviewHistograms
from core.runs.execution.pipeline import Outcome
from core.runs.storage.artefacts import MODEL, load_json
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace, private_folder
from core.schema.column import DomainColumn, SchemaColumn
from core.schema.form import Delimiter
from core.schema.schema import Domain, Schema
from core.services.export import certificate_text
from core.services.reviews import privacy_certificate, refused_groups, waits_for
from core.services.synthesis.options import RefusedError

FILE, CERTIFICATE = "run.json", "certificate.json"


class SavedRun(BaseModel, frozen=True):
    """What `run.json` in a saved run's folder says.

    Attributes:
      private: whether any differential privacy is claimed.
      learned: see `learned_columns`.
    """

    model: str
    private: bool
    delimiter: Delimiter = ","
    learned: tuple[DomainColumn, ...] = ()


class TrainedModel(SavedRun, frozen=True):
    """A run's model to draw from.

    Attributes:
      folder: where the model was saved.
    """

    folder: Path
    certificate: dict[str, Any]

    def written(self, domain: Domain) -> Schema:
        """How files of drawn rows are written: as the table's own was."""
        columns = tuple(SchemaColumn(**column.fields()) for column in domain.columns)
        names, person = {column.name for column in columns}, domain.person
        whose = None if person is None else person.among(names)
        if whose is not None and not names.issuperset(whose.named):
            whose = None  # who a row is of is left out
        return Schema(columns=columns, person=whose, delimiter=self.delimiter)


def check_save(folder: Path, plan: Plan) -> None:
    """Refuse a folder that a run cannot be saved in, before anything is spent.

    Raises:
      RefusedError: there is something in it, or the model must not leave the workspace.
    """
    if plan.protection is not None and plan.protection.shift:
        raise RefusedError(
            "--save: this model holds hidden distributions unshifted, so it is not kept; leave "
            "--save out and ask for as many --rows as you need"
        )
    if not folder.parent.is_dir():
        raise RefusedError(f"there is no folder {folder.parent} (--save)")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RefusedError(f"--save: {folder} is there already; name a new folder")


def save_run(folder: Path, job: Job, outcome: Outcome, certificate: dict[str, Any]) -> None:
    """Keep a finished job's model and certificate in a folder that `sample` takes.

    Where histograms were bought for people outside, a page with them is kept beside.

    Args:
      certificate: as it is true now; what the job stored knows nothing of choices among runs.
    """
    private_folder(folder)
    shutil.copytree(job.artefacts.local(MODEL), folder / MODEL)
    (folder / CERTIFICATE).write_text(certificate_text(certificate), encoding="utf-8")
    told = SavedRun(
        model=job.plan.model,
        private=job.plan.budget.private,
        delimiter=job.schema.delimiter,
        learned=learned_columns(outcome.schema, certificate["ledger_entry"]),
    )
    (folder / FILE).write_text(told.model_dump_json(), encoding="utf-8")
    released = load_json(job.artefacts, ReviewHistograms.artefact, ReleasedHistograms)
    if released is not None:
        tables = outcome.tables
        laid_out = None if Layout(outcome.schema.domain()).same else tables.modelled
        report = outside_report(
            tables.synthetic, outcome.schema, released=released, modelled=laid_out
        )
        shown = page(report.model_dump(), "Synthetic table, for people outside")
        (folder / "outside.html").write_text(shown, encoding="utf-8")


def trained_model(run: str) -> TrainedModel:
    """The model of a run.

    Args:
      run: a folder that `synth --save` wrote, a run's folder in the workspace, or a run's id.

    Raises:
      RefusedError: there is none, or its rows may not leave yet; says why.
      NotFoundError: no run has that id.
    """
    folder = Path(run)
    if (folder / FILE).is_file():
        return _saved(folder)
    home = Workspace.default_home()
    in_workspace = folder.is_dir() and folder.resolve().parent == home.resolve() / "runs"
    if not home.is_dir() or (folder.is_dir() and not in_workspace):
        raise RefusedError(
            f"there is no run '{run}': name a folder that synth --save wrote, or a run of the "
            "workspace by its id or folder"
        )
    with RunStore(Workspace(home)) as store:
        return _stored(store, folder.resolve().name if in_workspace else run)


def earlier_run(run: str | Path | None) -> tuple[DomainColumn, ...]:
    """What a finished run learned, named as for `trained_model`; nothing for None."""
    if run is None:
        return ()
    if (Path(run) / FILE).is_file():
        return _saved(Path(run)).learned
    with RunStore(Workspace.default()) as store:
        found = store.run(Path(run).name)
    if found.state is not State.DONE:
        raise RefusedError(f"run {run} is {found.state.value}; it can be used once it is done")
    return learned_columns(found.schema, found.debit)


def _saved(folder: Path) -> TrainedModel:
    try:
        told = SavedRun.model_validate_json((folder / FILE).read_bytes())
        certificate = json.loads((folder / CERTIFICATE).read_bytes())
        return TrainedModel(**dict(told), folder=folder / MODEL, certificate=certificate)
    except (ValueError, FileNotFoundError):
        raise RefusedError(f"{folder} is no complete run; synth --save writes one") from None


def _stored(store: RunStore, run_id: str) -> TrainedModel:
    """A run of the workspace; what Download waits for, this waits for too."""
    run = store.run(run_id)
    artefacts = store.artefacts(run.id)
    if run.state is not State.DONE or not artefacts.exists(MODEL):
        raise RefusedError(f"run {run.id} is {run.state.value}; rows can be drawn once it is done")
    waits = waits_for(store, run)
    if waits:
        raise RefusedError(f"run {run.id} waits for its review: {waits}")
    refused = refused_groups(store, run)
    if refused:
        raise RefusedError(
            "the check of hidden distributions said no, or what it said is missing, for "
            f"{', '.join(refused)}; say on the Download page that you accept it, and take the rows "
            "there"
        )
    return TrainedModel(
        model=run.model,
        private=run.private,
        delimiter=run.schema.delimiter,
        folder=artefacts.local(MODEL),
        certificate=privacy_certificate(store, run.id) or {},
    )
