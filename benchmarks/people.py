"""What protecting people instead of rows costs, on a made table of several rows a person.

    python benchmarks/people.py [--rows 50000] [--people 8000] [--models pearl dp_gan …]
        [--most 1 2 5] [--epsilon 1] [--settings NAME=VALUE …] [--seed 0] [--json]

Sex, birth year and city are a person's own; date, ward, cost and outcome vary from visit to visit
and depend on the person, and the ill come more often. Each model is fitted with ε per person, at
most m rows of each, and once with ε per row, which is named as what it is: the last column says up
to which ε that run protects the person with the most rows.

Figures are those of `benchmarks/utility.py --fast`, against people that no model saw: distances of
columns and pairs, once among rows and once among people (a row of each), and the AUROC of the
outcome on rows, by a logistic regression learned from the synthetic table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from utility import Bench  # beside this file

from core.encoding.holdout import people_trained_on, split_rows
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records
from core.models.events import FitEvent, Signal
from core.models.layout_rows import laid_out
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.models.saved_model import SavedModel
from core.models.step import FitContext
from core.privacy.accounting.accountant import epsilon
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget, Plan, default_delta
from core.schema.column import Column, Kind
from core.schema.person import Person
from core.schema.schema import Schema
from core.services.synthesis.options import settings_of

CITIES, WARDS = tuple("abcdefgh"), ("heart", "lung", "bone", "eye", "skin")
HELD_OUT = 0.2
DAYS = 730
HEADS = {
    "n": "n",
    "tvd_1way": "1-way, rows",
    "tvd_2way": "2-way, rows",
    "people_1way": "1-way, people",
    "people_2way": "2-way, people",
    "auroc_logistic": "AUROC log.",
    "per_person": "ε per person",
    "seconds": "s",
}


def made_table(rows: int, people: int, seed: int) -> pd.DataFrame:
    """Visits of people, about `rows` of them, in the order of their dates."""
    rng = np.random.default_rng(seed)
    sick = rng.beta(1.5, 4.0, people)  # how ill somebody is, in (0, 1)
    rate = 0.2 + sick
    visits = 1 + rng.poisson((rows / people - 1) * rate / rate.mean())
    who = np.repeat(np.arange(people), visits)
    sex = rng.choice(["f", "m"], people)
    born = np.clip(1990 - 60 * sick + rng.normal(0, 12, people), 1920, 2005).astype(int)
    city = rng.choice(CITIES, people, p=np.arange(8, 0, -1) / 36)
    ward = np.where(
        rng.random(len(who)) < 0.6, (born[who] // 9) % len(WARDS), rng.integers(0, 5, len(who))
    )
    cost = np.minimum(rng.lognormal(5.0 + 2.0 * sick[who] + 0.2 * ward), 50_000).round()
    odds = -2.0 + 4.0 * sick[who] + 0.3 * (ward == 0) + 0.3 * (sex[who] == "m")
    frame = pd.DataFrame(
        {
            "patient": who,
            "sex": sex[who],
            "born": born[who],
            "city": city[who],
            "day": rng.integers(0, DAYS, len(who)),
            "ward": np.array(WARDS)[ward],
            "cost": cost,
            "outcome": np.where(rng.random(len(who)) < 1 / (1 + np.exp(-odds)), "bad", "good"),
        }
    )
    return frame.sort_values("day", kind="stable", ignore_index=True)


def schema_of(person: Person | None) -> Schema:
    """Declared; who somebody is does not come back."""
    listed = {"sex": ("f", "m"), "city": CITIES, "ward": WARDS, "outcome": ("bad", "good")}
    lines = {"born": (1920, 2005), "day": (0, DAYS)}
    columns: dict[str, Column] = {
        "patient": Column(name="patient", kind=Kind.IDENTIFIER, dtype="int64"),
        "cost": Column(
            name="cost", kind=Kind.NUMBER, low=0, high=50_000, step=1, scale="log", dtype="float64"
        ),
    }
    for name, labels in listed.items():
        columns[name] = Column(name=name, kind=Kind.CATEGORY, categories=labels)
    for name, (low, high) in lines.items():
        columns[name] = Column(
            name=name, kind=Kind.INTEGER, low=low, high=high, step=1, dtype="int64"
        )
    order = ("patient", "sex", "born", "city", "day", "ward", "cost", "outcome")
    return Schema(columns=tuple(columns[n] for n in order), target="outcome", person=person)


def fitted_table(
    model: str, schema: Schema, trained: pd.DataFrame, options: argparse.Namespace
) -> tuple[pd.DataFrame, Plan]:
    """A synthetic table of as many rows as were trained on, and the plan behind it."""
    layout, person = Layout(schema.domain()), schema.person
    n = len(trained) if person is None else people_trained_on([trained[["patient"]]], 0.0)
    budget = Budget(epsilon=options.epsilon, delta=default_delta(n))
    settings = settings_of(options.settings)
    plan = plan_fit(synthesizer(model), layout.domain, n, budget, settings, unit=person)
    codes, people = encoded_records(trained, layout, person)
    table = PrivateTable(codes, layout.domain, plan, people=people)
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=_go_on, folder=Path(folder), seed=options.seed)
        fitted = synthesizer(model).fit(table, plan, context)
    return laid_out(SavedModel.of(fitted), layout).sample(len(trained), seed=options.seed), plan


def _go_on(_: FitEvent) -> Signal:
    return Signal.GO_ON


def judged(synthetic: pd.DataFrame, kept: pd.DataFrame, seed: int) -> dict[str, float | None]:
    """Figures against people held out: among rows, and among people."""
    schema = schema_of(None)
    once = kept.sample(frac=1.0, random_state=seed).drop_duplicates("patient")
    by_rows = Bench(kept, kept, schema, "outcome", True, seed).judge(synthetic)
    by_people = Bench(once, kept, schema, "outcome", True, seed).judge(synthetic)
    names = {"tvd_1way": "people_1way", "tvd_2way": "people_2way"}
    return by_rows | {there: by_people[here] for here, there in names.items()}


def measured(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Every model under every protection, by a name for each."""
    frame = made_table(options.rows, options.people, options.seed)
    own = ("sex", "born", "city")
    grouped = Person(columns=("patient",), rows=1, constant=own, order="day")
    trained, kept = split_rows(frame, HELD_OUT, grouped)
    largest = int(trained["patient"].value_counts().max())
    facts = f"{len(frame)} rows of {options.people} people, at most {largest} of one"
    print(f"{facts}; {kept['patient'].nunique()} people held out", file=sys.stderr)
    out = {"real rows (best possible)": judged(trained, kept, options.seed)}
    for model in options.models:
        for most in (None, *options.most):
            unit = "row" if most is None else f"person, m = {most}"
            person = None if most is None else grouped.model_copy(update={"rows": most})
            start = time.perf_counter()
            synthetic, plan = fitted_table(model, schema_of(person), trained, options)
            seconds = time.perf_counter() - start
            up_to = plan.guarantee.epsilon
            if most is None:
                up_to = epsilon(plan.charged, plan.budget.delta, rows=largest)[0]
            out[f"{model}, ε = {options.epsilon:g} per {unit}"] = {
                **judged(synthetic, kept, options.seed),
                "n": plan.n,
                "per_person": up_to,
                "seconds": seconds,
            }
            print(f"{model} per {unit}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return out


def markdown(figures: dict[str, dict[str, Any]]) -> str:
    """The figures as a table."""
    lines = ["| protection | " + " | ".join(HEADS.values()) + " |", "|---" * (len(HEADS) + 1) + "|"]
    for name, row in figures.items():
        cells = ["–" if row.get(key) is None else f"{row[key]:.4g}" for key in HEADS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Make, fit, judge, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--people", type=int, default=8_000)
    parser.add_argument("--models", nargs="+", default=[card.id for card in cards()])
    parser.add_argument("--most", type=int, nargs="+", default=[1, 2, 5], metavar="M")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--settings", nargs="+", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    figures = measured(options)
    print(markdown(figures))
    if options.json:
        print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
