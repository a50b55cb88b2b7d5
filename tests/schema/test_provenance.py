"""Where a domain comes from is never forgotten, and what is inside never enters a domain."""

from __future__ import annotations

import json

import pytest

from core.proposing.propose import infer_schema
from core.reading.tally import Tally
from core.schema.column import Column, DomainColumn, Kind, Provenance, SchemaColumn
from core.schema.schema import Domain, Schema
from core.services.sample_tables import sample_table
from core.services.schema_grid import as_kind, grid_of, schema_of, with_categories

FRAME = sample_table(300)
PROPOSED = infer_schema(FRAME)


def edited(column: str, **cells: object) -> Schema:
    grid = grid_of(PROPOSED)
    for name, cell in cells.items():
        grid.loc[grid["column"] == column, name.rstrip("_")] = cell
    return schema_of(grid, PROPOSED)


def test_accepting_a_proposal_does_not_make_it_the_stewards() -> None:
    again = Schema.model_validate_json(schema_of(grid_of(PROPOSED), PROPOSED).model_dump_json())
    assert {c.provenance for c in again.columns if c.modelled} == {Provenance.PROPOSED}
    assert {c.provenance for c in again.domain().modelled} == {Provenance.PROPOSED}


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("age", {"from_": "1"}),
        ("age", {"to": "120"}),
        ("cost", {"scale": "even"}),
        ("ward", {"missing": True}),
    ],
)
def test_a_grid_change_is_the_stewards_until_undone(column, cells) -> None:
    schema = edited(column, **cells)
    assert schema[column].provenance is Provenance.STEWARD
    assert schema.domain().modelled[0].provenance is not Provenance.UNSTATED
    others = [c for c in schema.columns if c.name != column and c.modelled]
    assert {c.provenance for c in others} == {Provenance.PROPOSED}
    assert schema_of(grid_of(PROPOSED), schema)[column].provenance is Provenance.PROPOSED


def test_categories_and_spikes_are_the_stewards_when_changed() -> None:
    ward = with_categories(PROPOSED["ward"], "general\nsurgery")
    assert ward.provenance is Provenance.STEWARD
    spiked = PROPOSED["cost"].model_copy(update={"spikes": (0.0, 100.0)})
    assert PROPOSED.replace(spiked).domain().columns[10].provenance is Provenance.STEWARD


def test_another_kind_brings_a_proposal_of_its_own() -> None:
    number = as_kind(Tally.of(FRAME["age"]), PROPOSED["age"], Kind.NUMBER)
    assert number.provenance is Provenance.PROPOSED


def test_leaving_a_column_out_and_taking_it_back_changes_nothing() -> None:
    out = edited("age", keep="leave out")
    assert schema_of(grid_of(PROPOSED), out)["age"].provenance is Provenance.PROPOSED


def test_a_schema_file_without_proposals_has_no_provenance() -> None:
    written = json.loads(PROPOSED.model_dump_json())
    for column in written["columns"]:
        del column["proposal"]
    schema = Schema.model_validate(written)
    assert {c.provenance for c in schema.columns} == {Provenance.UNSTATED}
    by_hand = SchemaColumn(name="x", kind=Kind.INTEGER, low=0, high=9, proposal="none")
    assert by_hand.provenance is Provenance.STEWARD


def test_a_domain_takes_declared_fields_only_from_anything() -> None:
    note = "857 of 857 values are distinct"
    inside = SchemaColumn(name="x", kind=Kind.INTEGER, low=0, high=9, note=note, proposal="ab")
    for domain in (
        Domain(columns=(inside,)),
        Domain(columns=(DomainColumn.of(inside),)),
        Schema(columns=(inside,)).domain(),
    ):
        assert type(domain.columns[0]) is DomainColumn
        text = domain.model_dump_json()
        assert "857" not in text and "note" not in text and "proposal" not in text
        assert Domain.model_validate_json(text) == domain
        assert domain.columns[0].fields() == inside.fields()
    with pytest.raises(ValueError, match="Extra inputs"):
        Domain.model_validate({"columns": [inside.model_dump(mode="json")]})


def test_a_domain_column_has_no_room_for_more() -> None:
    """Whoever adds a field decides here whether it may leave."""
    assert set(DomainColumn.model_fields) == {
        "name", "kind", "missing", "source", "low", "high", "step", "scale", "spikes",
        "categories", "other", "dtype", "date_format", "pattern", "form", "absent",
        "provenance", "learned", "reference", "cuts",
    }  # fmt: skip
    inside = {"note", "proposal", "learned", "reference"}
    assert set(SchemaColumn.model_fields) - set(Column.model_fields) == inside
