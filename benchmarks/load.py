"""Many people on one server while runs train: how long pages take, and what they cost.

    python benchmarks/load.py [--contexts 20] [--sessions 200] [--runs 2]

Opens so many browser contexts at once on pages of a workspace of its own, with runs of the sample
table training beside them, then goes on until there were so many sessions. Needs Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path

import psutil
from playwright.async_api import BrowserContext, async_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from core.runs.execution.local_launcher import LocalLauncher  # noqa: E402
from core.services import planning, runs, tables  # noqa: E402
from core.table.sample import SAMPLE_NAME, sample_table  # noqa: E402

PORT = 8599
PAGES = ("tables", "plan", "training", "review", "download", "ledger")
MIB = 1024.0**2
WAIT_MS = 180_000


def train(home: Path, count: int) -> tuple[str, list[str]]:
    """A table and so many runs at work on it, long enough to outlast the measurement."""
    with runs.open_store(home) as store:
        table = tables.import_frame(store, sample_table(5_000), name=SAMPLE_NAME, source="built in")
        store.attest(table.id)
        request = planning.PlanRequest(model="pearl", epsilon=1.0, settings={"steps": 200_000})
        plan = planning.make_plan(table.schema, table.n, request)
        launcher = LocalLauncher(store, slots=max(1, count))
        started = [
            runs.start(store, launcher, table_id=table.id, plan=plan).id for _ in range(count)
        ]
        return table.id, started


@contextmanager
def served(home: Path) -> Iterator[psutil.Process]:
    """The server, healthy; its workers and itself are gone at the end."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={PORT}"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "FACSIMILE_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/_stcore/health", timeout=1).close()
                break
            time.sleep(0.1)
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


async def visit(context: BrowserContext, name: str, query: str) -> float:
    """Seconds until a page of a new session can be used: its title is there, nothing runs."""
    page = await context.new_page()
    begun = time.monotonic()
    await page.goto(f"http://127.0.0.1:{PORT}/{name}?{query}", timeout=WAIT_MS)
    await page.locator("h1").first.wait_for(timeout=WAIT_MS)
    seconds = time.monotonic() - begun
    await page.close()
    return seconds


async def load(contexts: int, sessions: int, query: str) -> list[float]:
    """Seconds of all page loads, `contexts` of them at a time."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    names = islice(cycle(PAGES), sessions)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)
        people = [await browser.new_context() for _ in range(contexts)]

        async def person(context: BrowserContext) -> list[float]:
            return [await visit(context, name, query) for name in names]

        seconds = await asyncio.gather(*(person(context) for context in people))
        await browser.close()
    return [one for several in seconds for one in several]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python benchmarks/load.py")
    parser.add_argument("--contexts", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        table_id, started = train(home, options.runs)
        query = f"table={table_id}" + (f"&run={started[0]}" if started else "")
        try:
            with served(home) as server:
                idle, before = server.memory_info().rss / MIB, sum(server.cpu_times()[:2])
                seconds = asyncio.run(load(options.contexts, options.sessions, query))
                spent, after = sum(server.cpu_times()[:2]) - before, server.memory_info().rss / MIB
        finally:
            with runs.open_store(home) as store:
                for run_id in started:
                    pid = store.run(run_id).pid
                    if pid is not None:
                        psutil.Process(pid).kill()
    cuts = statistics.quantiles(seconds, n=20)
    print(f"processor cores: {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
    print(f"sessions: {len(seconds)}, {options.contexts} at a time, {options.runs} runs training")
    print(f"time to interactive: p50 {statistics.median(seconds):.2f} s, p95 {cuts[18]:.2f} s")
    print(f"server processor time a page: {spent / len(seconds):.3f} s")
    print(f"server memory: {idle:.0f} MiB before the first session, {after:.0f} MiB after the last")


if __name__ == "__main__":
    main()
