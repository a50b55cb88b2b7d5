"""The privacy statement names code and tests that are there; the reference leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

from docs import make_reference

ROOT = Path(__file__).resolve().parents[1]
STATEMENT = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in STATEMENT.splitlines()
    if line.startswith("| ") and not line.startswith("| **") and "---" not in line
][1:]
NAMED = sorted(set(re.findall(r"`((?:core|pages|tests)/[^`]+)`", STATEMENT)))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))


def test_every_claim_has_a_test():
    assert len(ROWS) > 25
    for row in ROWS:
        assert len(row) == 3, row
        assert "`tests/" in row[2], row


def missing(name: str) -> bool:
    """Whether `path`, `path:function`, `path:Class.method` or `path::test` is not there."""
    file, _, inside = name.replace("::", ":").partition(":")
    if not (ROOT / file).exists():
        return True
    text = (ROOT / file).read_text(encoding="utf-8")
    return not all(
        re.search(rf"^\s*(def|class) {re.escape(part)}\b", text, re.MULTILINE)
        for part in filter(None, inside.split("."))
    )


def test_code_that_the_statement_names_exists():
    assert [name for name in NAMED if missing(name)] == []


def test_a_name_that_is_gone_is_found():
    assert not missing("tests/test_docs.py::missing")
    assert missing("tests/test_docs.py::no_such_test")
    assert missing("tests/no_such_file.py::missing")


# -- every document -------------------------------------------------------------------------------


def broken_links(page: Path) -> list[str]:
    """Targets of a page's links that are not there."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]


def absent_files(page: str) -> list[str]:
    """Files of this repository that a page names and that are not there."""
    names = re.findall(r"`((?:core|pages|tests|benchmarks|deploy|docs)/[\w/.]+\.\w+)`", page)
    return [name for name in names if not (ROOT / name).exists()]


def test_documents_name_files_that_exist():
    for page in PAGES:
        if page.name != "adding-a-model.md":  # whose example is not there
            assert absent_files(page.read_text(encoding="utf-8")) == [], page.name


def test_an_absent_file_is_found():
    assert absent_files("`tests/test_docs.py` and `core/nothing.py`") == ["core/nothing.py"]


def test_documents_link_to_files_that_exist():
    assert {page.name: broken for page in PAGES if (broken := broken_links(page))} == {}


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[here](page.md#top), [gone](gone.md), [elsewhere](https://example.org)")
    assert broken_links(page) == ["gone.md"]


def test_decisions_are_numbered_without_gaps():
    numbers = [path.name[:4] for path in DECISIONS]
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
    for path in DECISIONS:
        assert path.read_text(encoding="utf-8").startswith(f"# {int(path.name[:4])}. "), path.name


def lines(text: str) -> int:
    return len(text.splitlines())


def version(changelog: str, number: str) -> str:
    """What a changelog says of one version."""
    return re.split(r"^## ", changelog.partition(f"\n## {number}")[2], flags=re.MULTILINE)[0]


def too_long(decision: str) -> bool:
    return lines(decision) > 60 or len(decision.split()) > 1_000


def test_documents_are_short():
    assert lines((ROOT / "README.md").read_text(encoding="utf-8")) <= 100
    assert lines((ROOT / "docs/results.md").read_text(encoding="utf-8")) <= 200
    assert 5 < lines(version((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "0.1.0")) <= 80
    assert [p.name for p in DECISIONS if too_long(p.read_text(encoding="utf-8"))] == []


def test_a_long_decision_is_found():
    assert too_long("Why.\n" * 61) and too_long("why " * 1_001)
    assert not too_long("Why.\n" * 60)


def test_decisions_answer_a_question():
    for path in DECISIONS:
        text = path.read_text(encoding="utf-8")
        assert "**Question.**" in text and "**Answer" in text, path.name


def test_a_version_ends_where_the_next_begins():
    changelog = "# Changelog\n\n## 0.2.0\n- b\n- c\n\n## 0.1.0\n- a\n"
    assert lines(version(changelog, "0.2.0")) == 4  # the rest of its title, b, c, a gap
    assert lines(version(changelog, "0.1.0")) == 2


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
