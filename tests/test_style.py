"""House rules that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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
MANY = 3  # so many parameters are named in a docstring


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


Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.Module | ast.ClassDef, inside: str = "") -> Iterator[tuple[str, Function]]:
    """Public functions and methods with their dotted names."""
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public(child, f"{inside}{child.name}.")
        elif isinstance(child, Function) and not child.name.startswith("_"):
            yield inside + child.name, child


def undocumented(source: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Public functions of `MANY` parameters or more whose docstring does not list them all.

    A method that a base or a protocol documents, among `known`, need not do so again.
    """
    missing = []
    for name, function in public(ast.parse(source)):
        listed = function.args
        names = [a.arg for a in [*listed.posonlyargs, *listed.args, *listed.kwonlyargs]]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        section = (ast.get_docstring(function) or "").partition("Args:")[2]
        told = all(re.search(rf"^ +[\w, *]*\b{n}\b[\w, ]*:", section, re.MULTILINE) for n in names)
        if len(names) >= MANY and not told and f"{name.rpartition('.')[2]}{names}" not in known:
            missing.append(name)
    return missing


def documented_methods() -> frozenset[str]:
    """Name and parameters of the methods of `core` that list their parameters."""
    found = set()
    for path in CORE:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function in public(tree):
            if "." in name and "Args:" in (ast.get_docstring(function) or ""):
                names = [a.arg for a in [*function.args.args, *function.args.kwonlyargs]][1:]
                found.add(f"{function.name}{names}")
    return frozenset(found)


def test_parameters_are_documented():
    known = documented_methods()
    missing = {place(path): undocumented(path.read_text(encoding="utf-8"), known) for path in CORE}
    assert {path: names for path, names in missing.items() if names} == {}


def test_an_undocumented_parameter_is_seen():
    listed = '"""Do.\n\n    Args:\n      a, b: two.\n      c: one.\n    """'
    assert undocumented(f"def f(a, b, c):\n    {listed}") == []
    assert undocumented(f"def f(a, b, d):\n    {listed}") == ["f"]
    assert undocumented('class A:\n    def f(self, a, b, *, c):\n        """Do."""') == ["A.f"]
    assert undocumented('def f(a, b):\n    """Do."""\ndef _g(a, b, c): ...') == []


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
