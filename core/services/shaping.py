"""Rows of chosen values from a run's saved model: made, described, and packed with their papers.

All of it is post-processing of a trained model: no real row is read and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.message import Message, joined
from core.models.shaped_output import Shape, ShapeFacts
from core.runs.execution.launching.launcher import Launcher, SampleRequest, facts_name
from core.runs.storage.store import RunStore
from core.schema.conditions import parse_conditions, parse_shares
from core.schema.schema import Domain
from core.services.runs import generate_rows

STATEMENT = (
    "These rows were newly drawn from the trained model and selected as requested. No real row was "
    "read, so ε and δ hold unchanged. Shares that were set, and shares of rows that meet a "
    "condition, say nothing about the real table. Reviews and checks of hidden distributions are "
    "about the table that was reviewed, not about these rows."
)


@dataclass(frozen=True)
class DrawnTable:
    """A file of synthetic rows, and what became of the request."""

    path: Path
    facts: ShapeFacts


def draw_tables(
    store: RunStore,
    launcher: Launcher,
    run_id: str,
    request: SampleRequest,
    *,
    seeds: Sequence[int] = (),
) -> tuple[DrawnTable, ...]:
    """Tables of synthetic rows, one for each seed, under the run's `exports`."""
    domain = store.run(run_id).schema.domain()
    parse_conditions(request.shape.where, domain)  # refused here it takes no seconds
    if request.shape.share is not None:
        parse_shares(request.shape.share, domain)
    tables = []
    for seed in seeds or (request.seed,):
        seeded = request.model_copy(update={"seed": seed})
        path = generate_rows(store, launcher, run_id, seeded)
        with store.artefacts(run_id).within("exports").open(facts_name(path.name)) as file:
            facts = ShapeFacts.model_validate_json(file.read())
        tables.append(DrawnTable(path, facts))
    return tuple(tables)


def table_name(name: str, seed: int | None, *, several: bool) -> str:
    """A table's name among others of other seeds.

    >>> table_name("x.csv", 7, several=True), table_name("x.csv", 7, several=False)
    ('x.seed-7.csv', 'x.csv')
    """
    path = Path(name)
    return f"{path.stem}.seed-{seed}{path.suffix}" if several else path.name


def certificate_of(certificate: dict[str, Any], facts: Sequence[ShapeFacts]) -> dict[str, Any]:
    """A run's certificate for tables that were drawn from it as asked."""
    tables = [
        one.model_dump(mode="json", include={"rows", "seed", "drawn"}) | {"words": list(one.words)}
        for one in facts
    ]
    asked = facts[0].shape.model_dump(mode="json")
    drawn = {"statement": STATEMENT, "asked": asked, "tables": tables}
    return certificate | {"rows": sum(one.rows for one in facts), "drawn": drawn}


def asked_words(shape: Shape, domain: Domain) -> dict[str, str]:
    """What was asked of each column, by name; columns that nothing was asked of are not named."""
    words: dict[str, list[Message]] = {}
    for condition in parse_conditions(shape.where, domain):
        only = Message("only rows with {condition}", condition=condition.text)
        words.setdefault(condition.column.name, []).append(only)
    if shape.share is not None:
        shares = parse_shares(shape.share, domain)
        were_set = Message("shares were set: {shares}", shares=shares.text)
        words.setdefault(shares.column, []).append(were_set)
    if shape.fill_missing:
        for column in domain.modelled:
            if column.may_be_absent:
                filled = Message("missing cells were filled")
                words.setdefault(column.name, []).append(filled)
    return {name: joined(texts, "; ") for name, texts in words.items()}
