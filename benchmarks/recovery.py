"""How far a hidden distribution can be computed back, by model: the attack of `core.lmdp.recovery`.

    python benchmarks/recovery.py --models scan_focus pearl --epsilon 2 [--rows 20000] [--seed 1] \
        [--shift 0.75] [--set steps=500] [--json]

The table is made: income (eight classes, hidden) with rent and area that follow it and sex that
does not. One row a model, with total variation distances to the real shares of income: of the
released table; of what the attack finds in the table and its own outside report (a tenth of the
budget), as counts of real rows are released now (shifted as the table is) and as they were before
(real); of what it finds with the exact real shares of the other columns; and what the certificate
says of the latter, measured on the model alone.
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

from core.runs.request import RunRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.execution.threads import limit_threads

limit_threads()

from core.encoding.codec import Codec, Codes  # noqa: E402
from core.lmdp.recovery import (  # noqa: E402
    HiddenCells,
    column_shares,
    distance,
    measure,
    recovered_shares,
)
from core.lmdp.shift import Shift  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.registry import cards, synthesizer  # noqa: E402
from core.models.step import FitContext  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.mechanisms import noise  # noqa: E402
from core.privacy.mechanisms.histograms import Histograms, Weight  # noqa: E402
from core.privacy.plan import Plan  # noqa: E402
from core.schema.column import Kind, SchemaColumn  # noqa: E402
from core.schema.schema import Schema  # noqa: E402
from core.services.planning import make_plan  # noqa: E402
from core.services.synthesis.options import settings_of  # noqa: E402 - threads are set before torch

CLASSES = 8
SPREAD = np.array([0.34, 0.22, 0.15, 0.11, 0.08, 0.05, 0.03, 0.02])
HIDDEN, OTHERS = "income", ("rent", "area", "sex")
RELEASED = 60_000  # records that the attack reads


def table_of(rows: int) -> pd.DataFrame:
    """The made table; the same for the same number of rows."""
    rng = np.random.default_rng(1)
    income = rng.choice(CLASSES, rows, p=SPREAD)

    def following(values: np.ndarray, keep: float) -> np.ndarray:
        return np.where(rng.random(rows) < keep, values, rng.integers(0, CLASSES, rows))

    codes = {
        "income": income,
        "rent": following(income, 0.75),
        "area": following((income + 3) % CLASSES, 0.6),
        "sex": rng.integers(0, 2, rows),
    }
    return pd.DataFrame({n: [f"{n[0]}{value}" for value in codes[n]] for n in codes}, dtype="str")


def schema_of() -> Schema:
    """Its declaration, with income hidden."""
    sizes = {HIDDEN: CLASSES, "rent": CLASSES, "area": CLASSES, "sex": 2}
    columns = tuple(
        SchemaColumn(
            name=name,
            kind=Kind.CATEGORY,
            categories=tuple(f"{name[0]}{i}" for i in range(size)),
            dtype="str",
        )
        for name, size in sizes.items()
    )
    return Schema(columns=columns, sensitive={"hidden": (HIDDEN,)})


def outside(codec: Codec, real: Codes, plan: Plan, weight: Weight | None) -> dict[str, list[float]]:
    """Counts of the other columns as the plan's review budget buys them."""
    import torch

    mechanism = Histograms.of(codec, OTHERS, weight)
    exact = mechanism.statistic(real, torch.ones(len(real))).numpy()
    std = plan.phase("review").noise_multiplier * mechanism.sensitivity
    return mechanism.split((exact + noise.gaussian(exact.shape, std)).tolist())


def trial(model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fit, shift and attack once."""
    frame, schema = table_of(options.rows), schema_of()
    ask = RunRequest(
        model=model,
        epsilon=options.epsilon,
        settings=settings_of(options.set),
        shift=options.shift,
        review=0.1,
    )
    plan, codec = make_plan(schema, len(frame), ask), Codec(schema.domain())
    real = codec.encode(frame)
    table, start = PrivateTable(real, codec.domain, plan), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=_quiet, folder=Path(folder), seed=options.seed)
        fitted: Any = synthesizer(model).fit(table, plan, context)
    seconds = time.perf_counter() - start
    assert plan.protection is not None and plan.shift is not None
    groups = plan.protection.groups
    key = f"benchmark {options.seed}".encode()
    shift = Shift.find(fitted, groups, power=plan.shift, key=key)
    shifted = fitted.then(shift)
    released = codec.encode(shifted.sample(RELEASED, seed=options.seed))
    cells = HiddenCells.of(codec, (HIDDEN,), released)
    true = cells.shares(real)
    shares: dict[str, Any] = {
        "report, counts shifted": outside(codec, real, plan, shift.kept_share),
        "report, counts real": outside(codec, real, plan, None),
        "exact real shares": column_shares(codec, OTHERS, real),
    }
    return {
        "model": model,
        "released": distance(true, cells.shares(released)),
        **{
            name: distance(true, recovered_shares(cells, released, given))
            for name, given in shares.items()
        },
        "model to real": distance(true, cells.shares(codec.encode(fitted.sample(RELEASED)))),
        "undone, as said": measure(fitted, shift, groups)["hidden"].undone,
        "fit seconds": seconds,
    }


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def main() -> int:
    """Print one line a model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=[card.id for card in cards()])
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shift", type=float, default=0.75)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for model in options.models:
        row = trial(model, options)
        words = (f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
        print(json.dumps(row) if options.json else ", ".join(words), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
