"""Identifiers and text: their share of missing cells is learned, their values are made up."""

import numpy as np
import pandas as pd
import pytest

from core.privacy.discovery.open_domain import as_learned, open_domain
from core.privacy.mechanisms.domain_release import LabelCounts
from core.proposing.propose import infer_schema
from core.schema.column import Kind
from core.schema.schema import Schema
from core.schema.surrogates import surrogate
from tests.privacy.learned_tables import apart, label_sums, learn

N = 4000


def cases(seed: int = 0) -> tuple[pd.DataFrame, Schema]:
    """Case numbers of which half are missing, an empty column, names that nobody shares."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "case": [f"C-{i:06d}" if i % 2 else None for i in range(N)],
            "empty": [None] * N,
            "name": [f"name {i % 1500}" if i % 4 else None for i in range(N)],
            "ward": rng.choice(["a", "b"], N),
        }
    )
    schema = infer_schema(frame)
    name = schema["name"].model_copy(update={"kind": Kind.CATEGORY}).as_proposed()
    return frame, as_learned(schema.replace(name))


def test_missing_shares_are_learned_and_come_out() -> None:
    frame, schema = cases()
    assert [one.name for one in open_domain(schema).made_up] == ["case", "empty"]
    found = learn(frame, schema, 2.0).schema(schema)
    assert found["case"].absent == pytest.approx(0.5, abs=0.05)
    assert found["empty"].absent == 1.0 and surrogate(found["empty"], N).isna().all()
    made = surrogate(found["case"], N)
    assert made.isna().mean() == pytest.approx(found["case"].absent, abs=0.05)
    assert made.dropna().is_unique and made.dropna().str.fullmatch(r"C-\d{6}").all()


def test_a_list_that_nobody_shares_gets_made_up_values() -> None:
    frame, schema = cases()
    found = learn(frame, schema, 1.0).schema(schema)
    assert found["name"].kind is Kind.TEXT
    assert found["name"].absent == pytest.approx(0.25, abs=0.1)
    assert found["ward"].categories == ("a", "b")
    needed = schema.model_copy(update={"target": "name"})
    assert learn(frame, needed, 1.0).schema(needed)["name"].categories == ("OTHER",)


def test_a_record_left_out_moves_missing_shares_by_delta() -> None:
    frame, schema = cases()
    few, wanted = frame.head(20), open_domain(schema)
    whole = label_sums(few, wanted, np.ones(20))
    delta = LabelCounts((1,) * (len(wanted.listed) + len(wanted.made_up)), 1).sensitivity
    moved = []
    for i in range(20):
        rest = few.drop(index=i).reset_index(drop=True)
        moved.append(apart(whole, label_sums(rest, wanted, np.ones(19))))
    assert max(moved) == pytest.approx(delta, rel=1e-9)


def test_values_of_cells_that_are_there_play_no_part() -> None:
    frame, schema = cases()
    other = frame.assign(case=frame["case"].where(frame["case"].isna(), "the same"))
    one, two = (label_sums(f, open_domain(schema), np.ones(N)) for f in (frame, other))
    assert one == two
