"""Histories of people: what is kept of how events follow on one another, with ε per person.

    python benchmarks/histories.py [--tables generated cdnow] [--folder DIR] [--people 20000]
        [--epsilon 1] [--seeds 3] [--ways histories people rows free] [--json] [--page FILE]

`generated` has people with three constants and up to 12 events of 8 kinds; which comes next depends
on the one before, on a constant and on whether the kind "a" has been before. `cdnow` are 23,570
people and their purchases, of DIR/cdnow_users.csv and DIR/cdnow_purchases.csv, at most 20 of each;
its states are fifths of the amount.

Distances are in total variation: of rows of the transition matrix, with END, weighted by how often
real events are in each state; of a state and the one after; of numbers of events; of waits (32
equal shares of the real ones); of each constant with the first state, the largest. `people` is what
per-person statistics give without histories, `rows` the same with events dealt out to people at
random, `free` histories without noise. Nothing is declared: bounds and lists are learned, too.
`floor` is how far two independent real tables of as many people lie apart: another one of the same
law, and of CDNOW two halves of its people, over the root of two (the mean of ten splits). Less than
that cannot be told from a real table. --page writes means and ranges over seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.models.events import FitEvent, Signal
from core.proposing.propose import infer_schema
from core.quality.event_table import transition_counts, transition_distance
from core.quality.metrics.marginals import tvd
from core.reading.raw_cells import raw_frame
from core.services.linking.files import LinkedFile, link
from core.services.linking.unlinking import unlink
from core.services.synthesis.options import options_of
from core.services.synthesis.schema_options import with_schema
from core.services.synthesis.synthesize import synthesize

KINDS = tuple("abcdefgh")
MOST, MOST_BOUGHT, CELLS = 12, 20, 32
CONSTANTS = ("sex", "region", "age")
ORDERS = {"generated": ("day", MOST), "cdnow": ("date", MOST_BOUGHT), "stays": ("admitted", 10)}
WAYS = ("histories", "people", "rows", "free")

Floats = NDArray[np.float64]
Tables = tuple[pd.DataFrame, pd.DataFrame]  # people and their events in order


def generated(people: int, seed: int, law: int = 7) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People and their events, of a law that another seed does not change."""
    fixed, random = np.random.default_rng(law), np.random.default_rng(seed)
    moves = fixed.dirichlet(np.full(8, 0.5), 8) + 0.01
    of_sex = np.exp(fixed.normal(0.0, 0.5, (2, 8)))
    after_a = np.where(np.arange(8) == 1, 3.0, 1.0)  # once "a" has been
    firsts = fixed.dirichlet(np.full(8, 0.7), (2, 4))  # by sex and region
    ends = np.clip(fixed.normal(0.18, 0.08, 8), 0.05, 0.4)
    waits = fixed.uniform(3.0, 60.0, 8)
    sex, region = random.integers(0, 2, people), random.choice(4, people, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(random.normal(50 + 5 * region, 15), 0, 99).astype(int)
    kind = _choose(firsts[sex, region], random)
    day = random.integers(0, 400, people).astype(float)
    seen = np.zeros(people, dtype=bool)
    alive = random.random(people) >= 0.05  # the others have no event
    who, kinds, days, costs = [], [], [], []
    for step in range(MOST):
        index = np.flatnonzero(alive)
        who.append(index)
        kinds.append(kind[index])
        days.append(day[index])
        costs.append(np.round(random.lognormal(4.0 + 0.2 * kind[index] + 0.005 * age[index], 0.6)))
        seen |= alive & (kind == 0)
        goes_on = random.random(people) >= ends[kind] * (1.0 + 0.6 * (age > 70))
        alive &= goes_on & (step < MOST - 1)
        odds = moves[kind] * of_sex[sex] * np.where(seen[:, None], after_a, 1.0)
        kind = _choose(odds, random)
        day += 1.0 + np.floor(random.exponential(waits[kind]))
    events = pd.DataFrame(
        {
            "patient": np.concatenate(who),
            "day": np.concatenate(days).astype(int),
            "kind": np.array(KINDS)[np.concatenate(kinds)],
            "cost": np.minimum(np.concatenate(costs), 5000).astype(int),
        }
    ).sort_values(["patient", "day"], kind="stable", ignore_index=True)
    persons = pd.DataFrame(
        {
            "patient": np.arange(people),
            "sex": np.array(["f", "m"])[sex],
            "region": np.array(list("NESW"))[region],
            "age": age,
        }
    )
    return persons, events


def _choose(shares: Floats, random: np.random.Generator) -> NDArray[np.intp]:
    """A column for each row, by its shares."""
    line = shares.cumsum(axis=1)
    return (line < random.random((len(line), 1)) * line[:, -1:]).sum(axis=1)


def distance(one: Mapping[object, float], other: Mapping[object, float]) -> float:
    """Total variation of two distributions."""
    keys = set(one) | set(other)
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in keys)


def shares(values: pd.Series) -> dict[object, float]:
    """How often each value comes."""
    return dict(values.value_counts(normalize=True))


def figures(real: Tables, other: Tables, state: str, most: int) -> dict[str, float]:
    """How far another table's histories lie from the real ones."""
    labels = pd.Index(sorted({*real[1][state], *other[1][state]}))
    who = [pd.factorize(events["patient"])[0] for _, events in (real, other)]
    moves = [
        transition_counts(own, labels.get_indexer(events[state]), len(labels))
        for own, (_, events) in zip(who, (real, other), strict=True)
    ]
    lengths = [
        p["patient"].map(e["patient"].value_counts()).fillna(0).clip(upper=most)
        for p, e in (real, other)
    ]
    waits = [e.groupby("patient", sort=False)["day"].diff().dropna() for _, e in (real, other)]
    cuts = np.unique(np.quantile(waits[0], np.linspace(0, 1, CELLS + 1))[1:-1])
    binned = [pd.Series(np.searchsorted(cuts, wait, side="right")) for wait in waits]
    firsts = []
    for p, e in (real, other):
        joined = p.merge(e.drop_duplicates("patient")[["patient", state]], on="patient")
        firsts.append(joined.assign(age=joined["age"] // 10) if "age" in joined else joined)
    with_first = {
        f"{name} with first": distance(
            *(shares(f[name].astype(str) + "|" + f[state].astype(str)) for f in firsts)
        )
        for name in CONSTANTS
        if name in real[0]
    }
    return {
        "transitions": transition_distance(*moves),
        "with the next": tvd(moves[0][:, :-1], moves[1][:, :-1]),
        "numbers": distance(*map(shares, lengths)),
        "waits": distance(*map(shares, binned)),
        **with_first,
    }


def cdnow(folder: Path) -> Tables:
    """The people and purchases of CDNOW, at most 20 of each."""
    people = pd.read_csv(folder / "cdnow_users.csv").rename(columns={"id": "patient"})
    bought = pd.read_csv(folder / "cdnow_purchases.csv").rename(columns={"users_id": "patient"})
    bought = bought.sort_values(["patient", "date"], kind="stable", ignore_index=True)
    kept = bought.groupby("patient").cumcount() < MOST_BOUGHT
    return people, bought[kept].reset_index(drop=True)


def floor(real: Tables, name: str, seed: int, splits: int = 10) -> dict[str, float]:
    """How far two independent real tables of as many people lie apart, by splits of one."""
    random, found = np.random.default_rng(seed), []
    for _ in range(splits):
        half = random.permutation(real[0]["patient"])[: len(real[0]) // 2]
        sides = [
            tuple(
                table[table["patient"].isin(half) == own].reset_index(drop=True) for table in real
            )
            for own in (True, False)
        ]
        found.append(judged(*sides, name))
    return {key: float(np.mean([one[key] for one in found])) / math.sqrt(2.0) for key in found[0]}


def judged(real: Tables, other: Tables, name: str) -> dict[str, float]:
    """`figures` of a table by its name."""
    if name == "generated":
        return figures(real, other, "kind", MOST)
    cuts = np.quantile(real[1]["amt"], [0.2, 0.4, 0.6, 0.8])
    days = [
        e.assign(
            day=(pd.to_datetime(e["date"]) - pd.Timestamp("1997-01-01")).dt.days,
            fifth=np.searchsorted(cuts, e["amt"]),
        )
        for _, e in (real, other)
    ]
    return figures((real[0], days[0]), (other[0], days[1]), "fifth", MOST_BOUGHT)


def synthetic(real: Tables, way: str, options: argparse.Namespace, name: str, seed: int) -> Tables:
    """Both tables as a way makes them."""
    order, most = ORDERS[name]
    files = [
        LinkedFile(raw_frame(frame), infer_schema(frame), title, "patient")
        for frame, title in zip(real, ("people", "events"), strict=True)
    ]
    linked = link(*files, order=order, most=most)
    schema, person = linked.schema, linked.schema.person
    if way in ("people", "rows") and person is not None and person.history is not None:
        history = person.history.model_copy(update={"learned": False})
        person = person.model_copy(update={"history": history})
        schema = schema.model_copy(update={"person": person})
    asked = options_of(
        {
            "epsilon": math.inf if way == "free" else options.epsilon,
            "model": "scan_focus",
            "people": "new",
            "seed": seed,
            "rows": None if way in ("histories", "free") else len(linked.rows),
            "without_privacy": way == "free",
        },
        table=name,
        declared=False,
    )
    made = synthesize(asked, *with_schema(asked, linked.rows, schema), on_event=_go_on)
    people, events = (t for t, _ in unlink(made.outcome.tables.synthetic, made.schema).values())
    if way == "rows":
        others = [column for column in events if column != "patient"]
        dealt = events[others].sample(frac=1.0, random_state=seed, ignore_index=True)
        events = pd.concat([events[["patient"]], dealt], axis=1)
        events = events.sort_values(["patient", order], kind="stable", ignore_index=True)
    return people, events.dropna().reset_index(drop=True)


def _go_on(_: FitEvent) -> Signal:
    return Signal.GO_ON


def tables(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A Markdown table for each table that runs were made of: means, and ranges over seeds."""
    for name in dict.fromkeys(one["table"] for one in results):
        own = [one for one in results if one["table"] == name]
        ways = [key for key in own[0] if key not in ("table", "seed")]
        lines = [
            f"| {name}, {len(own)} seeds | {' | '.join(ways)} |",
            "|---" * (len(ways) + 1) + "|",
        ]
        for figure in own[0][ways[-1]]:
            cells = []
            for way in ways:
                values = [one[way][figure] for one in own if figure in one[way]]
                shown = "{:.0f}" if figure == "seconds" else "{:.3f}"
                low, high = (shown.format(end(values, default=0.0)) for end in (min, max))
                mean = shown.format(float(np.mean(values))) if values else ""
                cells.append(mean if low == high or not values else f"{mean} ({low}–{high})")
            lines.append(f"| {figure} | {' | '.join(cells)} |")
        yield "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=["generated"])
    parser.add_argument("--folder", type=Path, help="of CDNOW")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", action="store_true", help="one JSON object a run")
    parser.add_argument("--page", type=Path, help="a Markdown file of the tables")
    options, results = parser.parse_args(arguments), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as home:
        os.environ["FACSIMILE_HOME"] = home
        for name in options.tables:
            for seed in range(options.seeds):
                drawn = generated(options.people, seed) if name == "generated" else None
                real = cdnow(options.folder) if drawn is None else drawn
                found = {}
                if drawn is None:
                    found["floor"] = floor(real, name, seed)
                else:
                    found["floor"] = judged(real, generated(options.people, 100 + seed), name)
                for way in options.ways:
                    began = time.monotonic()
                    found[way] = judged(real, synthetic(real, way, options, name, seed), name)
                    found[way]["seconds"] = time.monotonic() - began
                for way, row in found.items():
                    cells = ", ".join(f"{key} {value:.4f}" for key, value in row.items())
                    print(f"{name}, seed {seed}, {way}: {cells}", flush=True)
                results.append({"table": name, "seed": seed, **found})
                if options.json:
                    print(json.dumps(results[-1]), flush=True)
    if options.page is not None:
        options.page.write_text("\n\n".join(tables(results)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
