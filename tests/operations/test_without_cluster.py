"""A copy of the product without core/cluster works on one machine, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.runs.workspace import PROJECT_ROOT
from core.services.sample_tables import sample_table

pytestmark = pytest.mark.slow
IMPORT_ALL = """
import importlib, pkgutil, sys
import core, pages
for package in (core, pages):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith("core.runs.storage.migrations.versions"):
            importlib.import_module(module.name)
import core.runs.extensions
print(core.runs.extensions.__file__)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The product's files in a folder of their own, without core/cluster."""
    folder = tmp_path / "product"
    for name in ("core", "pages"):
        shutil.copytree(PROJECT_ROOT / name, folder / name)
    shutil.copy(PROJECT_ROOT / "app.py", folder)
    shutil.rmtree(folder / "core" / "cluster")
    return folder


def called(copy: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """What the interpreter says in the copy, with a workspace there."""
    kept = {name: value for name, value in os.environ.items() if "FACSIMILE" not in name}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        env={**kept, "FACSIMILE_HOME": str(copy / "home"), "PYTHONPATH": "", **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_is_imported_without_it(copy: Path) -> None:
    done = called(copy, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(copy / "core" / "runs" / "extensions.py")


def test_a_module_that_imports_it_is_found(copy: Path) -> None:
    first = copy / "core" / "api.py"  # the first that is looked at
    first.write_text("import core.cluster.postgres\n")
    done = called(copy, "-c", IMPORT_ALL)
    assert done.returncode == 1 and "No module named 'core.cluster'" in done.stderr


def test_the_sample_table_becomes_a_synthetic_one_without_it(copy: Path) -> None:
    sample_table().head(600).to_csv(copy / "sample.csv", index=False)
    done = called(
        copy, "-m", "core.cli", "synth", "sample.csv", "--declare-public", "--model", "pearl",
        "--epsilon", "1", "--settings", "steps=10", "frequencies=100", "--rows", "50",
        "--out", "synthetic.csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len((copy / "synthetic.csv").read_text().splitlines()) == 51


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("FACSIMILE_DATABASE", "postgresql://db.example.org/facsimile"),
        ("FACSIMILE_STORAGE", "s3://bucket/prefix"),
    ],
)
def test_what_is_asked_of_it_is_refused_in_a_sentence(copy: Path, setting: str, value: str) -> None:
    done = called(copy, "-m", "core.cli", "ledger", **{setting: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {setting} asks for") and done.stderr.count("\n") == 1
