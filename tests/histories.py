"""Small tables of people with events, for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.schema.column import Column, Kind
from core.schema.person import History, Person
from core.schema.schema import Schema
from core.services.linking.files import LinkedFile, LinkedTables, link_all

KINDS = ("a", "b", "c", "d")
MOST = 4


def schema(most: int = MOST, *, order: str | None = "day", empty: bool = True) -> Schema:
    """Of `visits`."""
    columns = (
        Column(name="who", kind=Kind.IDENTIFIER, dtype="int64"),
        Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m")),
        Column(name="key", kind=Kind.IDENTIFIER, dtype="int64"),
        Column(name="day", kind=Kind.INTEGER, low=0, high=200, step=1, dtype="int64"),
        Column(name="kind", kind=Kind.CATEGORY, categories=KINDS),
    )
    own_names = {name: name for name in ("key", "day", "kind")}
    history = History(
        event="key" if empty else None, parent="people", child="events", own_names=own_names
    )
    person = Person(columns=("who",), rows=most, constant=("sex",), order=order, history=history)
    return Schema(columns=columns, person=person)


def visits(people: int, seed: int = 0, most: int = MOST + 2) -> pd.DataFrame:
    """A row an event, in no order; every fifth person has none. "b" always follows "a"."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, most + 1, people)
    counts[::5] = 0
    who = np.repeat(np.arange(people), np.maximum(counts, 1))
    there = np.repeat(counts > 0, np.maximum(counts, 1))
    place = np.concatenate([np.arange(max(1, count)) for count in counts])
    kind = np.where(random.random(len(who)) < 0.5, 0, random.integers(2, 4, len(who)))
    after_a = (np.roll(kind, 1) == 0) & (place > 0) & (np.roll(place, 1) == place - 1)
    kind = np.where(after_a, 1, kind)
    frame = pd.DataFrame(
        {
            "who": who,
            "sex": np.where(who % 2, "m", "f"),
            "key": pd.Series(who).where(there),
            "day": pd.Series(place * 10 + random.integers(0, 9, len(who))).where(there),
            "kind": pd.Series(np.array(KINDS)[kind]).where(there),
        }
    )
    return frame.sample(frac=1.0, random_state=seed, ignore_index=True)


WAVES = ("start", "later", "after", "end")  # in no order of the alphabet


def waves(people: int) -> tuple[pd.DataFrame, Schema]:
    """A panel: waves of each, one after another, in the order of a list."""
    rows, declared = visits(people, most=len(WAVES)), schema()
    place = rows.groupby("who")["day"].rank(method="first")
    rows["wave"] = place.map(lambda rank: WAVES[int(rank) - 1], na_action="ignore")
    wave = Column(name="wave", kind=Kind.ORDERED, categories=WAVES)
    columns = tuple(wave if column.name == "day" else column for column in declared.columns)
    assert declared.person is not None and declared.person.history is not None
    own_names = {name: name for name in ("key", "wave", "kind")}
    history = declared.person.history.model_copy(update={"own_names": own_names})
    person = declared.person.model_copy(update={"history": history, "order": "wave"})
    return rows.drop(columns="day"), Schema(columns=columns, person=person)


MEASURED = {"pulse": ("low", "high"), "pressure": ("fine", "not"), "weight": ("less", "more")}


def measured(people: int, lacking: float) -> tuple[pd.DataFrame, Schema]:
    """Visits with more columns; so many people's visits all miss every one of these."""
    rows, declared, random = visits(people), schema(), np.random.default_rng(1)
    lacks = pd.Series(random.random(people) < lacking).reindex(rows["who"]).to_numpy()
    for name, labels in MEASURED.items():
        cells = pd.Series(random.choice(labels, len(rows)), dtype="str")
        rows[name] = cells.where(rows["key"].notna() & ~lacks)
    more = [
        Column(name=name, kind=Kind.CATEGORY, categories=labels, missing=True)
        for name, labels in MEASURED.items()
    ]
    person = declared.person
    assert person is not None and person.history is not None
    own_names = {name: name for name in ("key", "day", "kind", *MEASURED)}
    history = person.history.model_copy(update={"own_names": own_names})
    person = person.model_copy(update={"history": history})
    return rows, Schema(columns=(*declared.columns, *more), person=person)


def leaving(people: int) -> tuple[pd.DataFrame, Schema]:
    """Visits of people who leave soon after the last of them."""
    rows, declared = visits(people), schema()
    last = rows.groupby("who")["day"].transform("max").fillna(20)
    days = np.random.default_rng(5).integers(0, 10, people)
    left = Column(name="left", kind=Kind.INTEGER, low=0, high=200, step=1, dtype="int64")
    assert declared.person is not None
    person = declared.person.model_copy(update={"constant": ("sex", "left")})
    rows = rows.assign(left=(last + days[rows["who"]]).astype("int64"))
    return rows, Schema(columns=(*declared.columns, left), person=person)


def scored(people: int) -> tuple[pd.DataFrame, Schema]:
    """Visits with a number that stays in nine of ten, and else rises."""
    rows, declared = visits(people), schema()
    random, place = np.random.default_rng(4), rows.groupby("who")["day"].rank(method="first")
    score, begins = np.zeros(len(rows)), random.integers(0, 400, rows["who"].max() + 1)
    for who, own in rows.assign(place=place).sort_values("place").groupby("who").groups.items():
        rises = random.integers(1, 90, len(own)) * (random.random(len(own)) < 0.1)
        score[rows.index.get_indexer(own)] = begins[who] + np.cumsum(rises)
    rows["score"] = pd.Series(score).where(rows["key"].notna())
    column = Column(name="score", kind=Kind.INTEGER, low=0, high=1000, step=1, dtype="int64")
    assert declared.person is not None and declared.person.history is not None
    own_names = {**declared.person.history.own_names, "score": "score"}
    history = declared.person.history.model_copy(update={"own_names": own_names})
    person = declared.person.model_copy(update={"history": history})
    return rows, Schema(columns=(*declared.columns, column), person=person)


def two_files(people: int, most: int = MOST) -> LinkedTables:
    """The same people with visits and with tests of their own, as one table."""
    visited, tested = visits(people), visits(people, seed=5)
    tested = tested.rename(columns={"day": "when", "kind": "test"})
    tested["test"] = tested["test"].map(dict(zip(KINDS, "wxyz", strict=True)))
    columns = {c.name: c for c in schema(most).columns}
    labels = columns["kind"].model_copy(update={"name": "test", "categories": tuple("wxyz")})
    columns |= {"when": columns["day"].model_copy(update={"name": "when"}), "test": labels}

    def file(frame: pd.DataFrame, title: str, *names: str) -> LinkedFile:
        frame = frame if title == "people" else frame[frame["key"].notna()]
        own = Schema(columns=tuple(columns[name] for name in ("who", *names)))
        rows = frame[list(own.names)].drop_duplicates("who" if title == "people" else None)
        return LinkedFile(rows.reset_index(drop=True), own, title, "who")

    files = (
        file(visited, "people", "sex"),
        file(visited, "visits", "day", "kind"),
        file(tested, "tests", "when", "test"),
    )
    return link_all(files, order="day,when", most=most)


def three_levels(homes: int, most: int = MOST) -> LinkedTables:
    """Homes, their members, and the members' visits, as one table.

    Visits of a member of kind "a" are "w" alone, of "b" "x", and so on; every fifth home
    has no member, and a fifth of members no visit.
    """
    members = visits(homes).rename(columns={"day": "age"})
    random = np.random.default_rng(7)
    own = members[members["key"].notna()].reset_index(drop=True)
    own["member"] = [f"M{i}" for i in random.permutation(len(own))]
    counts = random.integers(0, most + 2, len(own)) * (random.random(len(own)) < 0.8)
    which = np.repeat(np.arange(len(own)), counts)
    visited = pd.DataFrame(
        {
            "member": own["member"].to_numpy()[which],
            "date": random.integers(0, 200, len(which)),
            "reason": own["kind"].map(dict(zip(KINDS, "wxyz", strict=True))).to_numpy()[which],
        }
    ).sample(frac=1.0, random_state=1, ignore_index=True)
    columns = {c.name: c for c in schema(most).columns}
    columns["age"] = columns["day"].model_copy(update={"name": "age"})
    columns["date"] = columns["day"].model_copy(update={"name": "date"})
    columns["member"] = Column(name="member", kind=Kind.IDENTIFIER, dtype="str")
    columns["reason"] = columns["kind"].model_copy(
        update={"name": "reason", "categories": tuple("wxyz")}
    )

    def file(frame: pd.DataFrame, title: str, key: str, *names: str) -> LinkedFile:
        own = Schema(columns=tuple(columns[name] for name in names))
        return LinkedFile(frame[list(names)].reset_index(drop=True), own, title, key)

    files = (
        file(members.drop_duplicates("who"), "homes", "who", "who", "sex"),
        file(own, "members", "who", "who", "member", "age", "kind"),
        file(visited, "visits", "members.member", "member", "date", "reason"),
    )
    return link_all(files, order=",date", most=most)
