"""What boosting adds to its base at the same total ε: classifiers trained on the synthetic rows.

    python benchmarks/boosting.py --table titanic.csv --target survived --epsilon 2 --runs 20
    python benchmarks/boosting.py --table adult_train.csv --test adult_test.csv --target income \
        --epsilon 1 --runs 3 [--base dp_gan] [--settings steps=500] [--boosting rounds=400] \
        [--json]

Each run fits the base alone on the whole budget, and boosting on the same total, of which its base
gets what the plan leaves. Without --test, each run keeps another 30 % of the rows out of both fits
to test on. Three classifiers (logistic regression, random forest, histogram boosting) by accuracy,
ROC AUC and PR AUC (of the rarer class), and the mean 2-way total variation against the rows that
were trained on. Medians over runs, then how often boosting is ahead.

Source: Neunhoeffer, Wu and Dwork, "Private post-GAN boosting", ICLR 2021, §4.4 (the protocol).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.models.planning import plan_fit
from core.models.step import FitContext
from core.runs.execution.threads import limit_threads

limit_threads()

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # noqa: E402

from core.encoding.codec import Codec  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.registry import synthesizer  # noqa: E402
from core.models.steps.calibration.calibrated import SHARE  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.plan import Budget  # noqa: E402
from core.quality.aligned_tables import Features  # noqa: E402
from core.quality.metrics import estimators  # noqa: E402
from core.quality.metrics.marginals import pair_mean, two_way  # noqa: E402
from core.quality.metrics.train_synthetic_test_real import Task, evaluate  # noqa: E402
from core.schema.schema import Schema  # noqa: E402
from core.services.synthesis.options import settings_of  # noqa: E402
from tests.reading.files import read_table  # noqa: E402

MODELS = {
    "logit": estimators.logistic,
    "forest": lambda seed: RandomForestClassifier(random_state=seed, n_jobs=1),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
MEASURES = ("accuracy", "ROC AUC", "PR AUC")
TVD = "2-way TVD"


class Trial:
    """A table and how to judge what is made of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        read = read_table(options.table)
        schema = read.schema.model_copy(update={"target": options.target})
        kept = [column for column in schema.columns if column.modelled]
        self.schema = Schema(columns=tuple(kept), target=options.target)
        names = [column.name for column in kept]
        self.codec = Codec(self.schema.domain())
        self.frame = self._as_written(read.frame[names])
        self.test = None
        if options.test:
            test = read_table(options.test, schema=schema).frame
            self.test = self._as_written(test[names])

    def _as_written(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows as any model would write them, so that no label differs by its type alone."""
        return self.codec.decode_codes(self.codec.encode(frame))

    def run(self, seed: int) -> dict[str, dict[str, float]]:
        """Scores by variant, then by name."""
        options, train, test = self.options, self.frame, self.test
        if test is None:
            test = train.sample(frac=0.3, random_state=seed)
            train = train.drop(test.index)
        found: dict[str, dict[str, float]] = {}

        def judge(name: str, made: pd.DataFrame) -> None:
            found[name] = self._judge(train, test, made, seed)

        shared = {SHARE: 0.0, **settings_of(options.settings)}  # what boosting adds by itself
        alone = self._fit(options.base, train, seed, shared)
        rows = len(train)
        judge("base alone", alone.sample(rows, seed=seed))
        chosen = {**shared, **settings_of(options.boosting), "base": options.base}
        boosted = self._fit("pgb", train, seed, chosen)
        judge("its base", boosted.base.sample(rows, seed=seed))
        for name, rejection in (("boosted", False), ("boosted + rejection", True)):
            judge(name, boosted.variant(rejection=rejection).sample(rows, seed=seed))
        if options.real:
            judge("real", train)
        return found

    def _fit(self, model: str, train: pd.DataFrame, seed: int, settings: dict[str, Any]) -> Any:
        options, domain = self.options, self.codec.domain
        budget = Budget(epsilon=options.epsilon, delta=options.delta or 1.0 / (10 * len(train)))
        plan = plan_fit(synthesizer(model), domain, len(train), budget, settings)
        table = PrivateTable(self.codec.encode(train), domain, plan)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            fitted = synthesizer(model).fit(
                table, plan, FitContext(on_event=_quiet, folder=Path(folder), seed=seed)
            )
        print(f"{model}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        return fitted

    def _judge(
        self, train: pd.DataFrame, test: pd.DataFrame, made: pd.DataFrame, seed: int
    ) -> dict[str, float]:
        features, (real, fake, other) = Features.fit(self.schema, train, made, test)
        task = Task(features, self.options.target)
        x, y = task.data(fake)
        x_test, y_test = task.data(other)
        out = {}
        for name, new in MODELS.items():
            model = estimators.fit(new(seed), x, y)
            scores = evaluate(model, x_test, y_test).scores()
            out[f"{name} accuracy"] = scores["Accuracy"]
            out[f"{name} ROC AUC"] = scores["AUROC"]
            out[f"{name} PR AUC"] = scores["AUPRC"]
        return out | {TVD: pair_mean(two_way(real, fake))}


def _quiet(event: FitEvent) -> Signal:
    return Signal.GO_ON


def summary(runs: list[dict[str, dict[str, float]]]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Medians by score and variant, and of the nine cells those where boosting is not behind."""
    medians = pd.DataFrame({k: pd.DataFrame([r[k] for r in runs]).median() for k in runs[0]})
    cells = [f"{model} {measure}" for model in MODELS for measure in MEASURES]
    ahead = {}
    for ours in ("boosted", "boosted + rejection"):
        for base in ("base alone", "its base"):
            won = medians.loc[cells, ours] >= medians.loc[cells, base]
            ahead[f"{ours} ≥ {base}, of {len(cells)} medians"] = int(won.sum())
            lower = sum(run[ours][TVD] < run[base][TVD] for run in runs)
            ahead[f"{ours} < {base} in 2-way TVD, of {len(runs)} runs"] = lower
            area = sum(run[ours]["logit ROC AUC"] > run[base]["logit ROC AUC"] for run in runs)
            ahead[f"{ours} > {base} in logit ROC AUC, of {len(runs)} runs"] = area
    return medians, ahead


def main() -> int:
    """Print one line a run and variant, then medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--base", default="dp_gan")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--delta", type=float)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--settings", nargs="*", default=[], help="of the base, in both fits")
    parser.add_argument("--boosting", nargs="*", default=[], help="of the boosting")
    parser.add_argument("--real", action="store_true", help="judge the real rows too")
    parser.add_argument("--json", action="store_true", help="every run, on the last line")
    options = parser.parse_args()
    trial, runs = Trial(options), []
    for seed in range(options.first, options.first + options.runs):
        runs.append(trial.run(seed))
        for name, scores in runs[-1].items():
            words = ", ".join(f"{key} {value:.3f}" for key, value in scores.items())
            print(f"{seed} {name}: {words}", flush=True)
    medians, ahead = summary(runs)
    print(medians.round(4).to_string())
    for words, count in ahead.items():
        print(f"{words}: {count}")
    if options.json:
        print(json.dumps(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
