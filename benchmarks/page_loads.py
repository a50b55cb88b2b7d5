"""How long each page takes to open: fresh and again, while nothing runs and while a run trains.

    python benchmarks/page_loads.py [--table sample | --table people.csv --target income]

One person on one server, over a workspace with one table and one finished run. Fresh is a browser
that has kept nothing, again is the same browser opening the same address. Two times are told:
until the page's title shows, and until the page is whole: no script runs and Review has drawn its
first figure. Medians. Many people at a time: `benchmarks/load.py`. Needs Chromium.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.events import State  # noqa: E402
from core.runs.execution.launching.local_launcher import LocalLauncher  # noqa: E402
from core.runs.request import RunRequest  # noqa: E402
from core.runs.storage.store import RunStore  # noqa: E402
from core.services import imports, planning, runs, tables  # noqa: E402
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, sample_table  # noqa: E402
from tests.browser.app import open_browser, open_page, server, settled  # noqa: E402
from tests.requests_for import request_for  # noqa: E402

SAMPLE = "sample"
STILL = 0.5  # s for which `settled` looks on before it believes that nothing moves
Times = tuple[float, float]  # s until the title shows, and until the page is whole


def bring_in(store: RunStore, table: str, target: str | None) -> str:
    """A table with its bounds declared public; its id."""
    if table == SAMPLE:
        target, frame = SAMPLE_TARGET, sample_table()
        record = imports.import_frame(store, frame, name=SAMPLE_NAME, source="benchmark")
    else:
        file = Path(table)
        record = imports.import_file(store, file, name=file.name, source="benchmark")
    if target is not None:
        record = tables.change_target(store, record, target)
    record = tables.change_holdout(store, record, 0.1)
    store.attest(record.id)
    return record.id


def train(store: RunStore, table_id: str, **settings: int) -> str:
    """Start a run of PEARL; its id."""
    record = store.table(table_id)
    request = RunRequest(model="pearl", epsilon=1.0, settings=settings)
    plan = planning.make_plan(record.schema, record.training_n, request)
    return runs.start(store, LocalLauncher(store), table_id, plan, request_for(plan)).id


def wait(store: RunStore, run_id: str, *, trains: bool = False) -> None:
    """Wait until a run is done, or trains."""
    while True:
        state = store.run(run_id).state
        if state is State.DONE or (trains and store.journal.latest(run_id, "metrics") is not None):
            return
        if not state.live:
            raise RuntimeError(f"the run ended as {state.value}")
        time.sleep(0.2)


def visit(page: Page, address: str) -> Times:
    """Open an address."""
    begun = time.monotonic()
    page.goto(address)
    page.locator("h1").first.wait_for()
    titled = time.monotonic() - begun
    if "/review" in address:
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
    settled(page)
    return titled, time.monotonic() - begun - STILL


def measure(browser: Browser, address: str, again: int) -> tuple[Times, Times]:
    """Medians of an address, fresh and the second time."""
    found: tuple[list[Times], list[Times]] = ([], [])
    for _ in range(again):
        with open_page(browser, viewport={"width": 1440, "height": 900}) as page:
            for times in found:
                times.append(visit(page, address))
    fresh, second = (
        (statistics.median(t for t, _ in times), statistics.median(w for _, w in times))
        for times in found
    )
    return fresh, second


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python benchmarks/page_loads.py")
    parser.add_argument("--table", default=SAMPLE, help="a file, or the built-in sample")
    parser.add_argument("--target", help="of a file")
    parser.add_argument("--again", type=int, default=3, help="times each page is opened")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with runs.open_store(home) as store:
            table_id = bring_in(store, options.table, options.target)
            done = train(store, table_id)
            wait(store, done)
            addresses = {
                "Tables": f"?table={table_id}",
                "Plan": f"plan?table={table_id}",
                "Training": f"training?run={done}",
                "Review": f"review?run={done}",
                "Download": f"download?run={done}",
                "Ledger": "ledger",
            }
            found: dict[str, list[Times]] = {name: [] for name in addresses}
            loads = []
            with server(home) as app, open_browser() as browser:
                for address in addresses.values():  # so that every page has been imported once
                    measure(browser, f"{app.url}/{address}", 1)
                for busy in (False, True):
                    if busy:
                        wait(store, train(store, table_id, steps=200_000), trains=True)
                    for name, address in addresses.items():
                        found[name] += measure(browser, f"{app.url}/{address}", options.again)
                    loads.append(os.getloadavg()[0])
    cores = os.cpu_count()
    print(f"{cores} processor cores, load {loads[0]:.1f} idle, {loads[1]:.1f} while training")
    print("seconds until the title / the whole page\n")
    print("| page | fresh | again | fresh, a run trains | again, a run trains |")
    print("|---|---|---|---|---|")
    for name, times in found.items():
        print(f"| {name} | " + " | ".join(f"{t:.1f} / {w:.1f}" for t, w in times) + " |")


if __name__ == "__main__":
    main()
