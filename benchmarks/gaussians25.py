"""Twenty-five Gaussians: what boosting adds to a private GAN, and to one without privacy.

    python benchmarks/gaussians25.py [--runs 10] [--epsilon 1] [--json] [--settings steps=2000]

25 modes on a grid, 1,000 points each, variance 0.0025; columns are declared with a step of 0.08, so
that every value has a bin of its own (64 cells otherwise, with which even a perfect generator
scores .83; with the step it scores .986). Four variants from one fit: what the base
releases (its last generator, averaged), the same with rejection sampling by the last critic, the
boosted mixture, and that with rejection sampling. The score is the share of points within the 99 %
circle of a mode, no mode counted beyond its true share. Medians over runs, beside the paper's.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021, §4.1, §4.2, appendix B.2.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.models.planning import plan_fit
from core.models.step import FitContext
from core.runs.execution.threads import limit_threads

limit_threads()

import torch  # noqa: E402 - threads are set first

from core.encoding.codec import Codec  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.pgb.multiplicative_weights import REJECTION  # noqa: E402
from core.models.pgb.plan import Pgb  # noqa: E402
from core.models.pgb.trainer import BoostedFitted  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.plan import Budget  # noqa: E402
from core.schema.column import Column, Kind  # noqa: E402
from core.schema.schema import Domain  # noqa: E402
from core.services.synthesis.options import settings_of  # noqa: E402

MODES = np.array([(x, y) for x in range(-4, 5, 2) for y in range(-4, 5, 2)], dtype=float)
VARIANCE, EACH = 0.0025, 1000
RADIUS = math.sqrt(VARIANCE * 9.21034)  # holds 99 % of a mode
PAPER = {
    "private": {"last": 0.031, "drs": 0.035, "pgb": 0.044, "pgb_drs": 0.053},
    "non_private": {"last": 0.904, "drs": 0.826, "pgb": 0.918, "pgb_drs": 0.874},
}
DOMAIN = Domain(
    columns=tuple(
        Column(name=name, kind=Kind.NUMBER, low=-5, high=5, step=0.08, dtype="float64")
        for name in "xy"
    )
)


def points(seed: int) -> pd.DataFrame:
    """The real table, 25,000 rows."""
    rng = np.random.default_rng(seed)
    at = np.repeat(MODES, EACH, axis=0) + rng.normal(0, math.sqrt(VARIANCE), (25 * EACH, 2))
    return pd.DataFrame(at, columns=["x", "y"])


def quality(frame: pd.DataFrame) -> float:
    """Share of points within a mode's circle, each mode capped at its true share."""
    gap = np.linalg.norm(frame.to_numpy()[:, None, :] - MODES[None], axis=2)  # [n, 25]
    counts = (gap <= RADIUS).sum(axis=0)
    n = len(frame)
    return float(np.minimum(counts, 0.99 * n / len(MODES)).sum() / n)


def variants(fitted: BoostedFitted, rows: int, seed: int) -> dict[str, float]:
    """The score of all four."""
    return {
        "last": quality(fitted.base.sample(rows, seed=seed)),
        "drs": quality(_rejected(fitted, rows, seed)),
        "pgb": quality(fitted.variant(rejection=False).sample(rows, seed=seed)),
        "pgb_drs": quality(fitted.variant(rejection=True).sample(rows, seed=seed)),
    }


def _rejected(fitted: BoostedFitted, rows: int, seed: int) -> pd.DataFrame:
    """The last generator's records, kept by its own critic."""
    critics, ensemble = fitted.critics, fitted.critics.ensemble
    heads, last = ensemble.heads, len(ensemble) - 1
    random = torch.Generator().manual_seed(seed)
    one_hot = ensemble.draw(last, 6 * rows, random)
    score = critics(heads.critic_input(one_hot))[:, last].double().clamp(1e-4, 1 - 1e-4)
    weight = (score / (1.0 - score)) ** REJECTION
    bound = weight.quantile(0.995) if len(weight) < 2**24 else weight.max()
    lucky = torch.rand(len(weight), generator=random, dtype=torch.float64) < weight / bound
    return heads.codec.decode_codes(heads.to_codes(one_hot[lucky][:rows], generator=random))


def fit(epsilon: float, seed: int, settings: dict[str, Any]) -> BoostedFitted:
    """One run of the base and the boosting."""
    frame = points(seed)
    budget = Budget(epsilon=epsilon, delta=1.0 / (2 * len(frame)))
    plan = plan_fit(Pgb(), DOMAIN, len(frame), budget, {"count_share": 0.0, **settings})
    table = PrivateTable(Codec(DOMAIN).encode(frame), DOMAIN, plan)
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=_quiet, folder=Path(folder), seed=seed)
        return Pgb().trainer().fit(table, plan, context)


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def main() -> int:
    """Print one line a run, then medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", choices=("private", "non_private"))
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    settings = settings_of(options.settings)
    result = {}
    for kind, epsilon in (("private", options.epsilon), ("non_private", math.inf)):
        if options.only not in (None, kind):
            continue
        runs = []
        for seed in range(options.runs):
            runs.append(variants(fit(epsilon, seed, settings), options.rows, seed))
            print(kind, seed, {k: round(v, 4) for k, v in runs[-1].items()}, flush=True)
        medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        better = {k: sum(run[k] > run["last"] for run in runs) for k in ("pgb", "pgb_drs")}
        print(f"{kind}: medians {medians}, paper {PAPER[kind]}")
        print(f"{kind}: above the last generator in {better} of {len(runs)} runs", flush=True)
        result[kind] = medians
    if options.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
