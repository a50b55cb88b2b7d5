"""The arrows: which room may import which, no circle between files, and what must stay light."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What each room may import; its own modules and `core.message` always. The package `core` itself
# holds nothing. `core.cluster` is found by name at run time: the product works without it.
_TABLE = {"schema", "reading", "proposing", "encoding", "importing", "writing"}
_LOW = {"privacy"} | _TABLE
_MIDDLE = {"models", "quality", "lmdp"} | _LOW
MAY_IMPORT = {
    "schema": set(),
    "writing": {"schema", "reading"},
    "reading": {"schema"},
    "encoding": {"schema"},
    "proposing": {"schema", "reading", "encoding"},
    "importing": {"schema", "reading", "proposing", "writing"},
    "privacy": {"schema", "encoding", "proposing"},
    "lmdp": _LOW,
    "models": {"lmdp"} | _LOW,
    "quality": {"lmdp"} | _LOW,
    "inference": _MIDDLE,
    "runs": _MIDDLE,  # what is asked of a run, and what is known of one
    "runs.storage": {"runs"} | _MIDDLE,
    "runs.accounts": {"runs", "runs.storage"} | _MIDDLE,
    "runs.execution": {"inference", "runs", "runs.storage", "runs.accounts"} | _MIDDLE,
    "audit": {"runs", "runs.execution", "models", "lmdp"} | _LOW,
    "services": {"export", "inference", "runs", "runs.storage", "runs.accounts", "runs.execution"}
    | _MIDDLE,
    "operations": {"runs", "runs.storage", "runs.accounts", "runs.execution", "models"} | _LOW,
    "message": set(),
    "language": set(),
    "figures": {"inference", "quality"} | _LOW,
    "export": {"figures", "inference", "language", "quality"} | _LOW,
}
_ALL_OF_CORE = set(MAY_IMPORT)
MAY_IMPORT |= {
    "cluster": {"runs", "runs.storage", "runs.accounts", "runs.execution", "operations"} | _MIDDLE,
    "cli": _ALL_OF_CORE,
    "api": _ALL_OF_CORE - {"runs.storage"},
    "pages": _ALL_OF_CORE - {"audit", "runs.storage"},
}
SPLIT = {"runs"}  # rooms whose folders are rooms of their own, beside the modules right in them
EVERYWHERE = {"message"}
SOURCES = sorted([*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py"), *ROOT.glob("app.py")])


def room(dotted: str) -> str | None:
    """The room of a module's dotted name, None when it is none of ours."""
    parts = dotted.split(".")
    if parts[0] in ("pages", "app"):
        return "pages"
    if parts[0] != "core" or len(parts) == 1:
        return None
    if parts[1] in SPLIT and (ROOT / "core" / parts[1] / "".join(parts[2:3])).is_dir():
        return ".".join(parts[1:3])
    return parts[1]


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imports, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide an arrow"
            assert node.module is not None
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in FILES or node.module == "core" else node.module


def dotted_name(path: Path) -> str:
    """The name a module of this project is imported by."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {dotted_name(path): path for path in SOURCES}


def forbidden(own: str | None, source: str) -> list[str]:
    """Imports that a module of a room, or of none, may not have."""
    assert own is None or own in MAY_IMPORT, f"a new room: say here what {own} may import"
    allowed = MAY_IMPORT[own] | EVERYWHERE | {own} if own else set()
    bad = []
    for name in imports(ast.parse(source)):
        other = room(name)
        if other is not None and other not in allowed:
            bad.append(f"{own} → {other} ({name})")
        if name.split(".")[0] == "streamlit" and own != "pages":
            bad.append(f"{own} → streamlit")
    return bad


def offenders(check: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """What a check finds, by file."""
    found = {str(path.relative_to(ROOT)): check(path) for path in SOURCES}
    return {name: lines for name, lines in found.items() if lines}


def test_arrows_point_one_way() -> None:
    def check(path: Path) -> list[str]:
        return forbidden(room(dotted_name(path)), path.read_text(encoding="utf-8"))

    assert offenders(check) == {}


@pytest.mark.parametrize(
    ("own", "source"),
    [
        ("schema", "from core.privacy.plan import Plan"),
        ("privacy", "def f():\n    import core.models.synthesizer"),
        ("models", "from core import runs"),
        ("runs.storage", "from core.runs.execution.worker import main"),
        ("runs.execution", "from core.services.runs import start"),
        ("services", "from core.cli.main import main"),
        ("services", "from core.cli.synth import synth"),
        ("api", "from core.cli.main import command_line"),
        ("api", "from core.runs.storage.store import RunStore"),
        ("quality", "from core.figures import pca"),
        ("runs.execution", "import streamlit as st"),
        ("services", "import pages.tables.page"),
        ("pages", "from core.runs.storage.reviews import notes"),
        ("pages", "def f():\n    from core.cli.main import main"),
        ("runs.execution", "from core.cluster import ray_launcher"),
    ],
)
def test_a_wrong_arrow_is_seen(own: str, source: str) -> None:
    assert len(forbidden(own, source)) == 1


def circle(sources: dict[str, str]) -> list[str] | None:
    """Names of files that import each other in a circle, for their names and texts; or None.

    Imports inside functions and for type checkers count: a circle is a circle for its readers.
    """
    graph = {
        name: {other for other in imports(ast.parse(text)) if other in sources and other != name}
        for name, text in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def test_no_file_imports_itself_through_others() -> None:
    assert circle({n: path.read_text(encoding="utf-8") for n, path in FILES.items()}) is None


def test_a_circle_is_seen() -> None:
    first, second = "core.privacy.plan", "core.privacy.meter"
    sources = {first: f"def f():\n    from {second} import Meter", second: f"import {first}"}
    assert set(circle(sources) or ()) == {first, second}


HEAVY = ("torch", "opacus", "ot", "sklearn", "streamlit")
# Rooms that pages import whole, but for the modules whose names end as said.
LIGHT_ROOMS = (
    *(f"core.{room}" for room in sorted(_TABLE)),
    "core.services",
    "core.runs.storage",
    "core.figures",
    "core.export",
)
HEAVY_ROOM = "core.services.synthesis"  # fits in the process that calls it; no page imports it
LIGHT = [
    name for name in FILES if name.startswith(LIGHT_ROOMS) and not name.startswith(HEAVY_ROOM)
] + [
    "core.models.registry",
    "core.privacy.accounting.accountant",
    "core.privacy.ledger.ledger",
    "core.privacy.plan",
    "core.quality.metrics.noisy",
    "core.quality.report.types",
    "core.runs.execution.launching.local_launcher",
]
SHOW_CARDS = "from core.models.registry import cards; assert cards()"


def loaded(code: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_what_the_pages_import_is_light() -> None:
    code = f"import sys, {', '.join(sorted(LIGHT))}; {SHOW_CARDS}; "
    code += "print(*(name for name in sys.argv[1:] if name in sys.modules))"
    assert loaded(code, *HEAVY) == ""


def test_the_command_line_answers_before_heavy_imports() -> None:
    code = "import sys, core.cli.main; print(*(n for n in sys.argv[1:] if n in sys.modules))"
    assert loaded(code, *HEAVY, "pandas", "numpy", "sqlalchemy") == ""


def test_every_module_can_be_imported() -> None:
    for name in FILES:
        if name.startswith("core") and not name.endswith("__main__"):
            importlib.import_module(name)


def unexplained(source: str) -> list[str]:
    """Lines of imports inside functions that no comment beside or right above explains.

    A comment speaks for the imports that follow it without another line between.
    """
    lines = source.splitlines()
    inside = {
        node.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    bad = []
    for number in sorted(inside):
        above = number - 1
        while above and (above in inside or not lines[above - 1].strip()):
            above -= 1
        near = [lines[at - 1] for at in range(max(above, 1), number + 1)]
        if not any("#" in line for line in near):
            bad.append(f"line {number}")
    return bad


def test_late_imports_say_why() -> None:
    assert offenders(lambda path: unexplained(path.read_text(encoding="utf-8"))) == {}


def test_a_late_import_without_a_reason_is_seen() -> None:
    assert unexplained("def f():\n    x = 1\n    import torch\n") == ["line 3"]
    assert unexplained("def f():\n    # heavy\n    import torch\n\n    import ot\n") == []
