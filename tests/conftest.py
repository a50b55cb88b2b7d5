"""What every test process needs before anything heavy is imported, and which tests are quick."""

import gc
import os
import sys
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
# Folders and files that `-m quick` leaves out, and what then goes untested; everything else is
# quick. They take nine tenths of the time.
LEFT_OUT = {
    "browser": "the app in a real browser",
    "contract": "every model's fits, resumes and exports; what leaves, compared byte for byte",
    "pages": "pages, rendered",
    "lmdp": "hidden distributions, their tests' sizes and certificates",
    "faults": "kills, full disks, locked databases, wrong clocks",
    "runs/execution/test_worker.py": "workers, in the test's process",
    "runs/execution/test_worker_processes.py": "worker processes, killed and resumed",
    "runs/execution/test_protection.py": "runs with tagged columns",
    "runs/execution/test_real_model.py": "a whole run",
    "runs/accounts/test_purchases.py": "purchases of accounts",
    "runs/accounts/test_people.py": "accounts of people",
    "runs/storage/test_migrations.py": "databases of older versions, brought up to date",
    "runs/accounts/test_racing_debits.py": "many processes that pay at once",
    "runs/execution/test_selection.py": "choosing among runs",
    "objects/test_whole_run.py": "a whole run in a bucket, on two machines",
    "objects/test_deaths.py": "a machine that dies at every request to an object store",
    "objects/test_away.py": "an object store that goes away",
    "objects/test_page_away.py": "a page while it is away",
    "objects/test_scratch.py": "scratch folders of killed processes",
    "audit/test_audit.py": "audits",
    "audit/test_audit_mutants.py": "audits of broken models",
    "mutants/test_selection_mutants.py": "broken choices among runs",
    "services/test_imports.py": "tables larger than memory, brought in",
    "runs/execution/test_large_tables.py": "runs of tables larger than memory",
    "runs/storage/test_row_batches.py": "rows read in batches",
    "services/test_source_secrets.py": "sources' passwords, searched for",
    "runs/execution/test_full_card.py": "graphics cards that run out of memory",
    "reading/test_delimited.py": "delimited text, split",
    "reading/test_tally.py": "columns counted in passing",
    "reading/test_round_trip.py": "files of every form, written and read back",
    "importing/test_apart.py": "reading in a process of its own",
    "models/test_graphics_card.py": "a simulated graphics card",
    "models/test_calibration.py": "generated rows fitted to released counts",
    "models/test_laid_out.py": "every model's rows under rules and people",
    "models/test_in_parts.py": "rows drawn in parts, by threads",
    "models/test_streamed.py": "models trained on rows that are read in parts",
    "operations/test_containers.py": "the container's commands",
    "privacy/dpsgd/test_dpsgd.py": "distinguishing whole private steps",
    "privacy/accounting/test_accountant.py": "the accountant's golden numbers",
    "privacy/ledger/test_ledger.py": "the ledger under races",
    "privacy/mechanisms/test_marginals.py": "counts that runs are scored by",
    "models/test_ppem.py": "PPEM with its penalty",
    "models/test_boosting.py": "boosting",
    "quality/test_report.py": "whole reports",
    "quality/test_frontier.py": "the comparison with others",
    "export/test_findings.py": "findings in words",
    "figures/test_figure_stages.py": "pictures of stages",
    "cli/test_cli.py": "the command line",
    "cli/test_api.py": "plain functions that make tables",
    "cli/test_cli_sample.py": "more rows on the command line",
    "cli/test_cli_people.py": "people on the command line",
    "cli/test_cli_buying.py": "bounds and lists bought by the command line",
    "cli/test_cli_selection.py": "the command line's scores",
    "operations/test_log.py": "the main line of a table full of canaries, and its log",
    "hostile/test_hostile.py": "most of the hostile files",
    "test_style.py": "types, lint and lengths",
}


def left_out(path: Path) -> bool:
    """Whether `-m quick` leaves a test file out."""
    if not path.is_relative_to(TESTS):
        return False  # doctests
    place = path.relative_to(TESTS).as_posix()
    return place in LEFT_OUT or place.split("/")[0] in LEFT_OUT


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
        return left_out(collection_path) or None
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
        if not left_out(item.path):
            item.add_marker("quick")
    items.sort(key=lambda item: not left_out(item.path))


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
        terminalreporter.write_line("Left out: " + "; ".join(LEFT_OUT.values()) + ".")
