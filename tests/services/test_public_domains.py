"""Public references: chosen without the rows, in place of what a run would learn."""

import numpy as np
import pandas as pd
import pytest

from core.privacy.discovery.open_domain import open_domain
from core.proposing.remarks import Urgency
from core.runs.execution.privacy_certificate import conditions
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Provenance
from core.schema.schema import Schema
from core.services import imports, tables
from core.services.public_domains import references, use_references, with_references
from core.services.schema_grid import grid_of

N = 300


def people(age: int = 40) -> pd.DataFrame:
    i = np.arange(N)
    return pd.DataFrame(
        {
            "age": age + i % 40,
            "month": 1 + i % 12,
            "income": 1000.0 + i,
            "sex": ["f", "m"] * (N // 2),
        }
    )


def imported(store: RunStore, frame: pd.DataFrame) -> TableRecord:
    return imports.import_frame(store, frame, name="people", source="test")


def test_references_take_columns_out_of_what_is_learned(store: RunStore) -> None:
    table = use_references(store, imported(store, people()))
    assert set(open_domain(table.schema).names) == {"income", "sex"}
    age = table.schema["age"]
    assert (age.low, age.high, age.missing) == (0.0, 120.0, True)
    assert age.source is DomainSource.DECLARED and age.provenance is Provenance.REFERENCE
    assert tables.declared_from_rows(table) == ()
    told = " ".join(conditions(table.schema.as_proposed(), n=N))
    assert "public reference: " in told and "never by its values" in told
    again = Schema.model_validate_json(table.schema.model_dump_json())
    assert again["age"].provenance is Provenance.REFERENCE


def test_a_reference_depends_on_no_value(store: RunStore) -> None:
    one, other = (with_references(imported(store, people(age)).schema) for age in (20, 60))
    for name in references(imported(store, people()).schema):
        assert one[name].fields() == other[name].fields()


def test_what_does_not_fit_a_reference_is_counted(store: RunStore) -> None:
    frame = people()
    frame.loc[:4, "age"] = 999
    table = use_references(store, imported(store, frame))
    assert "5 cells" in tables.misfit_doubts(table)["age"]


def test_a_column_can_be_learned_after_all(store: RunStore) -> None:
    first = imported(store, people(age=999))
    table = use_references(store, first)
    (remark,) = [one for one in tables.remarks(table) if one.columns == ("age",)]
    assert remark.urgency is Urgency.DECIDE and "choose “learn”" in remark.words
    grid = grid_of(table.schema).set_index("column", drop=False)
    grid.loc["age", "keep"] = "learn"
    age = tables.change_grid(store, table, grid.reset_index(drop=True)).schema["age"]
    assert (age.low, age.high) == (first.schema["age"].low, first.schema["age"].high)
    assert age.source is DomainSource.LEARNED and age.provenance is Provenance.PROPOSED


@pytest.mark.parametrize("change", [{"high": 100.0}, {"source": DomainSource.LEARNED}])
def test_a_reference_that_is_edited_is_none(store: RunStore, change: dict[str, object]) -> None:
    age = use_references(store, imported(store, people())).schema["age"]
    assert age.model_copy(update=change).provenance is not Provenance.REFERENCE
