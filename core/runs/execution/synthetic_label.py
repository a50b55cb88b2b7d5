"""The label of a synthetic table: in a Parquet file's metadata, and as a file beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.message import Message
from core.runs.storage.artefacts import PRIVACY_CERTIFICATE, ArtefactStore
from core.writing.whole_files import replacing

ENDING = "synthetic.json"
STATEMENT = Message(
    "Every row of this table is synthetic: it was drawn from a model and is no record of a person."
)


def synthetic_label(certificate: dict[str, Any], run: str | None = None) -> dict[str, Any]:
    """What marks a run's table; without the run's id, the ledger's entry names it."""
    told = {name: certificate.get(name) for name in ("private", "delta", "model", "product")}
    return told | {
        "synthetic": True,
        "statement": STATEMENT,
        "run": run or certificate.get("ledger_entry"),
        "epsilon": certificate.get("epsilon_zero_out"),
    }


def label_of(artefacts: ArtefactStore, run_id: str) -> dict[str, Any] | None:
    """The label of a run's tables; None before it has a certificate."""
    if not artefacts.exists(PRIVACY_CERTIFICATE):
        return None
    with artefacts.open(PRIVACY_CERTIFICATE) as file:
        return synthetic_label(json.load(file), run_id)


def write_label(out: Path, certificate: dict[str, Any]) -> dict[str, Any]:
    """Put the label beside a file, before it is there, under its name with another ending."""
    label = synthetic_label(certificate)
    with replacing(out.with_name(f"{out.name}.{ENDING}")) as file:
        file.write(json.dumps(label, indent=2, ensure_ascii=False).encode())
    return label
