"""The product's main job in a real browser: a file in, a private synthetic file out."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from core.runs.events import State
from core.services import runs
from tests.browser.app import PATIENCE, in_sight, kill_workers, server, settled
from tests.browser.keyboard import pick, press

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]
ROWS = 300


def patients() -> pd.DataFrame:
    """A small mixed table with gaps and an identifier."""
    rng = np.random.default_rng(0)
    ill = rng.random(ROWS) < 0.3
    age = np.clip(rng.normal(np.where(ill, 65, 40), 12), 0, 99).astype(int)
    ward = pd.Series(rng.choice(["north", "south", "east"], ROWS))
    ward[rng.random(ROWS) < 0.05] = None
    cost = np.where(rng.random(ROWS) < 0.6, 0, rng.lognormal(7, 1, ROWS)).astype(int)
    day = pd.to_datetime(rng.integers(19_000, 19_365, ROWS), unit="D").strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "patient": [f"P{i:05d}" for i in rng.permutation(ROWS)],
            "age": age,
            "cost": cost,
            "ward": ward,
            "admitted": day,
            "ill": np.where(ill, "yes", "no"),
        }
    )


def upload(page: Page, url: str, file: Path) -> None:
    page.goto(url)
    assert in_sight(page.get_by_role("button", name="Try the sample table"))
    press(page.get_by_role("link", name="Skip to main content"))
    with page.expect_file_chooser() as chooser:
        press(page.get_by_role("button", name="Choose a file"))
    chooser.value.set_files(str(file))
    assert in_sight(page.get_by_role("button", name="Plan a synthetic table"))
    page.get_by_text("are learned with noise when the run starts").wait_for()
    settled(page)


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory):
    with server(tmp_path_factory.mktemp("main") / "home") as running:
        yield running


@pytest.fixture
def app(shared_app):
    yield shared_app
    kill_workers(shared_app.home)


def unfold(page: Page, title: str) -> None:
    press(page.locator("summary").filter(has=page.get_by_text(title, exact=True)))
    page.wait_for_function(  # what is unfolding pushes what has the focus out of the window
        """() => [...document.querySelectorAll("details")].every(
            (one) => !one.getAnimations({subtree: true}).length)"""
    )


def plan(page: Page, **settings: int) -> None:
    button = page.get_by_role("button", name="Plan a synthetic table")
    assert in_sight(button)
    expect(button).to_be_enabled()
    press(button)
    train = page.get_by_role("button", name="Train: spends ε = 1")
    train.wait_for()
    assert in_sight(train)
    settled(page)
    unfold(page, "Model")
    models = page.get_by_role("radiogroup", name="Model")
    pick(models.get_by_role("radio", name="PEARL", exact=True), models)
    settled(page)
    unfold(page, "Options")
    for label, value in settings.items():
        box = page.get_by_role("spinbutton", name=label.replace("_", " "))
        press(box, "ControlOrMeta+a")
        page.keyboard.type(f"{value}\n")
        settled(page)  # the plan with the edited setting has reached the page
    expect(train).to_be_enabled()
    press(train)
    page.wait_for_url("**/training?run=*")


def run_of(page: Page) -> str:
    return page.url.split("run=")[1].split("&")[0]


def test_from_an_uploaded_file_to_a_downloaded_one(app, page, tmp_path):
    real = patients()
    real.to_csv(tmp_path / "patients.csv", index=False)
    page.set_viewport_size({"width": 1440, "height": 900})
    upload(page, app.url, tmp_path / "patients.csv")
    plan(page, Training_steps=20, Frequencies=100)
    page.get_by_text("The synthetic table is ready").wait_for(timeout=4 * PATIENCE)
    page.reload()  # a new session: the run is in the address
    page.get_by_text("The synthetic table is ready").wait_for()
    button = page.get_by_role("button", name="Review").first
    assert in_sight(button)
    settled(page)
    press(button)
    page.get_by_text("Inside view: contains real data").wait_for(timeout=2 * PATIENCE)
    expect(page.locator(".js-plotly-plot").locator("visible=true").first).to_be_visible(
        timeout=PATIENCE
    )
    button = page.get_by_role("button", name="Download").first
    assert in_sight(button)
    settled(page)
    press(button)
    page.get_by_text("These are exactly the rows that were reviewed").wait_for()
    settled(page)
    with page.expect_download() as caught:
        button = page.get_by_role("button", name="Download patients-synthetic-epsilon-1.csv")
        assert in_sight(button)
        press(button)
    caught.value.save_as(tmp_path / "synthetic.csv")
    with page.expect_download() as proof:
        press(page.get_by_role("button", name="Privacy certificate"))
    proof.value.save_as(tmp_path / "certificate.json")
    synthetic = pd.read_csv(tmp_path / "synthetic.csv")
    assert list(synthetic.columns) == list(real.columns)
    assert len(synthetic) == ROWS
    assert synthetic["age"].dtype == "int64" and synthetic["cost"].dtype == "int64"
    assert (synthetic["age"] >= 0).all()  # learned bounds of so few rows may reach far up
    assert synthetic["ward"].dropna().str.fullmatch(r"north|south|east|OTHER( \d+)?").all()
    assert synthetic["ill"].isin(["yes", "no"]).all()
    assert not synthetic["patient"].isin(real["patient"]).any()
    pd.to_datetime(synthetic["admitted"], format="%Y-%m-%d")
    text = (tmp_path / "certificate.json").read_text()
    assert '"zero-out' in text or "zero-out" in text


def test_a_killed_worker_resumes_and_outlives_the_server(app, page, tmp_path):
    patients().to_csv(tmp_path / "patients.csv", index=False)
    upload(page, app.url, tmp_path / "patients.csv")
    plan(page, Training_steps=250, Frequencies=1000)
    store = runs.open_store(app.home)
    run = run_of(page)
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and store.journal.latest(run, "metrics") is None:
        time.sleep(0.05)
    pid = store.run(run).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    page.get_by_text("ended unexpectedly").wait_for()
    page.get_by_text("spends nothing more").wait_for()
    settled(page)  # the page's last look at the live run is over
    second = page.context.new_page()  # another tab, which nobody touches
    second.goto(page.url)
    second.get_by_role("button", name="Resume").wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause").wait_for()
    second.get_by_role("button", name="Pause").wait_for()
    second.close()
    app.kill()
    assert store.run(run).state is State.RUNNING  # the worker never noticed
    app.start()
    page.goto(f"{app.url}/training?run={run}")
    page.get_by_text("The synthetic table is ready").wait_for(timeout=6 * PATIENCE)
    done = store.run(run)
    assert done.plan.settings["steps"] == 250
    assert done.guarantee is not None
    assert done.guarantee.epsilon == done.plan.guarantee.epsilon


def test_the_first_request_of_a_cold_server_is_guarded(page, tmp_path):
    with server(tmp_path / "home") as app:
        page.goto(f"{app.url}/review")
        page.get_by_text("No run has finished yet, so there is nothing to review").wait_for()
        # the navigation comes from app.py, so the page did not run on its own
        expect(page.get_by_role("link", name="Ledger")).to_be_visible()


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "empty"),
    "header.csv": (b"a,b,c\n", "no rows"),
    "ragged.csv": (b"a,b\n1,2\n3,4,5\n", "line 3"),
    "page.csv": (b"<html><body><table></table></body></html>", "web page"),
    "quote.csv": (b'a,b\n1,"2\n3,4\n', "quot"),
    "binary.csv": (bytes(range(256)) * 40, "binary"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n" + bytes(64), "picture"),
    "broken.parquet": (b"PAR1 and then nothing", "Parquet file is damaged"),
    "broken.xlsx": (b"PK\x03\x04 not a workbook", "Excel"),
    "broken.csv.gz": (b"\x1f\x8b\x08 cut off", "gzip"),
}


def test_ten_malformed_files_get_ten_errors_and_the_app_lives(app, page, tmp_path):
    """In one session: what was refused is in the way of no other file."""
    patients().to_csv(tmp_path / "patients.csv", index=False)
    seen = set()
    page.goto(app.url)
    page.get_by_role("button", name="Try the sample table").wait_for()
    for name, (content, word) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
        page.locator('input[type="file"]').set_input_files(str(tmp_path / name))
        alert = page.get_by_role("alert").filter(has_text=word)
        alert.wait_for()
        text = alert.locator("p").inner_text()
        assert "Traceback" not in text and "\n" not in text, text
        page.get_by_role("button", name=f"Try {name} again").wait_for()
        seen.add(text)
    assert len(seen) == len(BROKEN)  # each fault in its own words
    page.locator('input[type="file"]').set_input_files(str(tmp_path / "patients.csv"))
    page.get_by_text("are learned with noise when the run starts").wait_for()
