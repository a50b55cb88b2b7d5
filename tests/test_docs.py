"""The privacy statement names code and tests that are there; the reference leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import make_reference

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


# -- the reference --------------------------------------------------------------------------------


def test_the_reference_says_what_the_code_says():
    written = make_reference.PAGE.read_text(encoding="utf-8")
    assert written == make_reference.page(), "renew it: python -m docs.make_reference"


def test_every_option_has_a_text():
    for name, (words, parser) in make_reference.commands().items():
        assert words, name
        rows = list(make_reference.options(parser, make_reference.EVERYWHERE))
        assert [form for form, text in rows if not text] == [], name


def sources(*patterns: str) -> str:
    """The text of all files that match."""
    return "".join(
        path.read_text(encoding="utf-8") for pattern in patterns for path in ROOT.glob(pattern)
    )


def test_every_environment_variable_is_in_the_reference():
    text = sources("app.py", "core/**/*.py", "pages/**/*.py", "tests/**/*.py", ".ci/run")
    assert set(re.findall(r"FACSIMILE_[A-Z_]+", text)) == set(make_reference.ENVIRONMENT)


def test_every_key_of_the_secrets_is_in_the_reference():
    text = sources("app.py", "core/**/*.py", "pages/**/*.py")
    keys = re.findall(r"""\bsecrets(?:\.get\(|\[)["'](\w+)["']""", text)
    keys += re.findall(r"""["'](\w+)["'] (?:not )?in (?:st\.)?secrets\b""", text)
    keys += re.findall(r"""^(?:OPEN|NETWORK|TRUSTED) = ["'](\w+)["']""", text, re.MULTILINE)
    assert set(keys) == set(make_reference.SECRETS)
