"""What buying a schema costs in utility, beside the same runs with declared domains.

    FACSIMILE_DATA=… python benchmarks/buying.py [--tables adult titanic] [--shares 0.05 0.2] \
        [--seeds 3] [--epsilon 1] [--delta 1e-5] [--set steps=3000] [--json]

PEARL on Adult and on Titanic (a fifth kept out to test on). Declared runs take bounds and lists as
they are proposed from the rows and spend all of ε on the fit; bought ones spend a share on them
first. The same seeds, the same judge as `benchmarks/utility.py`. One row a table and share, means
over seeds: cells of numbers inside the bounds, labels kept, cells under OTHER, distances of single
columns and of pairs, logistic AUROC on the target.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.runs.request import RunRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.execution.threads import limit_threads

limit_threads()

from utility import Bench, read, schema_of  # noqa: E402 - threads are set before torch

from core.encoding.codec import Codec  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.registry import synthesizer  # noqa: E402
from core.models.step import FitContext  # noqa: E402
from core.privacy.discovery.release import release_schema  # noqa: E402
from core.privacy.discovery.unbought import as_bought, unbought  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.meter import Meter  # noqa: E402
from core.proposing.propose import infer_schema  # noqa: E402
from core.schema.column import DomainSource, SchemaError  # noqa: E402
from core.schema.labels import to_labels, to_numbers  # noqa: E402
from core.schema.schema import Schema  # noqa: E402
from core.services.planning import make_plan  # noqa: E402
from core.services.purchases import DELTA_SHARE, plan_purchase  # noqa: E402
from core.services.synthesis.options import settings_of  # noqa: E402

MODEL = "pearl"
HEADS = {
    "inside": "cells in bounds",
    "labels": "labels kept",
    "other": "cells under OTHER",
    "dropped": "columns left out",
    "tvd_1way": "1-way",
    "tvd_2way": "2-way",
    "auroc_logistic": "AUROC log.",
    "buy_seconds": "s to buy",
}


def tables(name: str) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Rows to learn from, rows to test on, the target."""
    folder = Path(os.environ["FACSIMILE_DATA"])
    if name == "adult":
        return read(folder / "adult_train.csv"), read(folder / "adult_test.csv"), "income"
    whole = read(folder / "titanic.csv")
    order = np.random.default_rng(0).permutation(len(whole))
    cut = len(whole) // 5
    train, test = (whole.iloc[part].reset_index(drop=True) for part in (order[cut:], order[:cut]))
    return train, test, "survived"


def bought_schema(schema: Schema, rows: pd.DataFrame, options: argparse.Namespace, share: float):
    """The schema with what a purchase of that share releases; SchemaError where it is refused."""
    schema = as_bought(schema)
    plan = plan_purchase(schema, len(rows), share * options.epsilon, DELTA_SHARE * options.delta)
    for column in release_schema(rows, unbought(schema), plan, Meter(plan)).columns:
        # what is measured is the domain, so nothing is entered in a ledger
        plain = column.model_copy(update={"proposal": None})
        kept = column.source is DomainSource.BOUGHT
        change = {"source": DomainSource.DECLARED} if kept else {}
        schema = schema.replace(plain.model_copy(update=change))
    return schema


def coverage(schema: Schema, rows: pd.DataFrame, real: Schema) -> dict[str, float]:
    """How much of the real cells a schema's domains hold."""
    inside, other, labels = [], [], 0
    wanted = [column for column in real.columns if column.modelled]
    for column in (schema[one.name] for one in wanted):
        cells = rows[column.name].dropna()
        if not column.modelled:
            continue
        if column.kind.numeric:
            x = to_numbers(cells, column)
            assert column.low is not None and column.high is not None
            inside.append(float(np.mean((x >= column.low) & (x <= column.high))))
        else:
            listed = [label for label in column.categories or () if label != column.other]
            labels += len(listed)
            other.append(float(1.0 - to_labels(cells).isin(listed).mean()))
    return {
        "inside": float(np.mean(inside)) if inside else 1.0,
        "labels": float(labels),
        "other": float(np.mean(other)) if other else 0.0,
        "dropped": float(sum(not schema[one.name].modelled for one in wanted)),
    }


class Trial:
    """One table, and how to judge what is made of it."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.options = options
        self.rows, test, target = tables(name)
        proposed = infer_schema(self.rows).model_copy(update={"target": target})
        modelled = [column.name for column in proposed.columns if column.modelled]
        self.rows, test = self.rows[modelled], test[modelled]
        columns = tuple(column for column in proposed.columns if column.modelled)
        self.schema = Schema(columns=columns, target=target)
        self.bench = Bench(self.rows, test, schema_of(self.rows, target), target, True, 0)

    def run(self, share: float, seed: int) -> dict[str, Any]:
        """One run with that share of ε spent on domains; 0 declares them."""
        epsilon, delta = self.options.epsilon, self.options.delta
        schema, began = self.schema, time.perf_counter()
        if share:
            schema = bought_schema(schema, self.rows, self.options, share)
            epsilon, delta = epsilon * (1.0 - share), delta * (1.0 - DELTA_SHARE)
        found: dict[str, Any] = {"buy_seconds": time.perf_counter() - began}
        if not schema[self.schema.target or ""].modelled:
            raise SchemaError("The target was left out: too few records hold each of its values.")
        request = RunRequest(
            model=MODEL, epsilon=epsilon, delta=delta, settings=settings_of(self.options.set)
        )
        plan = make_plan(schema, len(self.rows), request)
        codec = Codec(schema.domain())
        table = PrivateTable(codec.encode(self.rows), codec.domain, plan)
        with tempfile.TemporaryDirectory() as folder:
            context = FitContext(on_event=_quiet, folder=Path(folder), seed=seed)
            fitted: Any = synthesizer(MODEL).fit(table, plan, context)
        made = fitted.sample(len(self.rows), seed=seed)
        for name in self.rows.columns:  # a column that was left out holds nothing
            if name not in made.columns:
                made[name] = pd.Series([None] * len(made), dtype="object")
        with tempfile.TemporaryDirectory() as folder:  # judged as it is read back
            made[list(self.rows.columns)].to_csv(Path(folder) / "made.csv", index=False)
            judged = self.bench.judge(read(Path(folder) / "made.csv"))
        return found | coverage(schema, self.rows, self.schema) | judged


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def measured(trial: Trial, share: float, seeds: int) -> dict[str, Any]:
    """Means over seeds, and every run; or why it was refused."""
    try:
        runs = [trial.run(share, seed) for seed in range(seeds)]
    except SchemaError as error:
        return {"refused": str(error)}
    values = {key: [one[key] for one in runs if one.get(key) is not None] for key in HEADS}
    return {key: float(np.mean(some)) for key, some in values.items() if some} | {"runs": runs}


def line(name: str, share: float, found: dict[str, Any]) -> str:
    """One row of the table in Markdown."""
    what = f"bought, {share:.0%} of ε" if share else "declared"
    if "refused" in found:
        return f"| {name} | {what} | refused: {found['refused']} |" + " |" * (len(HEADS) - 1)
    cells = []
    for key in HEADS:
        value = found.get(key)
        text = "–" if value is None else f"{value:.4f}"
        cells.append(f"{value:.1f}" if key in ("labels", "dropped") and value is not None else text)
    return f"| {name} | {what} | {' | '.join(cells)} |"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "titanic"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    print(f"| table | domains | {' | '.join(HEADS.values())} |")
    print("|" + "---|" * (len(HEADS) + 2))
    everything = []
    for name in options.tables:
        trial = Trial(name, options)
        for share in (0.0, *options.shares):
            found = measured(trial, share, options.seeds)
            everything.append({"table": name, "share": share} | found)
            print(line(name, share, found), flush=True)
    if options.json:
        print(json.dumps(everything))
    return 0


if __name__ == "__main__":
    sys.exit(main())
