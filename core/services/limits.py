"""What must not be taken for real in a run's table, in sentences that may be shown to anybody.

They come from the declared schema, the plan and what the plan paid for, never from real rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.message import Message, joined
from core.models.planning import Hiding, hiding
from core.models.registry import cards
from core.runs.records import RunRecord
from core.runs.storage.store import RunStore
from core.schema.coverage import coverage
from core.schema.schema import Schema
from core.services import reviews

UNCERTIFIED = Message(
    "No certificate was bought, so nothing that may leave the house shows how much it differs."
)


# how tagged columns were hidden, and what that says of their shares
HIDDEN: dict[Hiding, tuple[Message, Message]] = {
    "shifted": (
        Message("shifted on purpose"),
        Message("Their distribution is not that of the real table. Do not quote it."),
    ),
    "trained": (
        Message("trained to differ on purpose"),
        Message("Their distribution should differ from that of the real table. Do not quote it."),
    ),
    "none": (
        Message("tagged, but not hidden"),
        Message("Nothing was done to them, so they are distributed as in the real table."),
    ),
}


def hidden_columns(run: RunRecord) -> tuple[str, ...]:
    """The columns whose real distribution the run's plan hides, in order of their groups."""
    protection = run.plan.protection
    if protection is None or hiding(run.plan) == "none":
        return ()
    return tuple(name for names in protection.groups.values() for name in names)


def paid_certificates(store: RunStore, run: RunRecord) -> dict[str, dict[str, Any]]:
    """By group, what the certificate that ε paid for came to; may leave the house."""
    stored = reviews.privacy_certificate(store, run.id) or {}
    results: list[dict[str, Any]] = (stored.get("lmdp") or {}).get("verdicts", [])
    return {result["group"]: result for result in results if "epsilon" in result and run.private}


def limits(store: RunStore, run: RunRecord) -> list[str]:
    """A sentence for each thing that is not as in the real table."""
    return [*_hidden(store, run), *_columns(run.schema), *_model(run)]


def _hidden(store: RunStore, run: RunRecord) -> Iterator[str]:
    protection = run.plan.protection
    if protection is None:
        return
    paid = paid_certificates(store, run)
    stored = reviews.privacy_certificate(store, run.id) or {}
    how, spread = HIDDEN[hiding(run.plan)]
    for group, names in protection.groups.items():
        result = paid.get(group)
        shown = UNCERTIFIED
        if result is not None:
            shown = _certificate_words(result)
        yield Message(
            "{columns} ({group}): {how}. {spread} {certificate}",
            columns=", ".join(names),
            group=group,
            how=how,
            spread=spread,
            certificate=shown,
        )
    yield from (stored.get("lmdp") or {}).get("attack", ())


def _certificate_words(result: dict[str, Any]) -> Message:
    """What the certificate of one group came to."""
    epsilon = result["epsilon"]
    if result["granted"]:
        return Message(
            "A certificate that it differs was bought for ε = {epsilon:g} and granted.",
            epsilon=epsilon,
        )
    return Message(
        "A certificate that it differs was bought for ε = {epsilon:g} and refused, so it may be "
        "close to the real one.",
        epsilon=epsilon,
    )


def _columns(schema: Schema) -> Iterator[str]:
    """What the declared schema leaves out, makes up or merges."""
    found = coverage(schema)
    yield from found.sentences if found.dropped else found.sentences[1:]  # that all are there
    learned = {column.name for column in found.columns}
    made_up = [c.name for c in schema.columns if c.kind.surrogate and c.name not in found.dropped]
    merged = [c.name for c in schema.columns if c.other is not None and c.name not in learned]
    if made_up:
        yield Message("Made up, with nothing real in them: {columns}.", columns=", ".join(made_up))
    if merged:
        yield Message(
            "Rare values are merged under one label: {columns}.", columns=", ".join(merged)
        )


def _model(run: RunRecord) -> Iterator[str]:
    card = {card.id: card for card in cards()}.get(run.model)
    if card is not None:
        yield Message(
            "Weaknesses of {name}: {weak_at}", name=card.name, weak_at=joined([card.weak_at])
        )
    if run.schema.person is not None and run.schema.person.grouped:
        yield Message(
            "The number of rows of each person is kept. How values depend on each other from row "
            "to row, and their order, are not kept."
        )
