"""Windows: consecutive events of one person, which nobody else's rows decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.encoding import window_rows
from core.encoding.count_bins import CountBins
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.encoding.windows import in_order, moved
from tests.histories import (
    KINDS,
    MOST,
    WAVES,
    schema,
    three_levels,
    two_files,
    visits,
    waves,
)

pytestmark = pytest.mark.quick


def encoded(frame: pd.DataFrame, **options):
    """Decoded windows, whose each is and what it weighs."""
    declared = schema(**options)
    layout = Layout(declared.domain())
    codes, people = encoded_records(frame, layout, declared.person)
    seen = layout.windows.codec.decode_codes(codes)
    who = np.repeat(np.arange(people.n), people.counts)
    return seen, who, people, codes


def events_of(frame: pd.DataFrame) -> list[list[str]]:
    """Each person's kinds in order, at most as many as are used."""
    rows = frame[frame["key"].notna()].sort_values(["who", "day"])
    each = rows.groupby("who")["kind"].apply(list).to_dict()
    return [each.get(who, [])[:MOST] for who in range(frame["who"].max() + 1)]


def test_windows_are_what_follows_on_what():
    frame = visits(60)
    seen, who, people, _ = encoded(frame)
    made = {}
    for person, now, after in zip(who, seen["now kind"], seen["next kind"], strict=True):
        made.setdefault(person, []).append((now, after))
    wanted = sorted(
        [list(zip(own, own[1:], strict=False)) or [(None, None)] for own in events_of(frame)],
        key=str,
    )
    shown = [[(None, None) if pd.isna(a) else (a, b) for a, b in own] for own in made.values()]
    assert sorted(shown, key=str) == wanted
    assert people.counts.max() == MOST - 1


def test_labels_that_were_there_before_come_again():
    frame = visits(60)
    seen, who, _, _ = encoded(frame)
    again = seen["kind again"].groupby(who).apply(list)
    made = sorted([x for x in own if not pd.isna(x)] for own in again)
    wanted = sorted(
        [
            "yes" if own[i] in own[: i - 1] and own[i] != own[i - 1] else "no"
            for i in range(1, len(own))
        ]
        for own in events_of(frame)
    )
    assert made == wanted and ["no", "yes"] in [own[:2] for own in made]
    assert "kind again" not in encoded(frame, most=2)[0]  # two events say nothing of a third


def test_every_person_weighs_one_whatever_their_events():
    _, who, people, _ = encoded(visits(60))
    assert np.bincount(who, people.weights) == pytest.approx(1.0, abs=1e-6)


def test_nobody_elses_rows_decide_a_persons_windows():
    frame = visits(40)
    whole, _, everybody, codes = encoded(frame)
    for gone in range(40):
        _, _, rest, others = encoded(frame[frame["who"] != gone])
        kept = ~np.isin(everybody.hashes, np.setdiff1d(everybody.hashes, rest.hashes))
        rows = np.repeat(kept, everybody.counts)
        assert np.array_equal(others.states, codes.states[rows])
        assert np.array_equal(others.values, codes.values[rows])


def test_windows_across_people_are_caught(monkeypatch):
    def mutant(*given):
        history = in_order(*given)
        return replace(history, events=np.sort(history.events))  # of whoever comes next

    monkeypatch.setattr(window_rows, "in_order", mutant)
    with pytest.raises(AssertionError):
        test_nobody_elses_rows_decide_a_persons_windows()


def test_order_of_the_file_decides_nothing():
    frame = visits(40)
    _, _, _, codes = encoded(frame)
    _, _, _, again = encoded(frame.sample(frac=1.0, random_state=5, ignore_index=True))
    assert np.array_equal(codes.states, again.states)


def test_distance_and_time_since_first_are_in_days():
    frame = visits(60)
    seen, who, _, _ = encoded(frame)
    rows = frame[frame["key"].notna()].sort_values(["who", "day"])
    waits = rows.groupby("who")["day"].apply(lambda days: list(np.diff(days[:MOST])))
    wanted = sorted(round(x) for own in waits for x in own)
    assert sorted(seen["day to next"].dropna().round().astype(int)) == wanted
    since = seen.groupby(who)["day since first"].apply(list)
    gaps = seen.groupby(who)["day to next"].apply(list)
    for one, gap in zip(since, gaps, strict=True):
        assert one[1:] == pytest.approx(list(np.cumsum(gap)[:-1]), abs=0.5)


def test_a_list_sorts_in_its_own_order():
    rows, declared = waves(60)
    layout = Layout(declared.domain())
    codes, _ = encoded_records(rows, layout, declared.person)
    seen = layout.windows.codec.decode_codes(codes)
    assert set(seen["first wave"].dropna()) == {WAVES[0]}
    assert set(seen["wave to next"].dropna()) == {1.0}
    places = seen["place"].dropna().astype(float) - 1.0
    assert (seen["wave since first"].dropna() == places).all()


def test_equal_events_stand_anywhere_where_nothing_sorts():
    frame = pd.DataFrame(
        {
            "who": np.repeat(np.arange(4000), 3),
            "sex": "f",
            "key": np.repeat(np.arange(4000), 3),
            "day": 7,
            "kind": np.tile(["a", "a", "b"], 4000),
        }
    )
    frame["day"] = np.repeat(np.arange(4000) % 200, 3)
    seen, _, _, _ = encoded(frame, order=None)
    places = pd.crosstab(seen["now kind"], seen["next kind"], normalize=True)
    assert places.to_numpy().ravel() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0], abs=0.08)


def test_copies_keep_codes_that_stand_behind_missing():
    layout = Layout(schema().domain())
    block, to = (layout.windows.codec.block(f"{role} kind") for role in ("now", "next"))
    codes = layout.windows.blank(5)
    codes.states[:, block.index] = range(5)
    moved(codes, block, codes, to, np.array([4, 3, -1, 1, 0]))
    assert codes.states[:, to.index].tolist() == [4, 3, to.missing_state, 1, 0]


@pytest.mark.parametrize(("least", "most"), [(0, 5), (1, 20), (0, 40), (1, 1000)])
def test_every_number_has_one_label(least, most):
    bins = CountBins.of(least, most)
    numbers = np.arange(least, most + 1)
    first, last = np.array(bins.bins)[bins.index(numbers)].T
    assert ((first <= numbers) & (numbers <= last)).all()
    assert len(bins.labels) == len(set(bins.labels))


def both() -> tuple:
    """Windows of two files, decoded: whose each is, and the tables they are of."""
    rows, declared, _ = two_files(50)
    layout = Layout(declared.domain())
    codes, people = encoded_records(rows, layout, declared.person)
    seen = layout.windows.codec.decode_codes(codes)
    return rows, layout, people, seen, np.repeat(np.arange(people.n), people.counts)


def test_two_files_stand_side_by_side_in_windows():
    rows, layout, people, seen, who = both()
    assert people.n == 50 and people.counts.max() == MOST - 1
    assert np.bincount(who, people.weights) == pytest.approx(1.0, abs=1e-6)
    for file, (now, after) in enumerate((("kind", "day"), ("test", "when"))):
        own = layout.files[file]
        names = own.names("now")
        real = rows[rows[now].notna()]
        real = real.sort_values(["who", after]).groupby("who").head(MOST)
        pairs = {
            (a, b)
            for _, group in real.groupby("who")
            for a, b in zip(group[now], group[now].iloc[1:], strict=False)
        }
        shown = seen[[names[0], own.names("next")[0]]].dropna()
        assert set(map(tuple, shown.to_numpy())) == pairs
        numbers = seen.groupby(who)[own.names("number")[0]].agg(["min", "max"])
        assert (numbers["min"] == numbers["max"]).all()
        counted = sorted(numbers["max"].astype(int))
        wanted = real.groupby("who").size().reindex(range(50), fill_value=0)
        assert counted == sorted(wanted)


def test_each_window_of_a_shorter_file_comes_about_as_often():
    _, layout, people, seen, who = both()
    for own in layout.files:
        place = seen[own.names("place")[0]]
        for person in range(people.n):
            times = place[who == person].value_counts()
            assert times.empty or times.max() - times.min() <= 1
            longest = seen[own.names("number")[0]][who == person].astype(int).max()
            assert len(times) == max(0, longest - 1)


def test_nobody_elses_rows_decide_windows_of_two_files():
    rows, layout, people, _, _ = both()
    declared = layout.output.person
    codes, _ = encoded_records(rows, layout, declared)
    for gone in range(0, 50, 7):
        others, rest = encoded_records(rows[rows["who"] != gone], layout, declared)
        kept = np.repeat(np.isin(people.hashes, rest.hashes), people.counts)
        assert np.array_equal(others.states, codes.states[kept])
        assert np.array_equal(others.values, codes.values[kept])


def levels(rows: pd.DataFrame | None = None) -> tuple:
    """Windows of homes with members with visits, decoded, and whose each is."""
    linked = three_levels(60)
    rows = linked.rows if rows is None else rows
    layout = Layout(linked.schema.domain())
    codes, people = encoded_records(rows, layout, linked.schema.person)
    seen = layout.windows.codec.decode_codes(codes)
    return linked, layout, people, seen, np.repeat(np.arange(people.n), people.counts), codes


def test_windows_of_members_visits_have_the_members_columns():
    linked, layout, people, seen, who, _ = levels()
    assert people.n == 60 and people.counts.max() <= MOST * MOST
    assert np.bincount(who, people.weights) == pytest.approx(1.0, abs=1e-6)
    own = layout.files[1]
    reasons = dict(zip(KINDS, "wxyz", strict=True))
    for name in (*own.names("first"), *own.names("now"), *own.names("next")):
        if "reason" in name:
            there = seen[name].notna()
            assert there.any()
            assert (seen["whose kind"][there].map(reasons) == seen[name][there]).all()
    rows = linked.rows
    without = rows.groupby("who")["member"].apply(lambda one: one.isna().all()).sum()
    assert (seen["whose kind"].isna().groupby(who).all()).sum() == without == 12


def test_members_of_a_home_weigh_the_same_in_their_visits():
    rows = three_levels(60).rows
    size = rows.groupby("who")["members.who"].count()
    rows = rows[rows["who"].isin(size[(size > 0) & (size <= MOST)].index)]
    _, layout, people, seen, _, _ = levels(rows)
    visited = rows["visits.member"].value_counts()
    wanted = np.zeros(MOST + 1)
    for _, home in rows[rows["members.who"].notna()].groupby("who"):
        for member in home["member"]:
            wanted[min(MOST, visited.get(member, 0))] += 1.0 / len(home)
    number = seen[layout.files[1].names("number")[0]].astype(int)
    made = np.bincount(number, people.weights, minlength=MOST + 1)
    assert made == pytest.approx(wanted, abs=1e-4)


def test_nobody_elses_rows_decide_windows_of_members():
    linked, _, everybody, _, _, codes = levels()
    for gone in range(0, 60, 7):
        _, _, rest, _, _, others = levels(linked.rows[linked.rows["who"] != gone])
        kept = np.repeat(np.isin(everybody.hashes, rest.hashes), everybody.counts)
        assert rest.n == 59
        assert np.array_equal(others.states, codes.states[kept])
        assert np.array_equal(others.values, codes.values[kept])


def test_visits_that_go_to_another_homes_member_are_caught(monkeypatch):
    honest = window_rows._owners

    def mutant(known, first):
        rows, people = honest(known, first)
        return np.roll(rows, 1), people

    monkeypatch.setattr(window_rows, "_owners", mutant)
    with pytest.raises(AssertionError):
        test_nobody_elses_rows_decide_windows_of_members()
