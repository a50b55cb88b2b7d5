"""The privacy statement names code and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STATEMENT = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in STATEMENT.splitlines()
    if line.startswith("| ") and not line.startswith("| **") and "---" not in line
][1:]
NAMED = sorted(set(re.findall(r"`((?:core|pages|tests)/[^`]+)`", STATEMENT)))
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)\)", STATEMENT)))


def test_every_claim_has_a_test():
    assert len(ROWS) > 25
    for row in ROWS:
        assert len(row) == 3, row
        assert "`tests/" in row[2], row


@pytest.mark.parametrize("name", NAMED)
def test_what_the_statement_names_is_there(name):
    """`path`, `path:function`, `path:Class.method` or `path::test`."""
    file, _, inside = name.replace("::", ":").partition(":")
    text = (ROOT / file).read_text(encoding="utf-8")
    for part in filter(None, inside.split(".")):
        assert re.search(rf"^\s*(def|class) {re.escape(part)}\b", text, re.MULTILINE), name


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_somewhere(link):
    assert (ROOT / "docs" / link).exists()


def test_what_quick_runs_leave_out_is_there():
    """A renamed file must not become quick unseen."""
    from tests.conftest import LEFT_OUT, left_out

    for place in LEFT_OUT:
        assert (ROOT / "tests" / place).exists(), place
    assert left_out(ROOT / "tests" / "browser" / "test_review.py")
    assert not left_out(ROOT / "tests" / "privacy" / "test_omission.py")
