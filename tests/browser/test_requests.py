"""No page asks another machine for anything, whatever people wrote; what they wrote is text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pytest
from playwright.sync_api import Page

from core.export import page_html as exported
from core.proposing.propose import infer_schema
from core.quality.report.build_report import build_report
from core.quality.report.outside import outside_report
from core.runs.records import RunRecord
from core.runs.request import RunRequest
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.notes import Decision
from core.runs.storage.store import RunStore
from core.services import imports, planning, runs, tables
from tests.browser.app import Server, open_page, server, settled
from tests.pages.screen import finish

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]
ELSEWHERE = "elsewhere.invalid"


def hostile(where: str) -> str:
    """Text that Markdown, HTML and Streamlit's own marks would make something of."""
    return (
        f"{where} ![p](http://{ELSEWHERE}/{where}.png) <img src=http://{ELSEWHERE}/h.png> "
        f"[l](http://{ELSEWHERE}) http://{ELSEWHERE}/{where} www.{ELSEWHERE} :material/bolt: "
        f"**b** :red[r] $x^2$"
    )


def table() -> pd.DataFrame:
    values = [hostile("value"), f"<a href='http://{ELSEWHERE}'>v</a>", "plain"]
    return pd.DataFrame(
        {
            hostile("column"): [20 + i % 40 for i in range(120)],
            f"<a href='http://{ELSEWHERE}'>column</a>": [values[i % 3] for i in range(120)],
            "target": ["yes" if i % 4 else "no" for i in range(120)],
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("requests") / "home"


@pytest.fixture(scope="module")
def run(home: Path) -> RunRecord:
    """A finished run where everybody who could write something wrote hostile text."""
    store = runs.open_store(home)
    frame = table()
    record = imports.import_frame(
        store, frame, name=hostile("table"), source=f"upload of {hostile('file')}"
    )
    record = tables.change_target(store, record, "target")
    record = tables.change_groups(store, record, {frame.columns[0]: hostile("group")})
    record = tables.declare_all(store, record)
    store.attest(record.id)
    made = [finished(store, record.id, frame, number) for number in (1, 2)]
    for about in ("", f"column:{frame.columns[0]}"):
        notes.comment(
            store,
            table_id=record.id,
            run_id=made[0].id,
            about=about,
            author=hostile("author")[:120],
            text=hostile("comment"),
            view="inside",
        )
    notes.decide(
        store,
        table_id=record.id,
        run_id=made[0].id,
        author=hostile("judge")[:120],
        decision=Decision.APPROVE,
        text=hostile("verdict"),
        view="inside",
    )
    notes.pick(store, table_id=record.id, run_id=made[1].id, author=hostile("picker")[:120])
    return made[0]


def finished(store: RunStore, table_id: str, frame: pd.DataFrame, number: int) -> RunRecord:
    record = store.table(table_id)
    request = RunRequest(model="pearl", epsilon=float(number))
    run = store.create_run(
        table_id,
        planning.make_plan(record.schema, record.training_n, request),
        request.model_copy(
            update=dict(
                rows=len(frame),
                seed=1,
                device="cpu",
                name=hostile("run")[:80],
            )
        ),
        schema=record.schema,
    )
    report = build_report(frame, frame, record.schema, test=frame)
    outside = outside_report(frame, record.schema)
    finish(
        store,
        run,
        report=json.loads(report.model_dump_json()),
        outside=json.loads(outside.model_dump_json()),
    )
    return store.run(run.id)


def visit(page: Page, address: str) -> str:
    """Open a page, and every tab and fold of it; what could be read there."""
    page.goto(address)
    page.get_by_role("heading").first.wait_for()
    settled(page)
    seen = page.locator("body").inner_text()
    for tab in page.get_by_role("tab").all():
        tab.click()
        settled(page)  # what a tab holds is made when it is opened
        seen += page.locator("body").inner_text()
    for fold in page.locator("details:not([open]) > summary").all():
        if fold.is_visible():
            fold.click()
    settled(page)
    return seen + page.locator("body").inner_text()


@pytest.fixture(scope="module")
def app(home: Path, run: RunRecord) -> Iterator[Server]:
    with server(home) as running:
        yield running


def test_no_page_asks_anybody_else_and_text_of_people_is_text(app, page, run):
    asked: list[str] = []
    refused: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: refused.append(said.text))
    seen = ""
    for place in (
        "",
        f"?table={run.table_id}",
        f"plan?table={run.table_id}",
        f"training?run={run.id}",
        f"review?run={run.id}",
        f"review?run={run.id}&view=outside",
        f"review?run={run.id}&runs={run.id}",
        f"download?run={run.id}",
        "ledger",
    ):
        seen += visit(page, f"{app.url}/{place}").replace("\u2060", "")
        assert page.locator(f"[src*='{ELSEWHERE}'], [href*='{ELSEWHERE}']").count() == 0, place
    for link in ("Tables", "Plan", "Review"):  # a click changes the page without loading it
        page.get_by_role("link", name=link, exact=True).click()
        settled(page)
    for nowhere in ("review/x", "nonsense", "tables/../x/"):
        page.goto(f"{app.url}/{nowhere}")
        page.get_by_text("There is no page at this address").wait_for()
    home_host = urlsplit(app.url).netloc
    away = {url for url in asked if urlsplit(url).scheme not in ("data", "blob")
            and urlsplit(url).netloc != home_host}  # fmt: skip
    assert away == set()
    assert [text for text in refused if "Content Security Policy" in text] == []
    written = {"table", "file", "column", "run", "author", "comment", "judge", "verdict", "picker"}
    assert {where for where in written if f"{where} ![p](http://{ELSEWHERE}" in seen} == written
    for mark in (":material/bolt:", "**b**", "$x^2$"):
        assert mark in seen


def test_an_exported_report_holds_no_link_or_picture_of_labels(page, tmp_path):
    labels = (
        f"<a href='http://{ELSEWHERE}'>link",
        "<A xlink:href='javascript:alert(1)'>shout",
        f"[mark](http://{ELSEWHERE}) http://{ELSEWHERE} www.{ELSEWHERE}",
        f"<img src=http://{ELSEWHERE}/i.png onerror=alert(2)>",
    )
    name = f"<a href='http://{ELSEWHERE}'>column"
    frame = pd.DataFrame({name: [labels[i % 4] for i in range(80)], "n": range(80)})
    report = outside_report(frame, infer_schema(frame)).model_dump(mode="json")
    file = tmp_path / "report.html"
    file.write_text(exported.page(report, labels[0]), encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a label ran: {dialog.message}"))
    page.goto(file.as_uri())
    page.locator("[data-ready=yes]").wait_for()
    for place in page.locator(".plot").all():
        place.scroll_into_view_if_needed()
        place.locator("svg").first.wait_for()
    assert page.locator(".plot text").filter(has_text="<a href").count() > 0  # shown as it stands
    assert page.locator("a").count() == page.locator("main img").count() == 0
    assert [url for url in asked if ELSEWHERE in url] == []


CONTRASTS = """() => {
  const light = colour => {
    const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.match(/[0-9.]+/g).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = one => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      const parts = colour.match(/[0-9.]+/g);
      if (parts.length < 4 || parts[3] > 0.99) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const shown = [...document.querySelectorAll("button")].filter(
    one => one.innerText.trim() && !one.disabled && one.offsetParent);
  return shown.map(one => {
    const text = one.querySelector("p") ?? one;
    const [a, b] = [getComputedStyle(text).color, behind(text)].map(light);
    return [one.innerText.trim(), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  });
}"""
OUTLINE = """() => {
  const look = getComputedStyle(document.activeElement);
  return [document.activeElement.tagName, look.outlineStyle, parseFloat(look.outlineWidth)];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_buttons_can_be_read_and_the_keyboard_is_seen(app, browser, run, theme):
    with open_page(browser, color_scheme=theme) as page:
        for place in (f"download?run={run.id}", ""):
            page.goto(f"{app.url}/{place}")
            page.get_by_role("heading").first.wait_for()
            page.wait_for_function(f"({CONTRASTS})().length > 1", polling=100)
            settled(page)
            contrasts = dict(page.evaluate(CONTRASTS))
            assert {text: ratio for text, ratio in contrasts.items() if ratio < 4.5} == {}, place
        page.evaluate("document.activeElement.blur()")
        stops = []
        for _ in range(12):
            page.keyboard.press("Tab")
            stops.append(page.evaluate(OUTLINE))
        visible = [stop for stop in stops if stop[0] in ("A", "BUTTON")]
        assert len(visible) >= 8
        assert all(style == "solid" and width >= 2 for _, style, width in visible), stops
