"""Rules of this repository that a machine can check: lengths, docstrings, types, formatting."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("app.py", "pages", "core", "tests", "benchmarks", "docs")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in [ROOT / folder, *(ROOT / folder).rglob("*.py")]
    if path.suffix == ".py"
)
PRODUCT = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("core", "pages")]
CORE = [path for path in PRODUCT if path.is_relative_to(ROOT / "core")]
TESTS = [path for path in SOURCES if path.is_relative_to(ROOT / "tests")]
MODULE_LINES = 400
FUNCTION_LINES = 60  # with decorators and docstring
FILES_IN_A_FOLDER = 20
TEST_NAME_LETTERS = 60
# Of core and pages together. A change that needs more says in its commit what the lines are for.
PRODUCT_LINES = 80_620


def run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing():
    run("ruff", "check", "--no-cache", *FOLDERS)


def test_code_is_formatted():
    run("ruff", "format", "--no-cache", "--check", *FOLDERS)


def test_core_and_pages_are_typed():
    run("mypy")


# -- every file -----------------------------------------------------------------------------------


def long_functions(source: str) -> list[str]:
    """Names of functions that do not fit on a screen."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - min([node.lineno, *(d.lineno for d in node.decorator_list)])
        >= FUNCTION_LINES
    ]


def too_long(source: str) -> list[str]:
    """A module's number of lines where there are too many, and its long functions."""
    lines = len(source.splitlines())
    return [f"{lines} lines"] * (lines > MODULE_LINES) + long_functions(source)


def restated(source: str) -> list[str]:
    """Entries of docstrings that say in a word or two what the signature says already."""
    docstrings = (
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    entry = re.compile(r"^ +(\w+: (?:\w+ )?\w+\.)$", re.MULTILINE)
    return [found for text in docstrings for found in entry.findall(text)]


def long_test_names(source: str) -> list[str]:
    """Names of tests that are sentences rather than properties."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > TEST_NAME_LETTERS
    ]


def offenders(paths: list[Path], check: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What a check finds, by file."""
    found = {
        path.relative_to(ROOT).as_posix(): check(path.read_text(encoding="utf-8")) for path in paths
    }
    return {name: lines for name, lines in found.items() if lines}


def test_modules_and_functions_are_short():
    assert offenders(SOURCES, too_long) == {}


def test_docstrings_do_not_restate_signatures():
    assert offenders(CORE, restated) == {}


def test_names_of_tests_are_short():
    assert offenders(TESTS, long_test_names) == {}


BODY = "    pass\n" * (FUNCTION_LINES - 1)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (too_long, f"def f():\n{BODY}", f"@cache\ndef f():\n{BODY}"),
        (too_long, "x = 1\n" * MODULE_LINES, "x = 1\n" * (MODULE_LINES + 1)),
        (
            restated,
            'def f(x):\n  """Sum.\n\n  Args:\n    x: float64 [n, d], finite.\n  """',
            'def f(store):\n  """Sum.\n\n  Args:\n    store: where.\n  """',
        ),
        (long_test_names, f"def test_{'a' * 55}(): ...", f"def test_{'a' * 56}(): ..."),
    ],
)
def test_each_rule_finds_its_offender(check, good, bad):
    assert check(good) == []
    assert len(check(bad)) == 1


# -- the whole ------------------------------------------------------------------------------------


def full_folders(paths: list[Path]) -> list[Path]:
    """Folders with more modules than a reader can look through."""
    return [
        folder
        for folder, files in Counter(path.parent for path in paths).items()
        if files > FILES_IN_A_FOLDER
    ]


def test_folders_hold_few_files():
    assert full_folders([*PRODUCT, *TESTS]) == []


def test_a_full_folder_is_found():
    files = [Path(f"core/models/{number}.py") for number in range(FILES_IN_A_FOLDER)]
    assert full_folders(files) == []
    assert full_folders([*files, Path("core/models/one_more.py")]) == [Path("core/models")]


def test_the_product_does_not_grow_unnoticed():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in PRODUCT)
    assert lines <= PRODUCT_LINES


# -- commands and requirements --------------------------------------------------------------------


def test_readme_commands_are_what_ci_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    test_command = next(line for line in readme.splitlines() if "-m pytest" in line)
    assert test_command in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


def test_every_requirement_is_pinned():
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-cluster.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                assert re.fullmatch(r"[A-Za-z0-9-]+(\[[a-z]+\])?==[0-9a-z.]+", line), line
