"""The words of the code are the field's: none of the names below, which only their author knows.

Each entry says what stands in its place. Identifiers are compared whole; phrases are looked for in
code, comments and documents.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODE = sorted(
    path
    for folder in ("core", "pages", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
) + [ROOT / "app.py"]
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
TEXTS += sorted((ROOT / "docs").rglob("*.md"))

IDENTIFIERS = {
    "CLEAR": "what is compared with what, such as PAIR_SNR_THRESHOLD",
    "LOUD": "what is compared with what",
    "QUIET": "what is compared with what",
    "STUCK": "what is compared with what",
    "DROWNED": "what is compared with what",
    "LUCK": "FALSE_POSITIVE_RATE",
    "Asked": "PairQueries",
    "BY_SIGHT": "WEIGHTING_SCHEMES",
    "BY_NOISE": "WEIGHTING_SCHEMES",
    "Essence": "AccountedPhase",
    "Crowd": "PersonAssembler",
    "doorway": "middleware",
    "handover": "download_tokens",
    "foretold": "forecast",
    "_told": "report_threshold",
    "hear": "on_event",
    "observe": "on_event, on_progress",
    "Observe": "OnEvent",
    "Wish": "Signal",
    "wish": "signal",
    "bends_tagged": "protects_sensitive",
    "Places": "Storage",
}
PHRASES = {
    r"\bpeople: str(?! \|)": "account_id",
    r"\bst(?:and|ands|anding|ood) out\b": "is significant",
    r"\bfine counts?\b": "histogram",
    r"\bdraft model\b|\bthe draft\b|\ba draft\b": "preliminary model",
    r"\blooks? cheaply\b": "scans",
    r"\bstated\(": "round_up",
    r"\bearlier versions?\b": "nothing: no version was released before 0.1.0",
    r"\bdoorway\b": "middleware",
    r"\bforetold\b": "forecast",
}


def private_identifiers(source: str) -> list[str]:
    """Names of the list that a module uses, with their lines."""
    return [
        f"line {token.start[0]}: {token.string} → {IDENTIFIERS[token.string]}"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string in IDENTIFIERS
    ]


def private_phrases(text: str) -> list[str]:
    """Phrases of the list that a text holds, also across a line's end, with what to say instead."""
    flat = re.sub(r"\s+#?\s*", " ", text)
    return [
        f"{found.group()} → {instead}"
        for phrase, instead in PHRASES.items()
        for found in re.finditer(phrase, flat, re.IGNORECASE)
    ]


def found_in(paths, check) -> dict[str, list[str]]:
    found = {
        path.relative_to(ROOT).as_posix(): check(path.read_text(encoding="utf-8"))
        for path in paths
        if path != Path(__file__).resolve()  # this list
    }
    return {name: lines for name, lines in found.items() if lines}


def test_code_uses_no_private_names():
    assert found_in(CODE, private_identifiers) == {}


def test_code_and_documents_use_no_private_phrases():
    assert found_in([*CODE, *TEXTS], private_phrases) == {}


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (private_identifiers, "signal = 'a wish'", "wish = 1"),
        (private_phrases, "They stand outside.", "Two pairs stand\n    # out."),
        (private_phrases, "def f(account_id: str): ...", "def f(people: str): ..."),
    ],
)
def test_a_private_word_is_found(check, good, bad):
    assert check(good) == []
    assert len(check(bad)) == 1
