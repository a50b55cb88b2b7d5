"""A run of a table with rules and people, from its plan to what is said of it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from core.encoding.layout.layout import Layout
from core.message import from_json
from core.models.registry import synthesizer
from core.quality.report.types import Report
from core.reading.raw_cells import raw_frame
from core.runs.events import State
from core.runs.request import RunRequest
from core.runs.storage.artefacts import (
    MODELLED_TABLE,
    OUTSIDE_REPORT,
    PRIVACY_CERTIFICATE,
    SYNTHETIC_TABLE,
)
from core.runs.storage.store import RunStore
from core.schema.column import SchemaError
from core.schema.schema import Schema
from core.services import declarations, export, planning, reviews
from tests.contract.fits import QUICK
from tests.encoding.layouts import LOOKED_UP, ORDERED, PERSON, STAY, TOTAL, faults, made, schema
from tests.runs.workers import queued, work

SCHEMA: Schema = schema((LOOKED_UP, ORDERED, STAY, TOTAL), PERSON)


def request(**more: float) -> RunRequest:
    return RunRequest(model="pearl", epsilon=2.0, settings=QUICK["pearl"], **more)


def test_a_run_keeps_rules_and_counts_what_was_bought(store: RunStore) -> None:
    domain = SCHEMA.domain()
    frame = made(domain, 240)
    table = store.add_table(
        raw_frame(frame),
        name="stays",
        schema=SCHEMA,
        profile={"n": 240},
        source="test",
        account_id="p1",
    )
    table = declarations.change_rules(store, table, SCHEMA.rules)
    assert set(declarations.broken_rules(table).values()) == {0}
    store.attest(table.id)
    plan = planning.make_plan(table.schema, table.training_n, request(review=0.3, score=0.2))
    run = work(store, queued(store, table, plan).id, find=synthesizer)
    assert run.state is State.DONE, run.error
    artefacts = store.artefacts(run.id)
    assert faults(pd.read_parquet(artefacts.path(SYNTHETIC_TABLE)), domain) == []
    seen = pd.read_parquet(artefacts.path(MODELLED_TABLE))
    assert list(seen.columns) == [column.name for column in Layout(domain).domain.columns]
    report = Report.model_validate_json(artefacts.path(OUTSIDE_REPORT).read_text())
    assert set(report.columns) == {column.name for column in domain.modelled}
    assert report.columns["net"].real and not report.columns["total"].real
    assert reviews.comparable(store, run)
    said = " ".join(
        json.loads(artefacts.path(PRIVACY_CERTIFICATE).read_text(), object_hook=from_json)[
            "conditions"
        ]
    )
    assert "label <- code (A: low; B: low; C: high)" in said and "start <= end" in said
    words = export.domain_dictionary(run.schema.as_proposed().domain()).set_index("column")["kept"]
    assert "total = net + tax" in words["net"] and "one value for each person" in words["born"]
    assert "order" in words["pulse"]


def test_too_short_a_pattern_is_refused_by_the_plan() -> None:
    short = SCHEMA.replace(SCHEMA["who"].model_copy(update={"pattern": "P##"}))
    with pytest.raises(SchemaError, match="100 different values"):
        planning.make_plan(short, 240, request())
