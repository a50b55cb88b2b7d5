"""Histories: how events of people follow on one another.

Numbers are cut at 20 quantiles of the real ones. Beside each score stand what two halves of the
real people differ by, and `dealt`: the real events dealt to people at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.encoding.bins import REST_LABEL
from core.quality.aligned_tables import AlignedTable, Coded, Feature, Features
from core.quality.comparison import TABLE_ROWS, Comparison
from core.quality.event_table import EventTable, transition_counts, transition_distance
from core.quality.metrics.association import association, operand
from core.quality.metrics.columns import column_pictures
from core.quality.metrics.family import Measured, Metric, Step, family
from core.quality.metrics.marginals import tvd
from core.quality.report.types import ColumnPicture, Histories, StateHistory
from core.schema.column import Column, Kind
from core.schema.person import Person
from core.schema.schema import Schema

MOST_STATES, MOST_LABELS = 6, 12  # columns, and labels of each beside the others
FIFTHS = 5  # of numbers
TIMES = 40  # at which the share of those without an event is taken
SHOWN = 10  # people
OWN_VALUES = 20  # numbers that stay as they are

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SOURCE = "total variation, associations, Kaplan and Meier (1958); beside halves of the real people"
_SCORES = {
    "events": ("Histories: events per person", "Distance of people's numbers of events."),
    "gaps": ("Histories: time between events", "Distance of the times from one event to the next."),
    "first": ("Histories: first event", "Distance of the times at which histories begin."),
    "runs": (
        "Histories: equal events in a row",
        "Distance of the numbers of equal events in a row.",
    ),
    "transitions": (
        "Histories: what follows what",
        "Distance of what comes after an event, the end of the history included.",
    ),
    "survival": (
        "Histories: time to an event",
        "Largest difference between shares of people who have not had an event so long after "
        "their first one: the average over labels.",
    ),
    "parents": (
        "Histories: people and their events",
        "How strongly events are related to what holds for the person: the average difference.",
    ),
    "next": (
        "Histories: an event and the next",
        "How strongly an event is related to the one after it: the average difference.",
    ),
}
METRICS = {
    key: Metric(
        key=f"history_{key}",
        title=title,
        goal="lower",
        high=2.0 if key in ("parents", "next") else 1.0,
        meaning=meaning,
        source=_SOURCE,
    )
    for key, (title, meaning) in _SCORES.items()
}


class States(NamedTuple):
    """A column of events as a few labels; `codes` are those of each table, int64 [e]."""

    column: str
    labels: list[str]
    codes: list[Ints]


def in_order(schema: Schema) -> tuple[int, ...]:
    """Which files hold events of people in an order; 0 is a table that is one file."""
    person = schema.person
    if person is None or not person.grouped or person.rows < 2:
        return ()
    return tuple(at for at, file in enumerate(person.files) if file.order is not None)


@family(
    *METRICS.values(),
    text="Comparing histories",
    order=47,
    cost=2.0,
    applies=lambda tables: bool(in_order(tables.schema)),
)
def histories(tables: Comparison, _: Step) -> Measured:
    """How histories of both tables differ, and the pictures of it; of several files, the mean."""
    apart, shown, rng = dict[str, list[Floats]](), list[Histories](), tables.rng(8)
    for at, (real, synthetic) in opened(tables.schema, *tables.frames):
        if len(real.followed) and len(synthetic.who):
            found, states = _compared(real, synthetic, tables.schema, rng)
            for key, one in found.items():
                if not np.isnan(one[0]):
                    apart.setdefault(key, []).append(one)
            file = file_name(tables.schema, at)
            shown.append(pictures(real, synthetic, states, file))
    scores = []
    for key, each in apart.items():
        far, floor, dealt = np.mean(each, axis=0)
        scores.append(METRICS[key].score(far, ceiling=floor, dealt=dealt))
    return Measured(scores, {"histories": shown})


def _compared(
    real: EventTable, synthetic: EventTable, schema: Schema, rng: np.random.Generator
) -> tuple[dict[str, Floats], list[States]]:
    """Distances by score, see `_apart`, and the states of both tables' events."""
    half = rng.permutation(real.people) < real.people // 2
    sides = [real, synthetic, real.of_people(half), real.of_people(~half), real.dealt(rng)]
    states, times = states_of(sides, schema), _times(real)
    apart = {
        name: _apart(tvd, _histograms(feature, list(map(read, sides))))
        for name, (feature, read) in _numbers(real).items()
    }
    apart["runs"] = _mean(_apart(tvd, _histograms(_number(x[0]), x)) for x in _runs(sides, states))
    apart["transitions"] = _mean(_apart(transition_distance, _moves(sides, s)) for s in states)
    apart["survival"] = _mean(
        _apart(_largest, [t.not_yet(own, i, times) for t, own in zip(sides, s.codes, strict=True)])
        for s in states
        for i in range(len(s.labels))
    )
    for key in ("parents", "next"):
        apart[key] = _apart(_mean_gap, [_related(side, after=key == "next") for side in sides])
    return apart, states


def file_name(schema: Schema, at: int) -> str:
    """Of one file of events; "" where there is no other."""
    files = () if schema.person is None else schema.person.files
    return files[at].child if len(files) > 1 else ""


def opened(schema: Schema, *frames: pd.DataFrame) -> Iterator[tuple[int, list[EventTable]]]:
    """Each file in order, and its events in the tables.

    Of whole people, at most half a million rows of each table.
    """
    person, files = schema.person, in_order(schema)
    if person is None or not files:
        return
    whole = [_whole_people(frame, person) for frame in frames]
    aligned = Features.fit(schema, *whole)[1]
    for at in files:
        yield at, [EventTable.of(*pair, person, at) for pair in zip(whole, aligned, strict=True)]


def _whole_people(frame: pd.DataFrame, person: Person) -> pd.DataFrame:
    if len(frame) <= TABLE_ROWS:
        return frame
    who = frame.groupby(list(person.columns), sort=False, dropna=False).ngroup().to_numpy()
    return frame[(np.bincount(who).cumsum() <= TABLE_ROWS)[who]]


def states_of(sides: Sequence[EventTable], schema: Schema) -> list[States]:
    """Columns of events as states: the target first, then lists, then numbers by fifths."""
    found, events = [], [side.events for side in sides]
    for feature in events[0].features.items:
        if feature.name == sides[0].order or feature.name not in sides[0].own:
            continue
        coded = Coded.of(feature, events, own=MOST_LABELS, parts=FIFTHS)
        counts = np.bincount(np.concatenate(coded.codes), minlength=len(coded.names))
        kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_LABELS])
        kept = kept[counts[kept] > 0]
        place = np.full(len(counts), len(kept))
        place[kept] = np.arange(len(kept))
        rest = [REST_LABEL] if counts[place == len(kept)].any() else []
        if len(labels := [*(coded.names[i] for i in kept), *rest]) > 1:
            found.append(States(feature.name, labels, [place[codes] for codes in coded.codes]))
    numeric = {one.name for one in events[0].features.items if one.numeric}
    found.sort(key=lambda one: (one.column != schema.target, one.column in numeric))
    return found[:MOST_STATES]


def _apart(distance: Callable[[Any, Any], float], five: Sequence[Any]) -> Floats:
    """Of the synthetic table to the real one, of two halves of it, and of dealt events."""
    real, synthetic, half, rest, dealt = five
    pairs = ((real, synthetic), (half, rest), (real, dealt))
    return np.array([distance(*pair) for pair in pairs])


def _mean(parts: Iterable[Floats]) -> Floats:
    rows = list(parts)
    return np.asarray(np.mean(rows, axis=0)) if rows else np.full(3, np.nan)


def _largest(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).max())


def _mean_gap(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).mean()) if one.size else np.nan


def _moves(sides: Sequence[EventTable], states: States) -> list[Floats]:
    pairs = zip(sides, states.codes, strict=False)
    return [transition_counts(side.who, codes, len(states.labels)) for side, codes in pairs]


def _runs(sides: Sequence[EventTable], states: Sequence[States]) -> list[list[Ints]]:
    return [[t.run_lengths(own) for t, own in zip(sides, s.codes, strict=False)] for s in states]


def _related(table: EventTable, *, after: bool) -> Floats:
    """How strongly events are related to what holds for the person, or to the event after."""
    now, then = table.events, table.events
    names = table.own
    if after:
        now, then = now.take(table.followed), then.take(table.followed + 1)
    left = [operand(now.features[one], now) for one in (names if after else table.constant)]
    right = [operand(then.features[one], then) for one in names]
    return np.array([[association(a, b) for b in right] for a in left])


def _numbers(real: EventTable) -> dict[str, tuple[Feature, Callable[[EventTable], Any]]]:
    """By name, numbers of histories: what they are, and how they are read of a table."""
    return {
        "events": (_number(real.counts), lambda table: table.counts),
        "gaps": (_number(real.gaps), lambda table: table.gaps),
        "first": (
            real.events.features[real.order],
            lambda table: table.events.values[table.order][table.firsts],
        ),
    }


def _number(values: NDArray[Any]) -> Feature:
    """Numbers that no column holds."""
    there = values[~np.isnan(values)]
    low, high = (float(there.min()), float(there.max())) if len(there) else (np.nan, np.nan)
    kind = Kind.INTEGER if (there == np.round(there)).all() else Kind.NUMBER
    return Feature(Column(name="number", kind=kind), (), low, high, missing=False)


def _alone(feature: Feature, values: NDArray[Any]) -> AlignedTable:
    return AlignedTable(Features([feature]), len(values), {feature.name: values.astype(np.float64)})


def _histograms(feature: Feature, values: Sequence[NDArray[Any]]) -> list[Ints]:
    coded = Coded.of(feature, [_alone(feature, one) for one in values], own=OWN_VALUES)
    return [np.bincount(codes, minlength=len(coded.names)) for codes in coded.codes]


def _picture(feature: Feature, real: NDArray[Any], other: NDArray[Any]) -> ColumnPicture:
    found = column_pictures(_alone(feature, real), _alone(feature, other))[feature.name]
    return found.model_copy(update={"tvd": tvd(*_histograms(feature, (real, other)))})


def _times(real: EventTable) -> Floats:
    """Times since the first event: evenly up to what one in twenty reach."""
    spans = real.time[np.append(real.firsts[1:] - 1, -1)] - real.time[real.firsts]
    return np.linspace(0.0, float(np.nanquantile(spans, 0.95)) or 1.0, TIMES)


def pictures(
    real: EventTable, synthetic: EventTable, states: Sequence[States], file: str
) -> Histories:
    """What is shown of two tables' histories in one file."""
    times, both, found = _times(real), (real, synthetic), []
    for one, lengths in zip(states, _runs(both, states), strict=True):
        pairs = list(zip(both, one.codes, strict=False))
        late = [[t.not_yet(own, i, times) for i in range(len(one.labels))] for t, own in pairs]
        shares = [t / np.maximum(t.sum(axis=1, keepdims=True), 1.0) for t in _moves(both, one)]
        found.append(
            StateHistory(
                column=one.column,
                labels=one.labels,
                real=np.round(shares[0], 4).tolist(),
                synthetic=np.round(shares[1], 4).tolist(),
                times=times.tolist(),
                real_not_yet=np.round(late[0], 4).tolist(),
                synthetic_not_yet=np.round(late[1], 4).tolist(),
                runs=_picture(_number(lengths[0]), *lengths),
            )
        )
    people = []
    there = ~np.isnan(synthetic.time)
    followed = synthetic.followed[there[synthetic.followed]]
    for one_of in np.unique(synthetic.who[followed])[:SHOWN]:
        rows = np.flatnonzero((synthetic.who == one_of) & there)
        labels = [states[0].labels[states[0].codes[1][i]] if states else "" for i in rows]
        since = synthetic.time[rows] - synthetic.time[rows[0]]
        people.append(list(zip(since.tolist(), labels, strict=True)))
    shown = {key: _picture(of, *map(read, both)) for key, (of, read) in _numbers(real).items()}
    return Histories(file=file, days=real.days, pictures=shown, states=found, people=people)
