"""Text from people as text, files for their makers alone, and tables asked for in one place."""

from __future__ import annotations

import ast
import time
from functools import partial
from pathlib import Path

import pytest

from core.runs.errors import NotFoundError
from core.runs.storage.access import Access, accesses, set_access
from pages.server import download_tokens, guard
from pages.shared import downloads, visible
from pages.shared.plain import JOINER, plain
from tests.pages.screen import said

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "pages").rglob("*.py"))
TEXTS = ["visit_id", "a*b*", "_x_", "1. x", "# x", "![p](http://x)", "<b>", "`c`", "$x$", ":bolt:"]


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_is_lost(text):
    assert said(plain(text)) == text


def test_what_backslashes_do_not_stop_is_broken_up():
    text = plain("http://x.org :material/bolt: www.x.org a@x.org")
    for found in ("http://", ":material", "www.", "@x"):
        assert found not in text and found in text.replace(JOINER, "")


def test_plain_text_is_one_line():
    assert plain("a\n\n# b\n- c") == "a # b - c"


# -- who sees a table --------------------------------------------------------------------------


def test_a_table_admits_its_owner_and_whom_they_named(store, table):
    assert accesses(store) == {}
    kept = set_access(store, table.id, owner="Ann@x.org", shared=["BOB@x.org ", "", "ann@x.org"])
    assert accesses(store) == {table.id: kept} and kept == Access("ann@x.org", ("bob@x.org",))
    assert kept.admits("ann@x.org", steward=True) and kept.admits("bob@x.org", steward=False)
    assert not kept.admits("ada@x.org", steward=True) and not kept.admits("", steward=True)
    wide = set_access(store, table.id, owner="ann@x.org", stewards=True)
    assert wide.admits("ada@x.org", steward=True) and not wide.admits("bob@x.org", steward=False)


def test_what_was_said_of_a_table_goes_with_it(store, table):
    set_access(store, table.id, owner="ann@x.org")
    store.delete_table(table.id)
    assert accesses(store) == {}
    with pytest.raises(NotFoundError):
        set_access(store, table.id, owner="ann@x.org")


def test_pages_ask_for_tables_and_runs_in_one_place():
    """`store().tables()`, `.table(…)` and `.runs(…)` know nothing of who asks."""
    # the last two sort out themselves
    allowed = {"shared/visible.py", "ledger/page.py", "tables/account_choice.py"}
    for path in SOURCES:
        name = path.relative_to(ROOT / "pages").as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                text = ast.unparse(node.func)
                if text.endswith(("store.tables", "store().tables", "store().table")) or (
                    text.endswith(("store.runs", "store().runs")) and "shared" in text
                ):
                    assert name in allowed, f"{name}: {text}"


# -- files for their makers --------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(download_tokens.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(download_tokens, "_waiting", {})
    return clock


def test_a_file_waits_for_its_maker_and_not_for_long(now, monkeypatch, store):
    monkeypatch.setattr(guard, "configured", lambda: True)
    ann, ada = (
        {"email": f"{name}@x.org", "iat": time.time(), "is_logged_in": True, "email_verified": True}
        for name in ("ann", "ada")
    )
    assert not download_tokens.fetchable(b"x", ann)
    download_tokens.enter(b"x", "ann@x.org", lambda: True)
    assert download_tokens.awaited(b"x") and not download_tokens.fetchable(b"x", ada)
    for _ in range(2):  # a browser comes as often as it likes
        assert download_tokens.fetchable(b"x", ann)
    now[0] += download_tokens.SECONDS + 1
    assert not download_tokens.awaited(b"x") and not download_tokens.fetchable(b"x", ann)
    download_tokens.enter(b"y", "ann@x.org", lambda: True)
    assert len(download_tokens._waiting) == 1  # forgotten, not only refused


def test_a_file_asks_again_when_it_is_fetched(now):
    answers = [True, False]
    download_tokens.enter(b"x", "", lambda: answers.pop(0))
    assert download_tokens.fetchable(b"x", {}) and not download_tokens.fetchable(b"x", {})


def test_nothing_is_made_for_who_may_not_have_it(now, monkeypatch, store, table):
    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "roles_of", lambda address: {"reviewer"})
    made = []
    with pytest.raises(PermissionError, match="Nothing was made"):
        steward = partial(downloads._allowed, "", "steward", table.id)
        downloads._made(lambda: made.append(1) or "x", "", table.id, steward)
    assert made == [] and downloads._allowed("", "reviewer", table.id)
    set_access(store, table.id, owner="ann@x.org")
    assert not downloads._allowed("bob@x.org", "reviewer", table.id)
    assert visible.hidden("bob@x.org") == {table.id}


def test_links_are_taken_out_of_pictures():
    from pages.shared import widgets as shared

    figure = {"data": [], "layout": {"title": "<a href='http://x'>c</a> <b>d</b>"}}
    shown = shared.drawn(figure)["layout"]["title"]
    assert "<a" not in shown and "&lt;a href" in shown and "<b>d</b>" in shown
    quiet = {"data": [], "layout": {"title": "a < b"}}
    assert shared.drawn(quiet) == quiet
