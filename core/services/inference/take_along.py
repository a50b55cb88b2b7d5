"""The reviewed table with replicas and helpers, for analysts who state how far figures are off."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from core.export import take_along
from core.inference.replicas import replicas_of
from core.message import Message
from core.runs.accounts.spending import epsilon_text
from core.runs.errors import NotFoundError
from core.runs.records import RunRecord
from core.runs.storage.store import RunStore
from core.schema.rounding_up import round_up
from core.services.export import add_papers, dictionary_text, reviewed_file
from core.services.reviews import privacy_certificate
from core.writing.tables import write_csv_parts

TABLES = 5  # replicas that are taken along
HELPERS = Path(take_along.__file__).parent


def packed(store: RunStore, run: RunRecord, k: int = TABLES) -> bytes:
    """A ZIP of the reviewed table with k replicas, helpers in Python and R, and a text to cite.

    Raises:
      NotFoundError: the run has no synthetic table, or fewer replicas.
    """
    replicas = replicas_of(store.artefacts(run.id))[:k]
    if len(replicas) < k:
        raise NotFoundError(Message("The error bars of this run have not been computed yet."))
    claim = run.guarantee or run.plan.guarantee
    certificate = privacy_certificate(store, run.id) or {}
    filled = (HELPERS / "citing.txt").read_text(encoding="utf-8")
    filled = filled.format(
        run=run, k=k, epsilon=epsilon_text(claim), delta=round_up(claim.delta, ".3g"),
        protected=certificate.get("relation", ""),
    )  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(reviewed_file(store, run, format="csv"), "synthetic.csv")
        with tempfile.TemporaryDirectory() as folder:
            for number, replica in enumerate(replicas, start=1):
                path = Path(folder) / f"replica-{number}.csv"
                write_csv_parts([replica.drawn], path, schema=run.schema)
                archive.write(path, path.name)
        for name in ("intervals.py", "intervals.R"):
            archive.write(HELPERS / name, name)
        archive.writestr("README.txt", filled)
        add_papers(archive, dictionary_text(store, run), certificate, run.id)
    return buffer.getvalue()
