"""Lists and rules that tie their labels: neither lacks what the other was found to have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.proposing.rare import OTHER
from core.schema.rules.rules import AnyRule, Combinations, Determines
from core.schema.schema import Schema
from tests.privacy.learned_tables import by_name, learn, schema_for

pytestmark = pytest.mark.slow

N, CODES, SEEDS = 4000, 40, 6  # a hundred records of each code, about as many as noise hides


def visits(*rules: AnyRule) -> tuple[pd.DataFrame, Schema]:
    """Codes with a name each, and the ward and floor that go with them."""
    code = np.random.default_rng(3).integers(0, CODES, N)
    frame = pd.DataFrame(
        {
            "code": [f"C{k:02d}" for k in code],
            "name": [f"name {k:02d}" for k in code],
            "floor": [f"F{k % 20:02d}" for k in code],
        }
    ).astype("str")
    return frame, schema_for(frame).model_copy(update={"rules": rules})


def labels(found: dict[str, object], name: str) -> set[str]:
    return {*found[name].categories} - {OTHER}  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_code_is_listed_where_its_result_is_known(seed: int) -> None:
    frame, schema = visits(Determines(source="code", result="name"))
    released = learn(frame, schema, epsilon=0.4, seed=seed)
    found, (rule,) = by_name(released), released.rules
    assert isinstance(rule, Determines) and 0 < len(rule.mapping or ()) < CODES
    assert labels(found, "code") == {*(rule.mapping or {})}
    assert labels(found, "name") >= {*(rule.mapping or {}).values()}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_labels_are_those_of_the_combinations_shown(seed: int) -> None:
    frame, schema = visits(Combinations(names=("code", "floor")))
    released = learn(frame, schema, epsilon=0.4, seed=seed)
    found, (rule,) = by_name(released), released.rules
    assert isinstance(rule, Combinations) and 0 < len(rule.allowed or ()) < CODES
    for i, name in enumerate(rule.names):
        assert labels(found, name) == {one[i] for one in rule.allowed or ()}
