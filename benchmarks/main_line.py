"""From an empty workspace to a reviewed file: what a person presses, and how long each step takes.

    python benchmarks/main_line.py [--table sample | --table people.csv] [--json]

Drives the app in a browser, as somebody would who takes every default: nothing declared, the model
and ε that Plan proposes. Every press of the pointer counts, and choosing the file to upload counts
as one; nothing has to be typed. A step ends when the page stands still. The time a person takes to
read is not in it; words are counted that stand on the first screen, 1440 × 900, and on the whole
page, axes of figures among them, cells of tables not. Needs Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.browser.app import browser_page, server, settled  # noqa: E402

SAMPLE = "sample"
PLAN = "Plan a synthetic table"
TRAINED_MS = 3_600_000  # a run may take an hour
WORDS = """() => {
  const texts = document.createTreeWalker(
    document.querySelector('[data-testid="stMain"]'), NodeFilter.SHOW_TEXT);
  const silent = 'style, [translate="no"], [data-testid="stDataFrame"], .st-key-language';
  let first = 0, all = 0;
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    const {top, width, height} = range.getBoundingClientRect();
    const parent = texts.currentNode.parentElement;
    if (width < 2 || height < 2 || parent.closest(silent) || !parent.checkVisibility()) continue;
    const words = [...texts.currentNode.textContent.matchAll(/\\S*[\\p{L}\\p{N}]\\S*/gu)].length;
    all += words;
    if (top < innerHeight) first += words;
  }
  return [first, all];
}"""


@dataclass(frozen=True)
class Step:
    """One step of the way.

    Attributes:
      does: what is reached.
      presses: names of what is pressed for it.
      seconds: until the page stands still.
      words: on the first screen, and on the whole page.
    """

    does: str
    presses: tuple[str, ...]
    seconds: float
    words: tuple[int, int]


class Way:
    """The way through the pages; keeps what was pressed and how long it took."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps: list[Step] = []
        self.pressed: list[str] = []

    def press(self, target: Locator, name: str) -> None:
        """Press something once it can be pressed."""
        target.click()
        self.pressed.append(name)

    def button(self, name: str) -> None:
        """Press the first button whose name begins so."""
        named = self.page.get_by_test_id("stMain").get_by_role("button", name=name)
        self.press(named.locator("visible=true").first, name)

    def step(self, does: str, act: Callable[[], None]) -> None:
        """Do one step and wait until the page stands still."""
        begun = time.monotonic()
        act()
        settled(self.page)
        # `settled` itself waits half a second to see that nothing moves any more
        seconds = time.monotonic() - begun - 0.5
        words = tuple(self.page.evaluate(WORDS))
        self.steps.append(Step(does, tuple(self.pressed), seconds, words))
        self.pressed.clear()


def upload(way: Way, file: Path) -> None:
    """Choose a file of one's own."""
    with way.page.expect_file_chooser() as chooser:
        way.button("Choose a file")
    chooser.value.set_files(str(file))
    way.pressed.append(file.name)
    way.page.get_by_role("button", name=PLAN).wait_for(timeout=TRAINED_MS)


def bring_in(way: Way, table: str) -> None:
    """The built-in sample, or a file."""
    if table != SAMPLE:
        upload(way, Path(table))
        return
    way.button("Try the sample table")
    way.page.get_by_role("button", name=PLAN).wait_for()


def train(way: Way) -> None:
    """Train, until the table and its comparison with the real one are there."""
    way.button("Train")
    way.page.get_by_text("The synthetic table is ready").wait_for(timeout=TRAINED_MS)


def review(way: Way) -> None:
    """The sentences of Review, and its first figures drawn."""
    way.button("Review")
    way.page.get_by_text("Inside view: contains real data").wait_for()
    way.page.locator(".js-plotly-plot .main-svg").first.wait_for()


def take(way: Way, folder: Path) -> None:
    """The file itself."""
    with way.page.expect_download() as caught:
        way.button("Download ")
    caught.value.save_as(folder / "synthetic.csv")


def walk(table: str) -> list[Step]:
    """The whole way, over a workspace of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = {"width": 1440, "height": 900}
        with server(folder / "home") as app, browser_page(viewport=size) as page:
            way = Way(page)

            def first() -> None:
                page.goto(app.url)
                page.get_by_role("button", name="Try the sample table").wait_for()

            def plan() -> None:
                way.button(PLAN)
                page.get_by_text("Planning reads no rows and spends nothing").wait_for()

            def download() -> None:
                way.button("Download")
                page.get_by_text("These are exactly the rows that were reviewed").wait_for()

            way.step("the first page", first)
            way.step("the table is in", lambda: bring_in(way, table))
            way.step("the plan", plan)
            way.step("trained and compared", lambda: train(way))
            way.step("the review", lambda: review(way))
            way.step("the page of the files", download)
            way.step("the file", lambda: take(way, folder))
            return way.steps


def main() -> None:
    """Walk and print."""
    parser = argparse.ArgumentParser(prog="python benchmarks/main_line.py")
    parser.add_argument("--table", default=SAMPLE, help="a file, or the built-in sample")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    steps = walk(options.table)
    if options.json:
        print(json.dumps([asdict(step) for step in steps]))
        return
    name = options.table if options.table == SAMPLE else Path(options.table).name
    print(f"{name}, {os.cpu_count()} processor cores, load {os.getloadavg()[0]:.1f} at the end\n")
    print("| reached | pressed | presses | seconds | words |\n|---|---|---|---|---|")
    for step in steps:
        pressed = ", ".join(f"“{name.strip()}”" for name in step.presses) or "–"
        words = "{} / {}".format(*step.words)
        print(f"| {step.does} | {pressed} | {len(step.presses)} | {step.seconds:.1f} | {words} |")
    presses, seconds = sum(len(s.presses) for s in steps), sum(s.seconds for s in steps)
    print(f"| **in all** | | **{presses}** | **{seconds:.0f}** | |")


if __name__ == "__main__":
    main()
