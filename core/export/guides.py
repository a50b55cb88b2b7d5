"""Sheets for who must judge a release: what four guides ask, answered from documents of the run.

What is asked, and where an answer stands, is in `guides.toml`; nothing else can be claimed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from core.message import Message, joined

Documents = Mapping[str, Any]  # by the file's name in the pack: JSON values
STEWARD = Message("the data steward")
TO_FILL = "To be filled in by {who}"


@cache
def guides() -> dict[str, Any]:
    """Questions, guides, claims about the product, and the registry's record."""
    return tomllib.loads(Path(__file__).with_name("guides.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Field:
    """A question; its answer with the sources it was read from, or who has to give it."""

    question: str
    answer: str
    sources: tuple[str, ...]
    who: str

    def __post_init__(self) -> None:
        if not (self.sources if self.answer else self.who):
            raise ValueError(f"No source and nobody to fill it in: {self.question}")


@dataclass(frozen=True)
class Sheet:
    """The answers to one guide's questions."""

    key: str
    title: str
    reference: str
    fields: tuple[Field, ...]


def sheets(documents: Documents) -> Iterator[Sheet]:
    """All of them, filled in as far as the documents reach."""
    asked = guides()["question"]
    for guide in guides()["guide"]:
        fields = tuple(filled(documents, **asked[name]) for name in guide["questions"])
        yield Sheet(guide["key"], guide["title"], guide["reference"], fields)


def filled(
    documents: Documents,
    text: str,
    answer: str = "{said}",
    values: Mapping[str, str] | None = None,
    who: str = STEWARD,
) -> Field:
    """One question, with its template filled from the documents."""
    found = {name: value_at(documents, source) for name, source in (values or {}).items()}
    if not found or any(value in (None, "", []) for value in found.values()):
        return Field(text, "", (), who)
    said = {k: joined(v, "\n") if isinstance(v, list) else v for k, v in found.items()}
    return Field(text, Message(answer, **said), tuple((values or {}).values()), "")


def value_at(documents: Documents, source: str) -> Any:
    """What stands in a document where a source points; None where there is nothing."""
    name, _, way = source.partition("#")
    value = documents.get(name)
    for step in way.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def registry_record(documents: Documents) -> dict[str, Any]:
    """What the public registry of deployments takes, in English as the registry is."""

    def read(leaf: Any) -> Any:
        if isinstance(leaf, list):
            return [read(one) for one in leaf]
        if not isinstance(leaf, dict):
            return leaf
        if not leaf.keys() <= {"from", "who"}:
            return {key: read(value) for key, value in leaf.items()}
        found = [value_at(documents, source) for source in leaf.get("from", ())]
        if len(found) == 1 and isinstance(found[0], float):
            return found[0]
        texts = [" ".join(one) if isinstance(one, list) else str(one or "") for one in found]
        return " ".join(filter(None, texts)) or TO_FILL.format(who=leaf.get("who", STEWARD))

    record: dict[str, Any] = read(guides()["registry"])
    return record
