"""Utility of synthetic tables, side by side, by the same protocol as the product's Review page.

    python benchmarks/utility.py --real train.csv --test test.csv --synthetic a.csv b.csv \
        --target income [--sanity] [--fast] [--json] [--seed 0]

One row per file. `--sanity` adds a bootstrap of the real table (what perfect looks like) and an
independent shuffle of its columns (right columns, no dependence). Numeric dtypes count as numbers,
everything else as categories; "?" and empty cells are missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.quality.aligned_tables import AlignedTable, Features
from core.quality.metrics.estimators import LOGISTIC, logistic
from core.quality.metrics.marginals import one_way, pair_mean, three_way, two_way
from core.quality.metrics.prediction import dimension_prediction, prediction_gap
from core.quality.metrics.propensity import TREE_ROWS, propensity, tree_auroc
from core.quality.metrics.train_synthetic_test_real import Task, mean_score, tstr
from core.quality.metrics.transport import wasserstein_scores
from core.schema.column import Column, Kind
from core.schema.schema import Schema

TREES = "Histogram boosting"  # the boosted trees among the four classifiers
HEADS = {
    "auroc": "AUROC (4)",
    "auprc": "AUPRC (4)",
    "accuracy": "accuracy (4)",
    "auroc_logistic": "AUROC log.",
    "auroc_trees": "AUROC trees",
    "tvd_1way": "1-way TVD",
    "tvd_2way": "2-way TVD",
    "tvd_3way": "3-way TVD",
    "wscore_pca": "Wscore PCA-2",
    "wscore_whole": "Wscore whole",
    "prediction_gap": "DWP gap",
    "pmse": "pMSE",
    "c2st": "C2ST trees",
    "copies": "copies",
    "seconds": "s",
}


@dataclass(frozen=True)
class Bench:
    """The real tables and how to judge a synthetic one against them."""

    real: pd.DataFrame
    test: pd.DataFrame
    schema: Schema
    target: str
    fast: bool
    seed: int
    every_column: bool = True  # whether each column is predicted from the others: minutes if wide

    def judge(self, synthetic: pd.DataFrame) -> dict[str, float | None]:
        """Figures by key of `HEADS`; None where a figure cannot be computed."""
        start = time.perf_counter()
        features, (real, fake, test) = Features.fit(self.schema, self.real, synthetic, self.test)
        task = Task(features, self.target)
        models = {LOGISTIC: logistic(self.seed)} if self.fast else None
        scores = tstr(task, fake, test, models=models, seed=self.seed)
        single = one_way(real, fake)
        out: dict[str, float | None] = {
            "auroc_logistic": scores.get(LOGISTIC, {}).get("AUROC"),
            "tvd_1way": float(np.mean(list(single.values()))),
            "tvd_2way": pair_mean(two_way(real, fake)),
        }
        if not self.fast:
            moved = wasserstein_scores(real, fake, seed=self.seed)
            out |= {
                "auroc": mean_score(scores, "AUROC"),
                "auprc": mean_score(scores, "AUPRC"),
                "accuracy": mean_score(scores, "Accuracy"),
                "wscore_pca": moved.plane,
                "wscore_whole": moved.whole,
                "prediction_gap": self._prediction_gap(real, fake, test),
                "auroc_trees": scores.get(TREES, {}).get("AUROC"),
                "tvd_3way": three_way(real, fake, seed=self.seed),
                "pmse": propensity(real, fake)[0],
                "c2st": self._told_apart(real, fake),
                "copies": exact_copies(self.real, synthetic),
            }
        return out | {"seconds": time.perf_counter() - start}

    def _prediction_gap(self, *tables: AlignedTable) -> float | None:
        """Of predicting each column from the others; None for a table too wide for that."""
        if not self.every_column:
            return None
        return prediction_gap(dimension_prediction(*tables, seed=self.seed), every=True)

    def _told_apart(self, real: AlignedTable, fake: AlignedTable) -> float:
        """AUROC of boosted trees that tell real from synthetic rows, on rows they did not see."""
        rng = np.random.default_rng(self.seed)
        real, fake = (table.sample(TREE_ROWS, rng) for table in (real, fake))
        return tree_auroc(real, fake, seed=self.seed)

    def ceiling(self) -> dict[str, float | None]:
        """Train on real, test on real: the AUROC and AUPRC that no synthetic table should beat."""
        features, (real, test) = Features.fit(self.schema, self.real, self.test)
        models = {LOGISTIC: logistic(self.seed)} if self.fast else None
        scores = tstr(Task(features, self.target), real, test, models=models, seed=self.seed)
        out = {"auroc_logistic": scores.get(LOGISTIC, {}).get("AUROC")}
        if not self.fast:
            names = {"auroc": "AUROC", "auprc": "AUPRC", "accuracy": "Accuracy"}
            out |= {key: mean_score(scores, name) for key, name in names.items()}
            out["auroc_trees"] = scores.get(TREES, {}).get("AUROC")
        return out


def exact_copies(real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Share of synthetic rows that equal a real row in every column."""
    keys = [_row_keys(frame[list(real.columns)]) for frame in (real, synthetic)]
    return float(np.isin(keys[1], keys[0]).mean())


def _row_keys(frame: pd.DataFrame) -> np.ndarray:
    as_read = {
        name: column.astype("float64") if pd.api.types.is_numeric_dtype(column) else column
        for name, column in frame.items()
    }
    return pd.util.hash_pandas_object(pd.DataFrame(as_read), index=False).to_numpy()


def read(path: Path) -> pd.DataFrame:
    """A CSV or Parquet table with "?" and empty cells missing."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, na_values=["?"], skipinitialspace=True)


def schema_of(real: pd.DataFrame, target: str) -> Schema:
    """Numeric dtypes are numbers, the target and everything else are categories."""
    columns = []
    for name in real.columns:
        number = pd.api.types.is_numeric_dtype(real[name]) and name != target
        number = number and not pd.api.types.is_bool_dtype(real[name])
        kind = Kind.NUMBER if number else Kind.CATEGORY
        columns.append(Column(name=str(name), kind=kind, dtype=str(real[name].dtype)))
    return Schema(columns=tuple(columns), target=target)


def sanity(real: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """A bootstrap of the real table and an independent shuffle of its columns."""
    rng = np.random.default_rng(seed)
    shuffled = {name: real[name].to_numpy()[rng.permutation(len(real))] for name in real}
    return {
        "(bootstrap of real)": real.sample(len(real), replace=True, random_state=seed).reset_index(
            drop=True
        ),
        "(columns shuffled)": pd.DataFrame(shuffled),
    }


def show(rows: dict[str, dict[str, float | None]]) -> str:
    """The figures as an aligned text table."""
    heads = [key for key in HEADS if any(key in row for row in rows.values())]
    width = max(len(name) for name in rows)
    lines = [" " * width + "".join(f"{HEADS[key]:>14}" for key in heads)]
    for name, row in rows.items():
        cells = (row.get(key) for key in heads)
        texts = (
            "–" if x is None else f"{x:.1f}" if k == "seconds" else f"{x:.4f}"
            for k, x in zip(heads, cells, strict=True)
        )
        lines.append(f"{name:<{width}}" + "".join(f"{text:>14}" for text in texts))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Read, judge, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--real", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--synthetic", type=Path, nargs="*", default=[])
    parser.add_argument("--target", required=True)
    parser.add_argument("--sanity", action="store_true")
    parser.add_argument("--fast", action="store_true", help="logistic AUROC and TVD only")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    real, test = read(options.real), read(options.test)
    schema = schema_of(real, options.target)
    bench = Bench(real, test, schema, options.target, options.fast, options.seed)
    rows: dict[str, dict[str, float | None]] = {"real (ceiling)": bench.ceiling()}
    if options.sanity:
        for name, frame in sanity(real, options.seed).items():
            rows[name] = bench.judge(frame)
    for path in options.synthetic:
        rows[str(path)] = bench.judge(read(path))
    print(show(rows))
    if options.json:
        print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
