"""A real server and a real browser for tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from core.runs.events import State
from core.services import runs
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
# The first draws the same pages with an eighth less work: it is Chromium without the window.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--js-flags=--no-opt --no-maglev",  # a page that lives for seconds does not earn it back
)
PATIENCE = 60_000  # ms a test waits for something to show


def browser_path() -> str:
    """The system's Chromium; without one the test is skipped, but never on CI."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("CI must have Chromium (Debian package chromium-headless-shell).")
        pytest.skip("Chromium is not installed (Debian package chromium-headless-shell).")
    return found


class Server:
    """`streamlit run app.py` on a free port over a workspace of its own."""

    def __init__(self, home: Path, port: int | None = None, flags: Sequence[str] = ()):
        self.home = home
        self.flags = flags
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start and wait until it is healthy."""
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "streamlit", "run", "app.py",
                f"--server.port={self.port}", "--server.headless=true",
                "--server.fileWatcherType=none", "--browser.gatherUsageStats=false", *self.flags,
            ],
            cwd=ROOT,
            env={**os.environ, "FACSIMILE_HOME": str(self.home), "NO_PROXY": "127.0.0.1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1).close()
                return
            time.sleep(0.1)
        raise RuntimeError("the server did not become healthy in 60 s")

    def kill(self) -> None:
        """Kill it by its process id, as a crash would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def server(home: Path, port: int | None = None, flags: Sequence[str] = ()) -> Iterator[Server]:
    """A server that is gone at the end, with the workers of its runs."""
    running = Server(home, port, flags)
    try:
        yield running
    finally:
        running.kill()
        kill_workers(home)


def kill_workers(home: Path) -> None:
    """End what is still at work, so that the next test has the processors to itself."""
    with runs.open_store(home) as store:
        for run in store.runs():
            if run.state is State.RUNNING and run.pid is not None:
                os.kill(run.pid, signal.SIGKILL)


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A fresh browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=list(FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def open_page(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page that shares nothing with others of the browser."""
    context = browser.new_context(accept_downloads=True, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


@contextlib.contextmanager
def browser_page(**options: Any) -> Iterator[Page]:
    """A fresh browser with one page."""
    with open_browser() as browser, open_page(browser, **options) as page:
        yield page


def in_sight(button: Locator) -> bool:
    """Whether a button stands whole inside the window, as the page is without scrolling."""
    button.wait_for()
    box, window = button.bounding_box(), button.page.viewport_size
    assert box is not None and window is not None
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= window["width"]
        and box["y"] + box["height"] <= window["height"]
    )


def settled(page: Page) -> None:
    """Wait until the server has run no script of this page for half a second."""
    page.evaluate("window.busyAt = performance.now()")
    page.wait_for_function(
        """() => {
            const app = document.querySelector("[data-testid=stApp]");
            if (app?.dataset.testScriptState !== "notRunning") window.busyAt = performance.now();
            return performance.now() - window.busyAt > 500;
        }""",
        polling=50,  # ms; at every frame, it would keep the page drawing
    )
