"""What every test process needs before anything heavy is imported, and which tests are quick."""

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.forked import forked, fresh
from tests.postgres_server import database, postgres_server, postgres_url

__all__ = ["database", "forked", "fresh", "postgres_server", "postgres_url"]  # fixtures

# Test processes run side by side, one a core: threads of their own would wait for each other. What
# tests start (servers, workers) inherits this.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# What is imported is compiled once and kept in `__pycache__`, also where the environment forbids
# it, as images of containers do: each process would compile everything anew, and tests start
# hundreds of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Every object that importing and collecting make lives until the end, and a collector of garbage
# looks through all of them again and again: it begins when the tests do, and leaves those alone.
gc.disable()

TESTS = Path(__file__).parent
SLOW = "pytest.mark.slow"


def slow(path: Path) -> bool:
    """Whether a test file says of itself that `-m quick` leaves it out.

    Files say so that take more than some two seconds of a processor. It is their text that is
    looked at: importing them is a good part of the time that a quick run saves.
    """
    return path.is_relative_to(TESTS) and SLOW in path.read_text(encoding="utf-8")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin each test with the same random numbers, whichever tests ran before it."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(0)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each database that its mark names."""
    mark = metafunc.definition.get_closest_marker("databases")
    if mark is not None and "database" in metafunc.fixturenames:
        metafunc.parametrize("database", mark.args, indirect=True)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than cores: while one waits for a browser or a worker, another computes.

    Quick tests wait for nothing.
    """
    return (os.cpu_count() or 1) + (config.option.markexpr != "quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file that a quick run leaves out; reading is a good part of such a run."""
    if config.option.markexpr == "quick" and collection_path.is_file():
        if collection_path.suffix == ".py" and slow(collection_path):
            return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is quick, and leave long forms and clusters out unless somebody asks for them.

    What takes long comes first, so that no process is left with it when the others are done.
    """
    for mark in ("long", "cluster"):
        marked = [item for item in items if item.get_closest_marker(mark)]
        if marked and mark not in config.option.markexpr:
            config.hook.pytest_deselected(items=marked)
            items[:] = [item for item in items if item not in marked]
    for item in items:
        if not item.get_closest_marker("slow"):
            item.add_marker("quick")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Let garbage be collected from now on: only what tests make themselves.

    A page ends with a collection of everything, and there are hundreds of thousands of test items
    and functions that would be looked through each time.
    """
    gc.freeze()
    gc.set_threshold(7_000, 10, 10)  # pages make many small objects: a tenth of their time was this
    gc.enable()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what a quick run says nothing of."""
    if config.option.markexpr == "quick":
        files = [path for path in TESTS.rglob("test_*.py") if slow(path)]
        folders = Counter(path.parent.relative_to(TESTS).as_posix() for path in files)
        words = ", ".join(f"{folder} ({count})" for folder, count in sorted(folders.items()))
        terminalreporter.write_line(f"Left out: {len(files)} files marked slow: {words}.")
