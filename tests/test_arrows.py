"""The arrows: pages, cli → runs → models, quality → lmdp → privacy → table; figures is a leaf."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What each room may import; its own modules always. `core` (the package) itself holds nothing.
MAY_IMPORT = {
    "table": set(),
    "privacy": {"table"},
    "lmdp": {"privacy", "table"},
    "models": {"lmdp", "privacy", "table"},
    "quality": {"lmdp", "privacy", "table"},
    "runs": {"models", "quality", "lmdp", "privacy", "table"},
    "figure_parts": set(),
    "figure_words": {"figure_parts"},
    "figure_stages": {"figure_parts"},
    "figure_lmdp": {"figure_parts"},
    "figure_column": {"figure_parts"},
    "figure_pairs": {"figure_parts"},
    "figure_plane": {"figure_parts"},
    "figure_compare": {"figure_parts"},
    "findings": set(),
    "page_html": {"figures", "findings"},
    "figures": {
        "figure_column",
        "figure_pairs",
        "figure_parts",
        "figure_plane",
        "figure_words",
        "quality",
        "privacy",
        "table",
    },
    "cli": {"figures", "page_html", "runs", "models", "quality", "privacy", "table"},
    "pages": {
        "figures",
        "figure_stages",
        "figure_compare",
        "figure_lmdp",
        "findings",
        "page_html",
        "runs",
        "models",
        "quality",
        "lmdp",
        "privacy",
        "table",
    },
}
ROOM_OF_MODULE = {"commands": "cli"}  # the command line's own modules
SOURCES = sorted([*ROOT.glob("core/**/*.py"), *ROOT.glob("pages/**/*.py"), *ROOT.glob("app.py")])


def room(dotted: str) -> str | None:
    """The room of a module's dotted name, None when it is none of ours."""
    parts = dotted.split(".")
    if parts[0] in ("pages", "app"):
        return "pages"
    if parts[0] != "core" or len(parts) == 1:
        return None
    return ROOM_OF_MODULE.get(parts[1], parts[1])


def imports(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imports, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide an arrow"
            assert node.module is not None
            if node.module == "core":
                yield from (f"core.{alias.name}" for alias in node.names)
            else:
                yield node.module


def forbidden(own: str, source: str) -> list[str]:
    """Imports that a module of a room may not have."""
    bad = []
    for name in imports(ast.parse(source)):
        other = room(name)
        if other is not None and other != own and other not in MAY_IMPORT[own]:
            bad.append(f"{own} → {other} ({name})")
        if name.split(".")[0] == "streamlit" and own != "pages":
            bad.append(f"{own} → streamlit")
    return bad


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_one_way(path: Path) -> None:
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    own = room(dotted.removesuffix(".__init__"))
    if own is None:  # core/__init__.py: the root of all rooms imports none
        assert not [name for name in imports(ast.parse(path.read_text())) if room(name)]
        return
    assert own in MAY_IMPORT, f"a new room: say here what {own} may import"
    assert forbidden(own, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("own", "source"),
    [
        ("table", "from core.privacy.plan import Plan"),
        ("privacy", "def f():\n    import core.models.synthesizer"),
        ("models", "from core import runs"),
        ("runs", "from core.cli import main"),
        ("runs", "from core.commands.synth import synth"),
        ("quality", "from core.figures import pca_figure"),
        ("runs", "import streamlit as st"),
        ("runs", "import pages.tables"),
    ],
)
def test_a_wrong_arrow_is_seen(own: str, source: str) -> None:
    assert len(forbidden(own, source)) == 1


HEAVY = ("torch", "opacus", "ot", "sklearn", "streamlit")
LIGHT = """
import importlib, pkgutil, sys
import core.table
names = [f"core.table.{module.name}" for module in pkgutil.iter_modules(core.table.__path__)]
names += ["core.privacy.accountant", "core.privacy.ledger", "core.privacy.plan"]
names += ["core.runs.service", "core.runs.store", "core.runs.launcher", "core.runs.events"]
names += ["core.quality.types", "core.models.synthesizer", "core.figures"]
names += ["core.page_html", "core.findings", "core.figure_compare", "core.runs.reviews"]
names += ["core.runs.overlay", "core.runs.export", "core.runs.looks", "core.runs.scoring"]
names += ["core.runs.selection", "core.quality.noisy", "core.table.marginals"]
for name in names:
    importlib.import_module(name)
from core.models.synthesizer import cards
assert cards()
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


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
    assert loaded(LIGHT, *HEAVY) == ""


def test_the_command_line_answers_before_anything_heavy_is_loaded() -> None:
    code = "import sys, core.cli; print(*(n for n in sys.argv[1:] if n in sys.modules))"
    assert loaded(code, *HEAVY, "pandas", "numpy", "sqlalchemy") == ""
