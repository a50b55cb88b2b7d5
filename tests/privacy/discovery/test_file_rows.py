"""Events of several linked files are learned of side by side, each file as if it were alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.encoding.person_rows import number_people
from core.privacy.discovery import file_rows
from core.privacy.discovery.file_rows import side_by_side
from core.schema.person import History, MoreEvents, Person

MOST = 6
UNIT = Person(
    columns=("who",),
    rows=MOST,
    constant=("age",),
    history=History(
        event="visits.who",
        parent="people",
        child="visits",
        own_names={"visits.who": "who", "ward": "ward"},
        more=(
            MoreEvents(
                event="loans.who",
                child="loans",
                own_names={"loans.who": "who", "sum": "sum"},
            ),
        ),
    ),
)


def table(visits: dict[str, list[str]], loans: dict[str, list[float]]) -> pd.DataFrame:
    """All events of some people, a row each; who has none has one row."""
    rows = [{"who": who, "visits.who": who, "ward": w} for who, own in visits.items() for w in own]
    rows += [{"who": who, "loans.who": who, "sum": x} for who, own in loans.items() for x in own]
    rows += [{"who": who} for who in {*visits, *loans} if not visits.get(who) and not loans[who]]
    frame = pd.DataFrame(rows, columns=["who", "age", "visits.who", "ward", "loans.who", "sum"])
    return frame.assign(age=frame["who"].str.len())


def votes(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By person, what each cell counts for: columns, values, weights."""
    number, _ = number_people(frame[["who"]])
    rows, people = side_by_side(frame, number, UNIT)
    found = {}
    for i in range(people.n):
        own = slice(people.offsets[i], people.offsets[i + 1])
        part, weights = rows.iloc[own], people.weights[own].astype(np.float64)
        cells = part.drop(columns=["who", "visits.who", "loans.who"]).melt(ignore_index=True)
        counted = cells.assign(weight=np.tile(weights, 3)).fillna("–")
        summed = counted.groupby(["variable", "value"], as_index=False)["weight"].sum()
        found[str(part["who"].iloc[0])] = summed
    return found


@pytest.fixture
def people() -> pd.DataFrame:
    visits = {"a": ["x", "y", "z"], "bb": ["x"] * 5 + list("uvwxyz"), "c": [], "d": []}
    visits["ee"] = list("stuv")
    loans = {"a": [10.0, 20.0], "bb": [7.0], "c": [5.0], "d": [], "ee": []}
    return table(visits, loans)


def test_every_file_counts_one_a_person(people):
    """Three visits and two loans: a third of a vote each, and a half."""
    for own in votes(people).values():
        assert own.groupby("variable")["weight"].sum().to_numpy() == pytest.approx(1.0, abs=1e-6)
        assert (own.groupby("variable")["weight"].sum() <= 1.0).all()
    a, many, c, d = (
        votes(people)[who].set_index("value")["weight"] for who in ("a", "bb", "c", "d")
    )
    assert a[["x", "y", "z"]].to_numpy() == pytest.approx(1 / 3) and a[10.0] == pytest.approx(0.5)
    assert many[7.0] == pytest.approx(1.0), "a single loan beside eleven visits"
    assert c[5.0] == pytest.approx(1.0) and c["–"] == pytest.approx(1.0)
    assert d["–"].sum() == pytest.approx(2.0)


def test_no_event_counts_less_than_one_of_the_most(people):
    """On which the threshold of labels rests: at most so many of a file, each once or more."""
    own = votes(people)["bb"]
    wards = own[own["variable"] == "ward"]
    assert len(wards) <= MOST and wards["weight"].min() >= 1.0 / MOST - 1e-6


def test_nobody_elses_rows_decide_what_a_person_counts_for(people):
    every = votes(people)
    for who in every:
        for rows in (people[people["who"] == who], people.sample(frac=1.0, random_state=3)):
            pd.testing.assert_frame_equal(votes(rows)[who], every[who])


@pytest.mark.parametrize("twin", ["order of the file", "others' rows"])
def test_events_that_others_decide_about_are_caught(people, monkeypatch, twin):
    """Broken twins: the first events of a file are used; all people get as many rows."""
    if twin == "order of the file":
        monkeypatch.setattr(file_rows, "cell_hashes", lambda _: np.zeros(1, dtype=np.uint64))
    else:
        of_one = np.lcm

        def most(one, other):
            return np.full_like(one, of_one(one, other).max())

        monkeypatch.setattr(file_rows.np, "lcm", most)
    with pytest.raises(AssertionError):
        test_nobody_elses_rows_decide_what_a_person_counts_for(people)


def test_rows_that_are_not_drawn_event_by_event_stay_as_they_are():
    assert UNIT.history is not None and UNIT.several_files == ("visits.who", "loans.who")
    flat = UNIT.history.model_copy(update={"learned": False})
    assert UNIT.model_copy(update={"history": flat}).several_files == ()
