"""What counts add to a model at the same total ε, one change at a time.

    python benchmarks/ablation.py --tables dependencies --models p3gm,dp_gan --epsilon 1 \
        [--rows 8000] [--steps .25] [--share .3] [--seed 0] [--json] \
        [--out benchmarks/results/ablation]

Of each model two fits: one whose budget is all its own (`off`), and one of which a share goes to
counts. What the second reaches is shown by itself, then with rows fitted to counts of columns, then
of pairs that the scan says go together too, and at last with the fine encodings: cells carried to
the released shares, and positions drawn from the histograms. The last three are made from the
same fit and the same releases. `--steps` is a share of the steps that each model takes by default,
for both fits alike. Figures are by the protocol of `utility.py`; beside each stands its ratio to
`off`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.execution.threads import limit_threads

limit_threads()

from benchmarks.named_tables import NamedTable, load  # noqa: E402
from benchmarks.utility import TREES  # noqa: E402
from core.encoding.codec import Codec  # noqa: E402
from core.models.base_sampler import BaseSampler  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.planning import plan_fit  # noqa: E402
from core.models.registry import synthesizer  # noqa: E402
from core.models.saved_model import Sampler, SavedModel  # noqa: E402
from core.models.step import FitContext, State, run_steps  # noqa: E402
from core.models.steps.calibration.calibrated import FILE, SHARE  # noqa: E402
from core.models.steps.calibration.calibration import calibrate, counts_of  # noqa: E402
from core.models.steps.counting.design import TOGETHER  # noqa: E402
from core.models.steps.counting.steps import counting_steps  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.plan import Budget, Plan  # noqa: E402
from core.quality.aligned_tables import Features  # noqa: E402
from core.quality.metrics.estimators import LOGISTIC, classifiers  # noqa: E402
from core.quality.metrics.marginals import one_way, pair_mean, two_way  # noqa: E402
from core.quality.metrics.propensity import TREE_ROWS, tree_auroc  # noqa: E402
from core.quality.metrics.train_synthetic_test_real import Task, tstr  # noqa: E402

MODELS = ("p3gm", "dp_gan", "dp_auto_gan", "ppem", "pgb")
STEPS = {"dp_auto_gan": ("encoder_steps", "steps"), "ppem": ("marginal_steps", "steps")}
USUAL_SHARE = 0.4
HEADS = {"tvd_1way": "1-way TVD", "tvd_2way": "2-way TVD", "c2st": "C2ST",
         "auroc_trees": "AUROC trees", "auroc_logistic": "AUROC log."}  # fmt: skip
OFF, ALONE = "off", "the model alone, on what counts leave"
CHANGES = {  # whether pairs are matched; whether cells are carried and places redrawn
    "+ counts of columns": (False, False),
    "+ counts of significant pairs": (True, False),
    "+ fine encodings": (True, True),
}
Figures = dict[str, float]


@dataclass(frozen=True)
class Trial:
    """One table, and how fits of it are made and judged.

    Attributes:
      table: rows, and what is declared.
      epsilon: of each fit; δ is 1e-5.
      seed: of data-free randomness and of judging.
      steps: share of each model's default steps.
    """

    table: NamedTable
    epsilon: float
    seed: int
    steps: float

    def plan(self, model: str, share: float) -> Plan:
        """A fit of which a share goes to counts."""
        one = synthesizer(model)
        default = one.configure({}, private=True).model_dump()
        settings: dict[str, Any] = {
            name: max(10, round(default[name] * self.steps))
            for name in STEPS.get(model, ("steps",))
        }
        budget = Budget(epsilon=self.epsilon, delta=1e-5)
        rows = len(self.table.train)
        return plan_fit(one, self.table.schema.domain(), rows, budget, settings | {SHARE: share})

    def fits(self, model: str, share: float) -> Iterator[tuple[str, Sampler]]:
        """The model that a plan with counts leaves, change by change.

        Args:
          model: registry id.
          share: of the budget, for counts; 0 gives `OFF` alone.
        """
        plan = self.plan(model, share)
        domain = self.table.schema.domain()
        codes = Codec(domain).encode(self.table.train)
        rows = PrivateTable(codes, domain, plan)
        with tempfile.TemporaryDirectory() as folder:
            context = FitContext(on_event=_quiet, folder=Path(folder), seed=self.seed)
            counts = None
            if share:
                steps = counting_steps(domain, TOGETHER, FILE, share=share)
                counts = counts_of(run_steps(steps, rows, State(plan=plan), context).measured)
            inner = synthesizer(model).trainer().fit(rows, plan, context)
        assert isinstance(inner, BaseSampler)
        if counts is None:
            yield OFF, inner
            return
        yield ALONE, inner
        candidates = synthesizer(model).candidates
        for name, (pairs, fine) in CHANGES.items():
            weights = calibrate(inner, counts, pairs=pairs, fine=fine, candidates=candidates)
            yield name, SavedModel(inner, (weights,))

    def judge(self, synthetic: pd.DataFrame) -> Figures:
        """Figures by key of `HEADS`."""
        table = self.table
        features, (real, fake, test) = Features.fit(
            table.schema, table.train, synthetic, table.test
        )
        every = classifiers(self.seed)
        models = {name: every[name] for name in (LOGISTIC, TREES)}
        scores = tstr(Task(features, table.target), fake, test, models=models, seed=self.seed)
        rng = np.random.default_rng(self.seed)
        sides = [one.sample(TREE_ROWS, rng) for one in (real, fake)]
        return {
            "tvd_1way": float(np.mean(list(one_way(real, fake).values()))),
            "tvd_2way": float(pair_mean(two_way(real, fake)) or 0.0),
            "c2st": tree_auroc(*sides, seed=self.seed),
            "auroc_trees": scores[TREES]["AUROC"],
            "auroc_logistic": scores[LOGISTIC]["AUROC"],
        }


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def ablate(trial: Trial, model: str, share: float) -> dict[str, Figures]:
    """Figures of every change, by what was changed.

    Args:
      trial: the table.
      model: registry id.
      share: of the budget, for counts, in (0, 1).
    """
    figures: dict[str, Figures] = {}
    for part in (0.0, share):
        for name, fitted in trial.fits(model, part):
            drawn = fitted.sample(len(trial.table.train), seed=trial.seed)
            figures[name] = trial.judge(drawn)
            print(f"{trial.table.name}, {model}, {name}: {figures[name]}", file=sys.stderr)
    return figures


def share_of(model: str, share: float | None) -> float:
    """What the command line asks for, or the model's default, or `USUAL_SHARE` where that is 0."""
    if share is not None:
        return share
    default = synthesizer(model).configure({}, private=True).model_dump()[SHARE]
    return float(default) or USUAL_SHARE


def markdown(results: list[dict[str, Any]]) -> str:
    """All runs as tables; each figure with its ratio to `OFF`."""
    lines = ["# What counts add to each model", ""]
    for run in results:
        lines += [
            f"## {run['table']}, {run['model']}",
            "",
            f"`python benchmarks/ablation.py {_command(run)}`: {run['rows']:,} rows, "
            f"ε = {run['epsilon']:g}, δ = 1e-5, {run['steps']:g} of the default steps, "
            f"{run['share']:g} of the budget for counts, one run, {run['seconds']:.0f} processor "
            "seconds. In brackets: divided by what stands in the first line.",
            "",
            "| | " + " | ".join(HEADS.values()) + " |",
            "| --- |" + " ---: |" * len(HEADS),
        ]
        off = run["figures"][OFF]
        for name, figures in run["figures"].items():
            cells = [f"{figures[key]:.4f} ({figures[key] / off[key]:.2f})" for key in HEADS]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _command(run: dict[str, Any]) -> str:
    rows = "" if run["given_rows"] is None else f" --rows {run['given_rows']}"
    return (
        f"--tables {run['table']} --models {run['model']} --epsilon {run['epsilon']:g}{rows} "
        f"--steps {run['steps']:g} --share {run['share']:g} --seed {run['seed']}"
    )


def _names(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def main(arguments: list[str] | None = None) -> int:
    """Fit, judge, print and keep. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tables", type=_names, required=True)
    parser.add_argument("--models", type=_names, default=list(MODELS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--steps", type=float, default=1.0, help="share of the default steps")
    parser.add_argument("--share", type=float, help="of the budget, for counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="NAME.json is added to, NAME.md written anew")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    stored = None if options.out is None else options.out.with_suffix(".json")
    results: list[dict[str, Any]] = []
    if stored is not None and stored.exists():
        results = json.loads(stored.read_text(encoding="utf-8"))
    for name in options.tables:
        trial = Trial(load(name, options.seed, options.rows), options.epsilon, options.seed,
                      options.steps)  # fmt: skip
        for model in options.models:
            start, share = time.process_time(), share_of(model, options.share)
            run = {
                "table": name, "model": model, "rows": len(trial.table.train),
                "epsilon": options.epsilon, "steps": options.steps, "share": share,
                "seed": options.seed, "figures": ablate(trial, model, share),
                "given_rows": options.rows,
            }  # fmt: skip
            run["seconds"] = time.process_time() - start
            results = [r for r in results if (r["table"], r["model"]) != (name, model)] + [run]
            if stored is not None:
                stored.write_text(json.dumps(results, indent=1), encoding="utf-8")
                options.out.with_suffix(".md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))
    if options.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
