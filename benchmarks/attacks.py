"""How often attacks on a table accuse it wrongly, and how small a leak they see.

    python benchmarks/attacks.py [--runs 200] [--leaking 50] [--rows 5000] [--workers 1]
        [--models pearl scan_focus …] [--fits 10] [--epsilon 1] [--refit SECONDS] [--only WORDS]
        [--seed 0] [--json]

Each run draws a population, trains on nine tenths of `--rows` of it and keeps a tenth out, as the
product does. *Clean* tables are other rows of the same population, so that nothing leaks. *Leaking*
ones hold a share of rows of the table as they are. With `--models`, tables are made by a fit
on the sample table, as it is and with a tenth of the noise that its plan holds.

Both rules judge the same rows in the same run. *By itself*: every attack alone, a lead beyond a
normal 99 % interval, whatever the shares of the target's values on both sides; so it was until
attacks were tested together. *Together*: `core.quality.metrics.attacks.membership_test`. Intervals
are Clopper and Pearson's, 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.runs.execution.threads import limit_threads

limit_threads()

from scipy.stats import beta  # noqa: E402 - threads are set before numerical libraries
from sklearn.metrics import roc_auc_score  # noqa: E402

from benchmarks.generated_tables import REPORTED, TUNING, make  # noqa: E402
from core.audit.watched_table import altered  # noqa: E402
from core.encoding.codec import Codec  # noqa: E402
from core.encoding.holdout import split_rows  # noqa: E402
from core.encoding.layout.layout import Layout  # noqa: E402
from core.models.events import FitEvent, Signal  # noqa: E402
from core.models.layout_rows import laid_out  # noqa: E402
from core.models.planning import plan_fit  # noqa: E402
from core.models.registry import synthesizer  # noqa: E402
from core.models.saved_model import SavedModel  # noqa: E402
from core.models.step import FitContext  # noqa: E402
from core.privacy.guarded import PrivateTable  # noqa: E402
from core.privacy.plan import Budget, Plan, default_delta  # noqa: E402
from core.proposing.propose import infer_schema  # noqa: E402
from core.quality.aligned_tables import AlignedTable, Features  # noqa: E402
from core.quality.metrics.attacks.disclosure import (  # noqa: E402
    CLOSE,
    LEAST,
    LOOKED_UP,
    ROWS,
    attacks,
)
from core.quality.metrics.attacks.trained import (  # noqa: E402
    Refits,
    encoded,
    nearest,
)
from core.schema.schema import Schema  # noqa: E402
from core.services.sample_tables import SAMPLE_TARGET, sample_table  # noqa: E402

# seconds a run, and nothing in them that the others lack
WIDE = ("blocks200", "product200", "wide1000")
GENERATED = tuple(name for name in (*REPORTED, *TUNING) if name not in WIDE)
POPULATION = 100_000  # rows of the sample table that a run draws from
KEPT_OUT = 0.1
COPIED = (0.01, 0.02, 0.05, 0.1, 0.2)  # shares of the synthetic rows
TENTH = 0.1  # of the planned noise
Z = 2.575829  # two-sided 99 %
EXCHANGES, NEIGHBOURS = 200, 24  # of the former rule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """Tables of one population: learnt from, kept out, released.

    Attributes:
      release: rows of a model that is fitted to some real rows; by itself a model that copies.
    """

    train: pd.DataFrame
    holdout: pd.DataFrame
    synthetic: pd.DataFrame
    schema: Schema
    target: str
    release: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows.sample(len(rows))

    def judged(self, seconds: float = 0.0) -> dict[str, Any]:
        """Alarms by both rules, and every attack's lead; refits for so many seconds."""
        _, tables = Features.fit(self.schema, self.train, self.holdout, self.synthetic)
        rows = pd.concat([self.train, self.holdout], ignore_index=True)
        refits = Refits(lambda index: self.release(rows.iloc[index]), seconds) if seconds else None
        found = attacks(*tables, target=self.target, refits=refits)
        return {
            "itself": sorted(unmatched_alarms(*tables, target=self.target)),
            "together": sorted(attack.key for attack in found if attack.exposed),
            "edge": any(attack.p <= 0.05 for attack in found),
            "lead": {attack.key: attack.value - attack.baseline for attack in found},
            "auroc": next(attack.value for attack in found if attack.key == "membership"),
        }


@cache
def _population() -> pd.DataFrame:
    return sample_table(POPULATION)


def sample_trial(rows: int, seed: int, *, own: bool = False) -> Trial:
    """The sample table's population; `own` for the very rows and split of the product's sample."""
    rng = np.random.default_rng(seed)
    drawn = _population().iloc[rng.permutation(POPULATION)[: 2 * rows]].reset_index(drop=True)
    table, fresh = drawn[:rows], drawn[rows:]
    if own:
        table = sample_table()
    schema = infer_schema(table).model_copy(update={"target": SAMPLE_TARGET})
    train, holdout = split_rows(table, KEPT_OUT)
    return Trial(train, holdout, fresh[: len(train)], schema, SAMPLE_TARGET)


def generated_trial(rows: int, seed: int) -> Trial:
    """One of the generated tables, each in turn."""
    table = make(GENERATED[seed % len(GENERATED)], 2 * rows, seed)
    train, holdout = split_rows(table.train[:rows], KEPT_OUT)
    fresh = table.train[rows : rows + len(train)]
    return Trial(train, holdout, fresh, table.schema, table.target)


def leaking_trial(rows: int, seed: int, *, share: float) -> Trial:
    """The sample table's population; a share of the synthetic rows are rows of the table."""
    trial = sample_trial(rows, seed)
    count = round(share * len(trial.synthetic))
    copied = trial.train.sample(count, random_state=seed)
    mixed = pd.concat([copied, trial.synthetic[count:]], ignore_index=True)
    return Trial(trial.train, trial.holdout, mixed, trial.schema, trial.target)


def fitted_trial(
    rows: int, seed: int, *, model: str, epsilon: float, noise: float = 1.0, own: bool = False
) -> Trial:
    """The sample table's population, and rows of a model that was fitted with so much noise."""
    trial = sample_trial(rows, seed, own=own)
    layout, n = Layout(trial.schema.domain()), len(trial.train)
    budget = Budget(epsilon=epsilon, delta=default_delta(n))
    plan = plan_fit(synthesizer(model), layout.domain, n, budget)
    own = altered(plan, noise=noise)

    def drawn(rows: pd.DataFrame, plan: Plan) -> tuple[pd.DataFrame, SavedModel]:
        codes = Codec(layout.domain).encode(layout.to_model(rows))
        table = PrivateTable(codes, layout.domain, plan)
        with tempfile.TemporaryDirectory() as folder:
            context = FitContext(on_event=_go_on, folder=Path(folder), seed=seed)
            fitted = SavedModel.of(synthesizer(model).fit(table, plan, context))
        return laid_out(fitted, layout).sample(n, seed=seed), fitted

    synthetic, fitted = drawn(trial.train, own)
    usual = synthesizer(model).configure(plan.settings, private=True)
    quick = synthesizer(model).replica_settings(usual, fitted.base).model_dump()

    def release(rows: pd.DataFrame) -> pd.DataFrame:
        smaller = own.model_copy(update={"n": len(rows), "settings": quick})
        return drawn(rows.reset_index(drop=True), smaller)[0]

    return Trial(trial.train, trial.holdout, synthetic, trial.schema, trial.target, release)


def _go_on(_: FitEvent) -> Signal:
    return Signal.GO_ON


# -- the former rule ----------------------------------------------------------------------------


def unmatched_alarms(
    train: AlignedTable,
    holdout: AlignedTable,
    synthetic: AlignedTable,
    *,
    target: str,
    seed: int = 0,
) -> set[str]:
    """Attacks that lead by more than a normal 99 % interval, each by itself and without classes.

    Args:
      train, holdout, synthetic, target, seed: as for `attacks`.
    """
    rng = np.random.default_rng(seed)
    size = min(ROWS, train.n, holdout.n)
    members, strangers = train.sample(size, rng), holdout.sample(size, rng)
    near, looked_up = synthetic.sample(ROWS, rng), synthetic.sample(LOOKED_UP, rng)
    copied = [_copied(rows, synthetic) for rows in (train, strangers)]
    leads = {"copies": (copied[0] - copied[1], _difference_error(*copied, size))}
    sides = [encoded(rows) for rows in (near, members, strangers)]
    distances = [nearest(sides[0], real, 2)[0] for real in sides[1:]]
    errors = _exchanged_errors(sides[0], sides[1], sides[2])
    shares = (_below(*(d[:, 0] for d in distances)), _below(*map(_distance_ratio, distances)))
    for key, share, error in zip(("closest", "ratio"), shares, errors, strict=True):
        leads[key] = (float(share.mean()) - 0.5, error)
    released = encoded(looked_up)
    closeness = [-nearest(real, released)[0][:, 0] for real in sides[1:]]
    auroc = float(roc_auc_score(np.repeat([1, 0], size), np.concatenate(closeness)))
    leads["membership"] = (auroc - 0.5, _auroc_error(auroc, size))
    known = [t.take(np.flatnonzero(~t.missing(target))) for t in (members, strangers, looked_up)]
    if min(known[0].n, known[1].n) >= LEAST:
        guessed = [_share_guessed(rows, known[2], target) for rows in known[:2]]
        error = _difference_error(*guessed, min(known[0].n, known[1].n))
        leads["attribute"] = (guessed[0] - guessed[1], error)
    return {key for key, (lead, error) in leads.items() if lead > Z * error}


def _copied(rows: AlignedTable, others: AlignedTable) -> float:
    hashes, released = (
        pd.util.hash_pandas_object(pd.DataFrame(table.values), index=False)
        for table in (rows, others)
    )
    return float(hashes.isin(released).mean())


def _share_guessed(people: AlignedTable, synthetic: AlignedTable, target: str) -> float:
    known, released = (encoded(table.without(target)) for table in (people, synthetic))
    guess = synthetic.values[target][nearest(known, released)[1][:, 0]]
    truth, feature = people.values[target], people.features[target]
    if not feature.numeric:
        return float((guess == truth).mean())
    gap = np.abs(guess.astype(np.float64) - truth.astype(np.float64))
    return float((gap <= CLOSE * (feature.high - feature.low)).mean())


def _below(a: Floats, b: Floats) -> Floats:
    return np.asarray((a < b) + 0.5 * (a == b), dtype=np.float64)


def _distance_ratio(distances: Floats) -> Floats:
    closest, second = distances[:, 0], distances[:, 1]
    return np.asarray(np.where(second > 0.0, closest / np.maximum(second, 1e-300), 1.0))


def _difference_error(a: float, b: float, n: int) -> float:
    return math.sqrt(sum(max(share * (1.0 - share), 1.0 / n) / n for share in (a, b)))


def _auroc_error(auroc: float, n: int) -> float:
    """Hanley and McNeil, 1982."""
    q1, q2 = auroc / (2.0 - auroc), 2.0 * auroc**2 / (1.0 + auroc)
    variance = auroc * (1.0 - auroc) + (n - 1) * (q1 + q2 - 2.0 * auroc**2)
    return math.sqrt(max(variance, 0.0)) / n


def _exchanged_errors(synthetic: Floats, train: Floats, holdout: Floats) -> tuple[float, float]:
    """Standard errors of both shares over draws of who was learnt from."""
    real = np.concatenate([train, holdout])
    distance, index = nearest(synthetic, real, NEIGHBOURS)
    rng = np.random.default_rng(0)
    shares = np.empty((EXCHANGES, 2))
    for draw in shares:
        learnt = rng.permutation(len(real)) < len(train)
        sides = [_first_two(distance, side) for side in (learnt[index], ~learnt[index])]
        draw[0] = _below(*(two[:, 0] for two in sides)).mean()
        draw[1] = _below(*(_distance_ratio(two) for two in sides)).mean()
    errors = np.sqrt(((shares - 0.5) ** 2).mean(axis=0))
    least = 0.5 / len(synthetic)
    return max(float(errors[0]), least), max(float(errors[1]), least)


def _first_two(distance: Floats, chosen: NDArray[np.bool_]) -> Floats:
    chosen, rows = chosen.copy(), np.arange(len(distance))
    chosen[:, -1] = True
    first = chosen.argmax(axis=1)
    chosen[rows, first] = False
    chosen[:, -1] = True
    return np.stack([distance[rows, first], distance[rows, chosen.argmax(axis=1)]], axis=1)


# -- figures ------------------------------------------------------------------------------------


def interval(count: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share."""
    low = float(beta.ppf(0.025, count, of - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, of - count)) if count < of else 1.0
    return low, high


def measured(draw: Callable[[int], Trial], seconds: float, seed: int) -> dict[str, Any]:
    """One run."""
    return draw(seed).judged(seconds)


def trials(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[int], Trial], int]]:
    """What is tried: a name, what draws it, how often."""
    rows = options.rows
    yield "clean, generated tables", partial(generated_trial, rows), options.runs
    yield "clean, sample table", partial(sample_trial, rows), options.runs
    yield "clean, the sample's own split", partial(sample_trial, rows, own=True), options.runs
    for share in COPIED:
        draw = partial(leaking_trial, rows, share=share)
        yield f"leaking, {share:.0%} copied", draw, options.leaking
    for model in options.models:
        fitted = partial(fitted_trial, rows, model=model, epsilon=options.epsilon)
        name = f"{model}, ε = {options.epsilon:g}"
        yield name, fitted, options.fits
        yield f"{name}, the sample's own split", partial(fitted, own=True), options.fits
        yield f"{name}, a tenth of the noise", partial(fitted, noise=TENTH), options.fits


def row_of(name: str, found: list[dict[str, Any]]) -> str:
    """A line of the table."""
    cells = [name, str(len(found))]
    for rule in ("itself", "together"):
        count = sum(bool(one[rule]) for one in found)
        low, high = interval(count, len(found))
        cells.append(f"{count} ({low:.1%}–{high:.1%})")
    cells.append(str(sum(one["edge"] and not one["together"] for one in found)))
    for key in ("attribute", "membership", "counts", "refitted"):
        leads = np.array([one["lead"].get(key, np.nan) for one in found])
        error = leads.std(ddof=1) / math.sqrt(len(leads)) if len(leads) > 1 else math.nan
        cells.append(f"{leads.mean():+.4f} ± {error:.4f}")
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Draw, attack, print. Exit code 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="clean ones of each kind")
    parser.add_argument("--leaking", type=int, default=50, help="of each share of copied rows")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--fits", type=int, default=10, help="of each model and noise")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--refit", type=float, default=0.0, help="seconds of the refitting attack")
    parser.add_argument("--only", default="", help="tables whose name holds this")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; the next one's + 1")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    every = {}
    heads = ("tables", "runs", "alarms, each by itself", "alarms, together", "at the edge",
             "lead of guessing the target", "AUROC of membership less ½", "by counts",
             "by refitting")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)
    with ProcessPoolExecutor(options.workers) as pool:
        for name, draw, runs in trials(options):
            if not runs or options.only not in name:
                continue
            seeds = range(options.seed, options.seed + runs)
            every[name] = list(pool.map(partial(measured, draw, options.refit), seeds))
            print(row_of(name, every[name]), flush=True)
    if options.json:
        print(json.dumps(every))
    return 0


if __name__ == "__main__":
    sys.exit(main())
