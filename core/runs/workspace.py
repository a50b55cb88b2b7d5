"""Workspace: the one folder (mode 0700) where tables, runs and the database live."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]


def private_folder(path: Path) -> Path:
    """The folder, made with its parents when absent, readable by its owner only."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


@dataclass(frozen=True)
class Workspace:
    """Where everything that matters is on disk.

    Attributes:
      home: the folder; made on first use with mode 0700.
    """

    home: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).expanduser().resolve())
        private_folder(self.home)

    @classmethod
    def default(cls) -> Workspace:
        """The folder named by FACSIMILE_HOME, or ~/.facsimile."""
        return cls(cls.default_home())

    @staticmethod
    def default_home() -> Path:
        """Where the default folder is or would be; nothing is made."""
        return Path(os.environ.get("FACSIMILE_HOME") or "~/.facsimile").expanduser()

    @property
    def tables_dir(self) -> Path:
        """Where imported tables lie, one folder each."""
        return private_folder(self.home / "tables")

    @property
    def runs_dir(self) -> Path:
        """Where runs keep their artefacts, one folder each."""
        return private_folder(self.home / "runs")

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of run store and ledger; FACSIMILE_DATABASE overrides it."""
        override = os.environ.get("FACSIMILE_DATABASE")
        return override or f"sqlite:///{self.home / 'facsimile.db'}"
