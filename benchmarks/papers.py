"""Our systems beside the figures of the papers they come from, by the papers' own protocols.

    FACSIMILE_DATA=DIR python benchmarks/papers.py [--seeds 1] [--only pearl,p3gm]

Only what Adult can check: DP-auto-GAN's accuracy and Wasserstein scores, P3GM's classifiers and
pairs, PEARL's ten classifiers on a table that is balanced by leaving out rows of the larger class.
PEARL's paper scores hard predictions (real rows reach .765 there), so here the area under the ROC
curve is of hard predictions too. Boosting's figures come from `gaussians25.py` and `boosting.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fitting import fit_and_sample
from benchmarks.named_tables import NamedTable, load
from benchmarks.utility import Bench
from core.quality.aligned_tables import Features
from core.quality.metrics.estimators import ten_classifiers
from core.quality.metrics.train_synthetic_test_real import Task, predict, tstr

DELTA = 1e-5
Published = dict[str, tuple[float, bool]]  # by what was measured: the paper's figure, higher better
Figures = dict[str, float]

PAPERS: dict[str, tuple[str, Published]] = {
    "dp_auto_gan": (
        "DP-auto-GAN, Adult",
        {
            "accuracy": (0.7692, True),
            "Wasserstein score, plane": (0.4117, True),
            "Wasserstein score, whole": (0.6053, True),
        },
    ),
    "p3gm": (
        "P3GM, Adult",
        {
            "AUROC, 4 classifiers": (0.8214, True),
            "AUPRC, 4 classifiers": (0.5972, True),
            "2-way TVD": (0.3867, False),
        },
    ),
    "pearl": (
        "PEARL, balanced Adult",
        {"ROC, 10 classifiers": (0.721, True), "PRC, 10 classifiers": (0.618, True)},
    ),
}


def balanced(table: NamedTable) -> NamedTable:
    """As many rows of either class, drawn without replacement."""

    def even(rows: pd.DataFrame) -> pd.DataFrame:
        fewest = int(rows[table.target].value_counts().min())
        drawn = rows.groupby(table.target, group_keys=False).sample(fewest, random_state=0)
        return drawn.sample(frac=1.0, random_state=0).reset_index(drop=True)

    return replace(table, train=even(table.train), test=even(table.test))


def of_bench(table: NamedTable, synthetic: pd.DataFrame, seed: int) -> Figures:
    """Figures of `utility.py` under the papers' names, and the classifiers' mean accuracy."""
    bench = Bench(table.train, table.test, table.schema, table.target, False, seed)
    values = bench.judge(synthetic)
    features, (fake, test) = Features.fit(table.schema, synthetic, table.test)
    scores = tstr(Task(features, table.target), fake, test, seed=seed)
    return {
        "accuracy": float(np.mean([score["Accuracy"] for score in scores.values()])),
        "AUROC, 4 classifiers": values["auroc"],
        "AUPRC, 4 classifiers": values["auprc"],
        "2-way TVD": values["tvd_2way"],
        "Wasserstein score, plane": values["wscore_pca"],
        "Wasserstein score, whole": values["wscore_whole"],
    }


def of_hard_predictions(table: NamedTable, synthetic: pd.DataFrame, seed: int) -> Figures:
    """ROC and PRC of ten classifiers' labels, trained on 11,000 rows as in the paper."""
    features, (fake, test) = Features.fit(table.schema, synthetic.head(11_000), table.test)
    task, models = Task(features, table.target), ten_classifiers(seed)
    told = predict(task, fake, test, models=models, seed=seed).values()
    positive = [(one.truth == one.labels[-1], one.predicted == one.labels[-1]) for one in told]
    return {
        "ROC, 10 classifiers": float(np.mean([roc_auc_score(*pair) for pair in positive])),
        "PRC, 10 classifiers": float(
            np.mean([average_precision_score(*pair) for pair in positive])
        ),
    }


Judge = Callable[[NamedTable, pd.DataFrame, int], Figures]


def main() -> None:
    """Print a markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default=",".join(PAPERS))
    options = parser.parse_args()
    print("| system and table, ε = 1 | figure | paper | ours | real rows | met |\n|" + "---|" * 6)
    for model in options.only.split(","):
        title, published = PAPERS[model]
        adult = load("adult")
        table, judge = adult, of_bench
        if model == "pearl":
            table, judge = balanced(adult), of_hard_predictions
        ceiling = judge(table, table.train, 0)
        alone = () if model == "pearl" else ("count_share=0",)  # as the papers have them
        runs = []
        for seed in range(options.seeds):
            fit = fit_and_sample(model, table, epsilon=1.0, delta=DELTA, seed=seed, settings=alone)
            runs.append(judge(table, fit.frame, seed))
        for name, (paper, higher) in published.items():
            ours = float(np.mean([run[name] for run in runs]))
            met = "yes" if (ours >= paper) == higher or ours == paper else "**no**"
            print(f"| {title} | {name} | {paper:.3f} | {ours:.3f} | {ceiling[name]:.3f} | {met} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
