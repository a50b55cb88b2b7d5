"""House rules that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("app.py", "pages", "core", "tests", "benchmarks", "docs")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in [ROOT / folder, *(ROOT / folder).rglob("*.py")]
    if path.suffix == ".py"
)
CORE = [path for path in SOURCES if path.is_relative_to(ROOT / "core")]
MODULE_LINES = 400
FUNCTION_LINES = 60  # with decorators and docstring


def run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing():
    run("ruff", "check", "--no-cache", *FOLDERS)


def test_formatted():
    run("ruff", "format", "--no-cache", "--check", *FOLDERS)


def test_core_is_typed():
    run("mypy")


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def long_functions(source: str) -> list[str]:
    """Names of functions that do not fit on a screen."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - min([node.lineno, *(d.lineno for d in node.decorator_list)])
        >= FUNCTION_LINES
    ]


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_modules_and_functions_stay_readable(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MODULE_LINES
    assert long_functions(source) == []


def test_a_long_function_is_seen():
    body = "    pass\n" * (FUNCTION_LINES - 1)
    assert long_functions(f"def f():\n{body}") == []
    assert long_functions(f"@cache\ndef f():\n{body}") == ["f"]


def restated(source: str) -> list[str]:
    """Entries of docstrings that say in a word or two what the signature says already."""
    return re.findall(r"^ +(\w+: (?:\w+ )?\w+\.)$", source, re.MULTILINE)


@pytest.mark.parametrize("path", CORE, ids=place)
def test_docstrings_do_not_restate_signatures(path):
    docstrings = (
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [entry for text in docstrings for entry in restated(text)] == []


def test_a_restated_parameter_is_seen():
    assert restated("Args:\n  store: where.\n  x: float64 [n, d], finite.") == ["store: where."]


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
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-cluster.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[A-Za-z0-9-]+(\[[a-z]+\])?==[0-9a-z.]+", line), line
