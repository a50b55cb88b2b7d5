"""Many people on one server while runs train: how long pages take, and what they cost.

    python benchmarks/load.py [--contexts 20] [--sessions 200] [--runs 2]

Opens so many browser contexts at once on pages of a workspace of its own, with runs of the sample
table training beside them, then goes on until there were so many sessions. Every context belongs to
a person who signed in and owns one table; a page that shows the name of anybody else's is counted.
Needs Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path

import psutil
from playwright.async_api import BrowserContext, async_playwright
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from core.runs.request import RunRequest
from tests.requests_for import request_for

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from core.runs.execution.launching.local_launcher import LocalLauncher  # noqa: E402
from core.runs.storage.access import set_access  # noqa: E402
from core.services import imports, planning, runs  # noqa: E402
from core.services.sample_tables import sample_table  # noqa: E402

PORT = 8599
PAGES = ("tables", "plan", "training", "review", "download", "ledger")
MIB = 1024.0**2
ROWS = 2_000  # of each table
WAIT_MS = 180_000


SECRET = secrets.token_hex(32)


def name_of(number: int) -> str:
    """Of somebody's table; no name is part of another."""
    return f"ward-{number:03d}-visits"


def address_of(number: int) -> str:
    """Of the table's owner."""
    return f"person{number:03d}@example.org"


def prepare(home: Path, people: int, count: int) -> tuple[list[str], list[str]]:
    """A table for each person, and so many runs at work on them, to outlast the measurement."""
    with runs.open_store(home) as store:
        launcher = LocalLauncher(store, slots=max(1, count))
        everybody = sample_table(ROWS * people)  # nobody is in two tables
        request = RunRequest(model="pearl", epsilon=1.0, settings={"steps": 200_000})
        table_ids, run_ids = [], []
        for number in range(people):
            frame = everybody.iloc[number * ROWS : (number + 1) * ROWS].reset_index(drop=True)
            table = imports.import_frame(
                store, frame, name=name_of(number), source="built in", account_id=name_of(number)
            )
            store.attest(table.id)
            set_access(store, table.id, owner=address_of(number))
            table_ids.append(table.id)
            if number < count:
                plan = planning.make_plan(table.schema, table.n, request)
                run = runs.start(store, launcher, table.id, plan, request_for(plan))
                run_ids.append(run.id)
        return table_ids, run_ids


def signed_in(number: int) -> str:
    """The cookie of a person, as the server signs it after sign-in."""
    claims = {
        "email": address_of(number),
        "email_verified": True,
        "is_logged_in": True,
        "iat": int(time.time()),
        "origin": f"http://127.0.0.1:{PORT}",
    }
    return create_signed_value(SECRET, USER_COOKIE_NAME, json.dumps(claims)).decode("latin-1")


def write_secrets(path: Path, people: int) -> None:
    """Sign-in is configured; nobody has to ask the provider, who is not there."""
    path.write_text(
        f"""[auth]
redirect_uri = "http://127.0.0.1:{PORT}/oauth2callback"
cookie_secret = "{SECRET}"
client_id = "load"
client_secret = "load"
server_metadata_url = "http://127.0.0.1:9/.well-known/openid-configuration"
[roles]
steward = {[address_of(number) for number in range(people)]!r}
"""
    )


@contextmanager
def served(home: Path, secrets_file: Path) -> Iterator[psutil.Process]:
    """The server, healthy; its workers and itself are gone at the end."""
    command = [
        sys.executable, "-m", "streamlit", "run", "app.py",
        f"--server.port={PORT}", f"--secrets.files={secrets_file}",
    ]  # fmt: skip
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


async def visit(
    context: BrowserContext, address: str, number: int, people: int
) -> tuple[float, int]:
    """A page of a new session: seconds until it can be used, and others' names that it shows.

    It can be used once its title is there and no script runs.
    """
    page = await context.new_page()
    begun = time.monotonic()
    await page.goto(f"http://127.0.0.1:{PORT}/{address}", timeout=WAIT_MS)
    await page.locator("h1").first.wait_for(timeout=WAIT_MS)
    still = "!document.querySelector('[data-testid=stStatusWidget]')"
    await page.wait_for_function(still, timeout=WAIT_MS)
    seconds = time.monotonic() - begun
    text = await page.locator("body").inner_text()
    await page.close()
    assert f"{address_of(number)[:9]}" in text, (
        f"{address} shows somebody else, or nobody, signed in"
    )
    others = (other for other in range(people) if other != number)
    return seconds, sum(name_of(other) in text for other in others)


async def load(people: int, sessions: int, queries: Sequence[str]) -> tuple[list[float], int]:
    """Seconds of all page loads, one a person at a time, and names of others' tables seen."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    addresses = islice(cycle(PAGES), sessions)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=flags)

        async def person(number: int) -> list[tuple[float, int]]:
            context = await browser.new_context()
            cookie = {"name": USER_COOKIE_NAME, "value": signed_in(number)}
            await context.add_cookies([{**cookie, "url": f"http://127.0.0.1:{PORT}"}])
            return [
                await visit(context, f"{address}?{queries[number]}", number, people)
                for address in addresses
            ]

        visits = await asyncio.gather(*(person(number) for number in range(people)))
        await browser.close()
    together = [visit for several in visits for visit in several]
    return [seconds for seconds, _ in together], sum(names for _, names in together)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python benchmarks/load.py")
    parser.add_argument("--contexts", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, secrets_file = Path(folder) / "home", Path(folder) / "secrets.toml"
        table_ids, run_ids = prepare(home, options.contexts, options.runs)
        write_secrets(secrets_file, options.contexts)
        queries = [f"table={table_id}" for table_id in table_ids]
        for number, run_id in enumerate(run_ids):
            queries[number] += f"&run={run_id}"
        try:
            with served(home, secrets_file) as server:
                idle, before = server.memory_info().rss / MIB, sum(server.cpu_times()[:2])
                seconds, names = asyncio.run(load(options.contexts, options.sessions, queries))
                spent, after = sum(server.cpu_times()[:2]) - before, server.memory_info().rss / MIB
        finally:
            with runs.open_store(home) as store:
                for run_id in run_ids:
                    pid = store.run(run_id).pid
                    if pid is not None:
                        psutil.Process(pid).kill()
    cuts = statistics.quantiles(seconds, n=20)
    print(f"processor cores: {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
    print(f"sessions: {len(seconds)}, {options.contexts} at a time, {options.runs} runs training")
    print(f"time to interactive: p50 {statistics.median(seconds):.2f} s, p95 {cuts[18]:.2f} s")
    print(f"server processor time a page: {spent / len(seconds):.3f} s")
    print(f"server memory: {idle:.0f} MiB before the first session, {after:.0f} MiB after the last")
    print(f"names of other people's tables seen: {names}")


if __name__ == "__main__":
    main()
