"""House rules that a machine can check."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted([ROOT / "app.py", *(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")])
MOST_LINES = 400


def run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing():
    run("ruff", "check", "--no-cache", "app.py", "pages", "core", "tests", "benchmarks")


def test_formatted():
    run("ruff", "format", "--no-cache", "--check", "app.py", "pages", "core", "tests", "benchmarks")


def test_core_is_typed():
    run("mypy", "--no-incremental", "--cache-dir=/dev/null")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_stay_readable(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_decisions_are_numbered_without_gaps():
    names = sorted(p.name for p in (ROOT / "docs/decisions").glob("*.md"))
    assert [name[:4] for name in names] == [f"{i:04d}" for i in range(1, len(names) + 1)]


def test_documents_link_to_files_that_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_commands_are_what_ci_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    test_command = next(line for line in readme.splitlines() if "-m pytest" in line)
    assert test_command in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


def test_every_requirement_is_pinned():
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[A-Za-z0-9-]+==[0-9a-z.]+", line), line
