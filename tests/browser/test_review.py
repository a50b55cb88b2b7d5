"""Review in a real browser: look, comment, decide, compare, export; the file opened offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.quality.report.build_report import build_report
from core.quality.report.outside import outside_report
from core.runs.events import State
from core.runs.request import RunRequest
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.notes import Decision, Rule
from core.services import imports, planning, runs, tables
from core.services.sample_tables import SAMPLE_NAME, SAMPLE_TARGET, sample_table
from tests.browser.app import PATIENCE, Server, open_page, server, settled
from tests.requests_for import request_for

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]
TITLE = "made by hand"


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A workspace with two finished runs: a good table and one whose columns were shuffled."""
    folder = tmp_path_factory.mktemp("review") / "home"
    store = runs.open_store(folder)
    everyone = sample_table(800)
    real, made = everyone[:450].reset_index(drop=True), everyone[450:].reset_index(drop=True)
    table = imports.import_frame(store, real, name=SAMPLE_NAME, source="test")
    table = tables.change_target(store, table, SAMPLE_TARGET)
    table = tables.declare_all(store, tables.change_holdout(store, table, 0.2))
    store.attest(table.id)
    train, held = store.load_split(table.id, table.schema, table.columns)
    mixed = made.apply(lambda column: column.sample(frac=1, random_state=1).array)
    for name, epsilon, frame in ((TITLE, 1.0, made), ("shuffled", 0.3, mixed)):
        plan = planning.make_plan(
            table.schema, table.training_n, RunRequest(model="pearl", epsilon=epsilon)
        )
        run = store.create_run(
            table.id,
            plan,
            request_for(plan, rows=len(frame), seed=1, device="cpu", name=name),
            schema=table.schema,
        )
        frame.to_parquet(store.artefacts(run.id).path("synthetic.parquet"), index=False)
        store.artefacts(run.id).path("certificate.json").write_text('{"claim": "ε = 1"}')
        store.record(run.id, guarantee=plan.guarantee)
        inside = build_report(train, frame, table.schema, test=held)
        store.artefacts(run.id).path("report.json").write_text(inside.model_dump_json())
        outside = outside_report(frame, table.schema)
        store.artefacts(run.id).path("outside.json").write_text(outside.model_dump_json())
        assert store.set_state(run.id, State.DONE, "Done.")
    return folder


@pytest.fixture(scope="module")
def app(home) -> Iterator[Server]:
    with server(home) as running:
        yield running


def run_called(home: Path, name: str):
    return next(run for run in runs.open_store(home).runs() if run.name == name)


def test_review_comment_verdict_and_export(app, browser, page, home, tmp_path):
    run = run_called(home, TITLE)
    store = runs.open_store(home)
    notes.set_rule(store, table_id=run.table_id, author="Steward", rule=Rule(approvals=1))
    page.goto(f"{app.url}/download?run={run.id}")
    page.get_by_text("This table is waiting for review").wait_for()
    page.get_by_role("button", name="Go to the review").click()
    page.get_by_text("Inside view: contains real data").wait_for()
    expect(page.get_by_text("shares of single columns")).to_be_visible()
    expect(page.locator(".js-plotly-plot").locator("visible=true").first).to_be_visible(
        timeout=PATIENCE
    )
    # a comment on a figure
    page.get_by_role("tab", name="The whole table").click()
    page.get_by_role("button", name="Comment", exact=True).locator("visible=true").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ada")
    dialog.get_by_label("What do you see?").fill("The clouds agree.")
    dialog.get_by_role("button", name="Save comment").click()
    page.get_by_role("button", name="Comment (1)").wait_for()
    settled(page)  # the rest of the page is drawn anew too, which would take the focus away
    # a verdict, by keyboard alone
    page.get_by_role("tab", name="Discussion").click()
    page.get_by_text("Your verdict").wait_for()
    approve_by_keyboard(page)
    page.get_by_text("Approved").first.wait_for()
    # nothing is lost by a refresh
    page.reload()
    page.get_by_text("Inside view: contains real data").wait_for()
    expect(page.get_by_role("tab", name="Discussion")).to_have_attribute("aria-selected", "true")
    # the report as one file
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Inside report (HTML)").click()
    caught.value.save_as(tmp_path / "inside.html")
    assert "review-inside" in caught.value.suggested_filename
    # the download is open now
    page.goto(f"{app.url}/download?run={run.id}")
    page.get_by_text("These are exactly the rows that were reviewed").wait_for()
    (said,) = notes.comments(store, run.id)
    assert (said.about, said.author, said.text) == ("pca", "Ada", "The clouds agree.")
    (verdict,) = notes.review_verdicts(store, run.id)
    assert verdict.decision is Decision.APPROVE and verdict.text == "Close enough."
    text = (tmp_path / "inside.html").read_text(encoding="utf-8")
    assert "INSIDE ONLY" in text and "The clouds agree." in text and len(text) < 5_000_000
    open_offline(browser, tmp_path / "inside.html")


def approve_by_keyboard(page: Page) -> None:
    """Nothing is chosen for anybody; a name, the choice and a reason, without a mouse."""
    name = page.get_by_label("Your name").locator("visible=true").first
    name.fill("Ada")
    approve = page.get_by_role("radio", name="Approve")
    changes = page.get_by_role("radio", name="Request changes")
    settled(page)
    name.press("Tab")
    expect(approve).to_be_focused()
    for choice in (approve, changes):
        expect(choice).not_to_be_checked()
    page.keyboard.press("Space")
    expect(approve).to_be_checked()
    page.keyboard.press("ArrowRight")
    expect(changes).to_be_checked()
    page.keyboard.press("ArrowLeft")
    expect(approve).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Why, or what should change")).to_be_focused()
    page.keyboard.type("Close enough.")
    expect(page.get_by_label("Why, or what should change")).to_have_value("Close enough.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def open_offline(browser: Browser, path: Path) -> None:
    """Every figure of the file is drawn without a network, and answers to the pointer."""
    faults: list[str] = []
    with open_page(browser, offline=True) as page:
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("requestfailed", lambda request: faults.append(request.url))
        page.goto(path.as_uri())
        page.locator("html[data-ready=yes]").wait_for(state="attached", timeout=PATIENCE)
        plots = page.locator(".plot")
        for i in range(plots.count()):
            plots.nth(i).scroll_into_view_if_needed()
            plots.nth(i).locator(".main-svg").first.wait_for()
        box = plots.nth(plots.count() - 1).bounding_box()
        assert box is not None and box["height"] > 100
        plots.first.scroll_into_view_if_needed()
        plots.first.hover()
        assert page.locator(".stamp").is_visible()
        page.emulate_media(media="print")
        assert page.locator(".stamp").is_visible()
    assert faults == []


def test_the_outside_link_shows_nothing_real(app, browser, page, home, tmp_path):
    run = run_called(home, TITLE)
    page.goto(f"{app.url}/review?run={run.id}&view=outside")
    page.get_by_text("Outside view: safe to share").wait_for()
    expect(page.get_by_text("Nothing on this page was computed from real rows.")).to_be_visible()
    assert page.get_by_text("Inside view").count() == 0
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Outside report (HTML)").click()
    caught.value.save_as(tmp_path / "outside.html")
    page.reload()
    page.get_by_text("Outside view: safe to share").wait_for()
    text = (tmp_path / "outside.html").read_text(encoding="utf-8")
    assert "MAY BE SHOWN OUTSIDE" in text and "The clouds agree." not in text
    open_offline(browser, tmp_path / "outside.html")


def test_arrow_keys_keep_the_focus_on_the_tabs(app, page, home):
    page.goto(f"{app.url}/review?run={run_called(home, TITLE).id}&view=outside")
    tabs = page.get_by_role("tab")
    tabs.first.click()
    settled(page)
    for i in range(1, tabs.count()):
        page.keyboard.press("ArrowRight")
        expect(tabs.nth(i)).to_have_attribute("aria-selected", "true")
        settled(page)
        expect(tabs.nth(i)).to_be_focused()
    # what Streamlit does at some of these, by chance: all tabs are disabled for an instant
    lost = """tab => new Promise(resolve => {
        tab.addEventListener("focusout", resolve, {once: true});
        tab.removeAttribute("tabindex");
    }).then(() => setTimeout(() => { tab.tabIndex = 0 }, 100))"""
    tabs.last.evaluate(lost)
    expect(tabs.last).to_be_focused()


def test_wide_figures_scroll_by_themselves_on_a_telephone(app, browser, home):
    options = {"viewport": {"width": 420, "height": 900}, "has_touch": True, "is_mobile": True}
    with open_page(browser, user_agent="Mobile", **options) as page:
        page.goto(f"{app.url}/review?run={run_called(home, TITLE).id}")
        page.get_by_role("tab", name="Pairs").click()
        box = page.locator(".st-key-wide_associations")
        box.locator(".main-svg").first.wait_for(timeout=PATIENCE)
        assert box.evaluate("e => e.scrollWidth") >= 3 * 240  # one panel beside the other
        box.scroll_into_view_if_needed()
        finger = page.context.new_cdp_session(page)
        begin = box.bounding_box()
        assert begin is not None and begin["width"] <= 420
        x, y = begin["x"] + 300, begin["y"] + 150
        for kind, moved in (("Start", 0), *(("Move", 10 * i) for i in range(20)), ("End", None)):
            at = [] if moved is None else [{"x": x - moved, "y": y}]
            finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": at})
        page.wait_for_function(
            "document.querySelector('.st-key-wide_associations').scrollLeft > 50"
        )


def test_runs_are_compared_and_one_is_picked(app, page, home):
    good, bad = run_called(home, TITLE), run_called(home, "shuffled")
    page.goto(f"{app.url}/review?run={good.id}&runs={good.id},{bad.id}")
    page.get_by_text("Quality against ε").wait_for()
    page.get_by_text("of 2 runs. The best is made by hand").wait_for()
    page.get_by_text("Run to release").wait_for()
    page.get_by_role("radio", name=TITLE).check(force=True)
    page.get_by_label("Your name").fill("Bea")
    page.get_by_role("button", name="Pick this run").click()
    page.get_by_text("picked by Bea").wait_for()
    page.goto(f"{app.url}/download?run={bad.id}")
    page.get_by_text("Bea picked another run of this table for release").wait_for()
    assert notes.picked(runs.open_store(home), good.table_id) == (good.id, "Bea")
