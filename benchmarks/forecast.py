"""What Plan foretells: how near models come on generated tables, by rows and ε, and how long.

    OMP_NUM_THREADS=1 nice -n 5 python benchmarks/forecast.py [--out forecast.json]
        [--tables A,B] [--models A,B] [--rows N,N] [--epsilon E,E] [--limit-seconds S]

Only tables that constants are chosen on (`generated_tables.TUNING`) are used: no real row, and none
that anything is reported on. Each fit is judged as Review judges it, at as many synthetic rows as
were trained on: mean distance of single columns and of pairs against the rows trained on, and the
AUROC of two classifiers (logistic regression, histogram boosting) that learn from synthetic rows,
as a share of what the same two reach from real rows, both counted from guessing. `STEPS` are fewer
than usual, so that all of it takes a quarter of an hour on one core; figures are a little worse
than those of usual runs for it.

The file is written after every fit, and a fit that is in it is not repeated. `--limit-seconds`
ends the campaign between two fits. Curves that Plan reads are made of the tables on which every
model was fitted at all sizes and ε: over ε they are the nearest ones (least squares) that never get
worse with more ε. Seconds are of the processor, at usual settings but for `PACE` steps, which Plan
multiplies by the steps of a run; so another program on the same core does not count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from scipy.optimize import isotonic_regression

from benchmarks.generated_tables import TUNING, GeneratedTable, make
from core.encoding.codec import Codec
from core.models.events import FitEvent, PhaseStarted, Signal
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.saved_model import Fitted
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget, default_delta
from core.quality.aligned_tables import AlignedTable, Features
from core.quality.metrics.estimators import classifiers
from core.quality.metrics.marginals import one_way, pair_mean, two_way
from core.quality.metrics.train_synthetic_test_real import BOOSTERS, Task, mean_score, tstr
from core.services.estimates.run_progress import matrix_seconds

OUT = Path(__file__).resolve().parents[1] / "core" / "services" / "estimates" / "forecast.json"
TABLES = ("tuning_small", "tuning_network_b", "tuning_sparse", "tuning_many_labels")
STEPS: dict[str, dict[str, Any]] = {
    "scan_focus": {"steps": 200, "preliminary_steps": 60, "components": 300},
    "pearl": {"steps": 200},
    "p3gm": {"steps": 300, "batch": 200},
}
ROWS, EPSILONS = (1_000, 5_000, 20_000), (0.1, 0.3, 1.0, 3.0)
LOWER = {"tvd_1way": True, "tvd_2way": True, "learnt": False}  # whether lower is closer
PACE: dict[str, dict[str, Any]] = {  # short fits at otherwise usual settings, for seconds a step
    "scan_focus": {"steps": 20, "preliminary_steps": 20},
    "pearl": {"steps": 20},
    "p3gm": {"steps": 100},
}
STEPPED = {
    "training": "steps",
    "preliminary": "preliminary_steps",
    "decoder": "steps",
}  # phases of steps
PACE_ROWS = (5_000, 20_000)
PACKAGES = ("numpy", "torch", "scikit-learn", "scipy")


class Clock:
    """Seconds of the processor in each phase of a fit, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase, self._start = "start", time.process_time()

    def __call__(self, event: FitEvent) -> Signal:
        """See `core.models.events.OnEvent`."""
        if isinstance(event, PhaseStarted):
            self.stop()
            self._phase = event.name
        return Signal.GO_ON

    def stop(self) -> None:
        """Count what the present phase took."""
        now = time.process_time()
        self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._start
        self._start = now


def fitted(
    model: str, table: GeneratedTable, epsilon: float, settings: dict[str, Any]
) -> tuple[Fitted, Codec, Clock]:
    """A fit and the seconds of its phases.

    Args:
      model: registry id.
      table: to train on.
      epsilon: of the budget; δ is the usual one.
      settings: that are not as usual.
    """
    n, codec = len(table.train), Codec(table.schema.domain())
    budget = Budget(epsilon=epsilon, delta=default_delta(n))
    plan = plan_fit(synthesizer(model), codec.domain, n, budget, settings)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=clock, folder=Path(folder), seed=0)
        door = PrivateTable(codec.encode(table.train), codec.domain, plan)
        model_fitted = synthesizer(model).fit(door, plan, context)
    clock.stop()
    return model_fitted, codec, clock


def fit_once(model: str, table: GeneratedTable, epsilon: float, ceiling: float) -> dict[str, Any]:
    """Fit, sample and judge.

    Args:
      model: id of one of `STEPS`.
      table: to train on.
      epsilon: of the budget; δ is the usual one.
      ceiling: AUROC of learning from real rows.
    """
    n = len(table.train)
    made, codec, clock = fitted(model, table, epsilon, STEPS[model])
    synthetic = made.sample(n, seed=0)
    features, (real, fake, test) = Features.fit(table.schema, table.train, synthetic, table.test)
    learnt = (auroc(features, table.target, fake, test) - 0.5) / (ceiling - 0.5)
    return {
        "table": table.name,
        "columns": len(codec.blocks),
        "model": model,
        "n": n,
        "epsilon": epsilon,
        "tvd_1way": round(statistics.fmean(one_way(real, fake).values()), 4),
        "tvd_2way": round(pair_mean(two_way(real, fake)), 4),
        "learnt": round(min(max(learnt, 0.0), 1.0), 4),
        "seconds": {name: round(took, 3) for name, took in clock.seconds.items()},
    }


def pace(model: str, table: GeneratedTable) -> dict[str, Any]:
    """Seconds of what does not depend on steps, and of each step, at usual settings.

    Args:
      model: id of one of `PACE`.
      table: to train on.
    """
    _, codec, clock = fitted(model, table, 1.0, PACE[model])
    steps = {name: PACE[model][key] for name, key in STEPPED.items() if key in PACE[model]}
    per_step = {
        STEPPED[name]: round(clock.seconds[name] / count, 6)
        for name, count in steps.items()
        if name in clock.seconds
    }
    fixed = math.fsum(took for name, took in clock.seconds.items() if name not in steps)
    row = {"model": model, "table": table.name, "columns": len(codec.blocks)}
    return row | {"n": len(table.train), "fixed": round(fixed, 3), "per_step": per_step}


def auroc(features: Features, target: str, train: AlignedTable, test: AlignedTable) -> float:
    """Of two classifiers, on average."""
    models = {k: v for k, v in classifiers(0).items() if k.startswith(("Logistic", BOOSTERS[1]))}
    return mean_score(tstr(Task(features, target), train, test, models=models, seed=0), "AUROC")


def ceiling_of(table: GeneratedTable) -> float:
    """What learning from the real rows reaches."""
    features, (real, test) = Features.fit(table.schema, table.train, table.test)
    return auroc(features, table.target, real, test)


def curves(fits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Figures over ε that never get worse with more of it, by model, table and rows."""
    key = ("model", "table", "columns", "n")
    counts = Counter((fit["table"], fit["model"]) for fit in fits)
    most, models = max(counts.values(), default=0), {fit["model"] for fit in fits}
    whole = [t for t in {f["table"] for f in fits} if all(counts[t, m] == most for m in models)]
    fits = [fit for fit in fits if fit["table"] in whole]
    ordered = sorted(fits, key=lambda fit: (*(fit[k] for k in key), fit["epsilon"]))
    rows = []
    for names, group in itertools.groupby(ordered, key=lambda fit: tuple(fit[k] for k in key)):
        same = list(group)
        row = dict(zip(key, names, strict=True)) | {"epsilon": [fit["epsilon"] for fit in same]}
        for figure, lower in LOWER.items():
            values = [fit[figure] for fit in same]
            smooth = isotonic_regression(values, increasing=not lower).x
            row[figure] = [round(float(value), 4) for value in smooth]
        rows.append(row)
    return rows


def save(
    path: Path, fits: list[dict[str, Any]], paces: list[dict[str, Any]], matrix: float
) -> None:
    """Write all fits, curves and versions, whole or not at all."""
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "threads": torch.get_num_threads(),
        "matrix_seconds": matrix,
        "settings": STEPS,
        "curves": curves(fits),
        "pace": paces,
        "fits": fits,
    }
    partly = path.with_suffix(".partly")
    partly.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    partly.replace(path)


def campaign(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every fit that is asked for and not there, stored as it is done."""
    known = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    fits: list[dict[str, Any]] = known.get("fits", [])
    paces: list[dict[str, Any]] = known.get("pace", [])
    done = {(fit["table"], fit["model"], fit["n"], fit["epsilon"]) for fit in fits}
    timed = {(row["table"], row["model"], row["n"]) for row in paces}
    matrix = min(known.get("matrix_seconds", float("inf")), matrix_seconds())
    began = time.perf_counter()
    for name, n in itertools.product(options.tables, options.rows):
        asked = itertools.product(options.models, options.epsilon)
        left = [(model, e) for model, e in asked if (name, model, n, e) not in done]
        untimed = [m for m in options.models if n in PACE_ROWS and (name, m, n) not in timed]
        table = make(name, n) if left or untimed else None
        if table is None:
            continue
        paces += [pace(model, table) for model in untimed]
        ceiling = ceiling_of(table) if left else 1.0
        for model, epsilon in left:
            if time.perf_counter() - began > options.limit_seconds:
                return fits
            fits.append(fit_once(model, table, epsilon, ceiling))
            save(options.out, fits, paces, matrix)
            print(f"{name} {n} {model} {epsilon:g}", file=sys.stderr, flush=True)
        save(options.out, fits, paces, matrix)
    return fits


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])

    def listed(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--tables", type=listed, default=list(TABLES))
    parser.add_argument("--models", type=listed, default=list(STEPS))
    parser.add_argument("--rows", type=lambda text: [int(n) for n in text.split(",")], default=ROWS)
    parser.add_argument(
        "--epsilon", type=lambda text: [float(e) for e in text.split(",")], default=EPSILONS
    )
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    for name in options.tables:
        if name not in TUNING:
            parser.error(f"'{name}' is no table to choose on; there are: {', '.join(TUNING)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Fit, judge, write. Exit code 0."""
    torch.set_num_threads(1)
    options = parse(arguments)
    print(f"{len(campaign(options))} fits in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
