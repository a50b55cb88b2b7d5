"""Artefacts: the files a run keeps under runs/ID, and what they say about going on."""

from __future__ import annotations

import re
from pathlib import Path

from core.runs.storage.table_store import NotFoundError, TableStore

__all__ = ["INSIDE", "OUTSIDE", "Artefacts"]

INSIDE, OUTSIDE = "report.json", "outside.json"  # the reports, by who may see them
UNFINISHED = (".half", ".part", ".tmp")  # endings of files that are still being written
_ID = re.compile(r"[0-9a-f]{6,32}")


class Artefacts(TableStore):
    """The files of each run, such as synthetic.parquet, report.json and the folder model."""

    def artefact(self, run_id: str, name: str) -> Path:
        """Where a run keeps an artefact, such as "synthetic.parquet" or "model"; it may be absent.

        Raises:
          NotFoundError: the id or the name is no plain name, so that no link leaves the workspace.
        """
        if not _ID.fullmatch(run_id) or not name or Path(name).name != name or name == "..":
            raise NotFoundError("There is no such artefact in this workspace.")
        return self.workspace.runs_dir / run_id / name

    def has_artefact(self, run_id: str, name: str) -> bool:
        """Whether the artefact is there."""
        return self.artefact(run_id, name).exists()

    def has_checkpoint(self, run_id: str) -> bool:
        """Whether a resumed run has something to go on from."""
        folder = self.artefact(run_id, "checkpoint")
        return folder.is_dir() and any(
            not path.name.startswith(".") and path.suffix not in UNFINISHED
            for path in folder.iterdir()
        )

    def goes_on_free(self, run_id: str) -> bool:
        """Whether what was debited still pays for going on.

        It does from a checkpoint or a finished table, and when the meter never counted a private
        access: then nothing was released for what was paid.
        """
        return (
            self.has_checkpoint(run_id)
            or self.has_result(run_id)
            or not self.has_artefact(run_id, "meter.json")
        )

    def has_result(self, run_id: str) -> bool:
        """Whether the synthetic table and its certificate are there."""
        names = ("synthetic.parquet", "certificate.json")
        return all(self.has_artefact(run_id, name) for name in names)
