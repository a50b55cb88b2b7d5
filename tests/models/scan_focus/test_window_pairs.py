"""What pairs of a window's columns matter, by what they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from core.encoding.windows import FIRST, NEXT, NOW, PERSON
from core.models.steps.counting.window_pairs import (
    FOLLOWS,
    LISTED,
    column_weights,
    matters,
    window_importance,
)


def importance(events: dict[str, bool], one: tuple[str, str], other: tuple[str, str]) -> float:
    """Of a pair, in windows of such event columns, by whether each is a list."""
    roles = {"sex": (PERSON, "sex", 0), "region": (PERSON, "region", 0)}
    numbers = {"sex": None, "region": None}
    for kind in (FIRST, NOW, NEXT):
        for name, listed in events.items():
            roles[f"{kind} {name}"] = (kind, name, 0)
            numbers[f"{kind} {name}"] = None if listed else 0
    blocks = [
        SimpleNamespace(column=SimpleNamespace(name=name), number=numbers[name]) for name in roles
    ]
    at = [role[:2] for role in roles.values()]
    return float(window_importance(roles, blocks, [(at.index(one), at.index(other))])[0])


def test_lists_of_people_matter_whether_events_have_lists_or_not() -> None:
    pair = (PERSON, "sex"), (PERSON, "region")
    assert importance({"cost": False}, *pair) == importance({"ward": True}, *pair) == LISTED


def test_lists_share_the_weight_of_transitions() -> None:
    pair = (NOW, "ward"), (NEXT, "ward")
    assert importance({"ward": True}, *pair) == LISTED * FOLLOWS
    assert importance({"ward": True, "code": True}, *pair) == LISTED * FOLLOWS / 2
    assert importance({"ward": True, "cost": False}, *pair) == LISTED * FOLLOWS


def test_what_a_walk_never_asks_is_not_counted() -> None:
    events = {"ward": True, "code": True}
    assert importance(events, (NOW, "ward"), (NOW, "code")) == 0.0
    assert importance(events, (FIRST, "ward"), (NEXT, "ward")) == 0.0
    assert importance(events, (PERSON, "sex"), (NEXT, "ward")) > 0.0
    assert matters({}, [], range(5)) == 10  # all pairs of other tables
    assert np.all(window_importance({}, [], [(0, 1), (0, 2)]) == 1.0)


def test_columns_weigh_what_leaves_them_least_off_together() -> None:
    cells = np.array([2, 5, 30, 180])
    own = np.array(column_weights({}, [SimpleNamespace()] * 4, cells.tolist()))

    def off(weights: np.ndarray) -> float:
        return float((cells / weights).sum() * np.sqrt((weights**2).sum()))

    moved = own * np.exp(0.1 * np.random.default_rng(0).standard_normal((50, 4)))
    assert all(off(weights) > off(own) for weights in moved)
