"""What protecting tagged columns does: both tests, the certificate, and the utility it costs.

    python benchmarks/protection.py --train train.csv --test test.csv --target income \
        --groups "age,hours-per-week" --models ppem p3gm --epsilon 1 --seeds 3 [--shift 0.6] \
        [--certificate 0.25] [--set penalty=0 steps=500] [--json]

    python benchmarks/protection.py --binary 8000 --models ppem

One row a model and seed. `--binary` makes a table of 200 yes-or-no columns of which 50 are tagged
and the last is the target. Groups are separated by ";" and columns by ",". Each row says, for every
group, the p-values of the two-sample and the Stein test on released rows against real ones, whether
the private certificate is granted (where it is paid for), and the logistic AUROC on the target
before and after the shift.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.models.step import FitContext
from core.runs.execution.threads import limit_threads
from core.services.planning import RunRequest  # noqa: E402

limit_threads()

from utility import Bench, read, schema_of  # noqa: E402 - threads are set before torch

from core.encoding.codec import Codec, Codes  # noqa: E402
from core.lmdp.inside import inside_check  # noqa: E402
from core.lmdp.shift import Shift  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.registry import synthesizer  # noqa: E402
from core.models.saved_model import SavedModel  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.plan import Plan  # noqa: E402
from core.proposing.propose import infer_schema  # noqa: E402
from core.runs.execution.lmdp_certificate import certify  # noqa: E402
from core.services.planning import make_plan  # noqa: E402
from core.services.synthesis.options import settings_of  # noqa: E402
from tests.reading.files import read_table  # noqa: E402


def binary_table(rows: int, columns: int = 200, factors: int = 8) -> pd.DataFrame:
    """Yes-or-no columns c0, c1, … that follow a few hidden factors, with very different shares."""
    rng = np.random.default_rng(7)
    hidden = rng.standard_normal((rows, factors))
    loadings = rng.normal(0.0, 0.8, (factors, columns))
    odds = hidden @ loadings + rng.normal(-1.0, 1.2, columns)
    cells = rng.random((rows, columns)) < 1.0 / (1.0 + np.exp(-odds))
    return pd.DataFrame(cells.astype(int), columns=[f"c{i}" for i in range(columns)])


class Trial:
    """One table, its tags and how to judge what is made of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        if options.binary:
            whole = binary_table(2 * options.binary)
            self.frame, test = whole[: options.binary], whole[options.binary :]
            options.groups, options.target = ",".join(f"c{i}" for i in range(50)), "c199"
        else:
            self.frame = read_table(options.train).frame
        schema = infer_schema(self.frame)
        groups = [tuple(group.split(",")) for group in options.groups.split(";") if group]
        self.schema = schema.model_copy(
            update={
                "target": options.target,
                "sensitive": {f"g{i + 1}": group for i, group in enumerate(groups)},
            }
        )
        self.bench = None
        if options.target:
            real = self.frame
            if not options.binary:
                real, test = read(options.train), read(options.test)
            self.bench = Bench(real, test, schema_of(real, options.target), options.target, True, 0)

    def run(self, model: str, seed: int) -> dict[str, Any]:
        """Fit, shift, test and judge once."""
        options = self.options
        plan = make_plan(
            self.schema,
            len(self.frame),
            RunRequest(
                model=model,
                epsilon=options.epsilon,
                delta=options.delta,
                settings=settings_of(options.set),
                shift=options.shift,
                certificate=options.certificate,
            ),
        )
        codec = Codec(self.schema.domain())
        codes = codec.encode(self.frame)
        table = PrivateTable(codes, codec.domain, plan)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            fitted: Any = synthesizer(model).fit(
                table, plan, FitContext(on_event=_quiet, folder=Path(folder), seed=seed)
            )
        seconds = time.perf_counter() - start
        row: dict[str, Any] = {"model": model, "seed": seed, "epsilon": plan.budget.epsilon}
        rows = len(self.frame)
        released = fitted.sample(rows, seed=seed)
        row |= self._judged(released, "")
        assert plan.protection is not None
        row |= self._checked(codec, codes, released, plan, seed, "unshifted ")
        if plan.protection.shift:
            start = time.perf_counter()
            groups = plan.protection.groups
            key = f"benchmark {seed}".encode()
            power = plan.protection.shift
            fitted = SavedModel.of(fitted).then(Shift.find(fitted, groups, power=power, key=key))
            released = fitted.sample(rows, seed=seed)
            row["shift_seconds"] = time.perf_counter() - start
            row["strength"] = [round(tilt.strength, 2) for tilt in fitted.transforms[-1].tilts]
            row |= self._judged(released, "shifted ")
            row |= self._checked(codec, codes, released, plan, seed, "")
        if plan.added:
            for verdict in certify(table, fitted, plan, on_event=_quiet):
                row[f"{verdict['group']} certificate"] = (
                    f"{verdict['count']:.0f} of {verdict['groups']} (> {verdict['threshold']:.1f})"
                )
                row[f"{verdict['group']} granted"] = verdict["granted"]
        return {**row, "fit_seconds": seconds}

    def _checked(
        self,
        codec: Codec,
        codes: Codes,
        released: pd.DataFrame,
        plan: Plan,
        seed: int,
        label: str,
    ) -> dict[str, Any]:
        """Both tests of every group on released rows."""
        assert plan.protection is not None
        found: dict[str, Any] = {}
        other = codec.encode(released)
        for group, names in plan.protection.groups.items():
            check = inside_check(codec, names, real=codes, released=other, seed=seed)
            found[f"{label}{group} p two-sample"] = check.two_sample.p_value
            found[f"{label}{group} p Stein"] = check.goodness.p_value
            found[f"{label}{group} both"] = check.rejects(plan.protection.alpha)
        return found

    def _judged(self, released: pd.DataFrame, label: str) -> dict[str, float]:
        if self.bench is None:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "released.csv"
            released.to_csv(file, index=False)
            found = self.bench.judge(read(file))
        return {f"{label}AUROC": found["auroc_logistic"], f"{label}2-way": found["tvd_2way"]}


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def main() -> int:
    """Print one line a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=Path)
    parser.add_argument("--binary", type=int, metavar="ROWS", help="a made-up table instead")
    parser.add_argument("--test", type=Path)
    parser.add_argument("--target")
    parser.add_argument("--groups")
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--epsilon", type=float, default=math.inf)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--shift", type=float)
    parser.add_argument("--certificate", type=float)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.binary and not (options.train and options.groups):
        parser.error("--train and --groups, or --binary")
    trial = Trial(options)
    for model in options.models:
        for seed in range(options.first, options.first + options.seeds):
            row = trial.run(model, seed)
            if options.json:
                print(json.dumps(row), flush=True)
            else:
                words = (
                    f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
                )
                print(", ".join(words), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
