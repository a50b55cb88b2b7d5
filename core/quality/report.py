"""build_report: everything the Review page shows, measured in stages and saved after each.

The report reopens the real table without noise, for eyes inside the organisation. Heavy measures
work on subsamples of fixed size, so that time and memory stay bounded whatever the table's length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from core.quality.association import associations, mean_difference
from core.quality.columns import column_pictures
from core.quality.disclosure import attacks
from core.quality.marginals import dimension_probability, one_way, pair_mean, two_way
from core.quality.metric import metric
from core.quality.prediction import dimension_prediction, prediction_gap
from core.quality.prepare import Cells, Features, sample_rows
from core.quality.protection import protection_checks
from core.quality.transport import axes_of, wasserstein_scores
from core.quality.types import AssociationTable, PairTable, Projection, Report, Score
from core.quality.utility import Task, mean_score, pmse, tstr, utility_rows
from core.table.schema import Schema

__all__ = ["build_report"]

Observe = Callable[[str, float], None]
Save = Callable[[Report], None]

TABLE_ROWS = 500_000  # rows a side for single columns and pairs
PAIR_WORK = 100_000_000  # rows × pairs: a few seconds of counting
PAIR_ROWS_AT_LEAST = 20_000
ASSOCIATION_ROWS = 50_000  # rows a side
LEARN_ROWS = 40_000  # rows to learn the target from, and to tell the tables apart with
TEST_ROWS = 20_000
POINTS = 1_500  # dots drawn a side
LEAST_ROWS = 8  # fewer real rows than this cannot be split for learning and testing
TEST_EVERY = 4


@dataclass
class _Build:
    """A report under construction: the tables read once, and what is measured so far."""

    features: Features
    real: Cells
    synthetic: Cells
    train: Cells
    test: Cells
    target: str | None
    seed: int
    observe: Observe
    save: Save | None
    parts: dict[str, Any]
    before: Cells | None = None
    holdout: Cells | None = None
    scores: list[Score] = field(default_factory=list)

    def publish(self, *, complete: bool = False) -> Report:
        """The report so far, saved."""
        report = Report(**self.parts, scores=list(self.scores), complete=complete)
        if self.save is not None:
            self.save(report)
        return report

    def rng(self, purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose, so that stages do not disturb each other."""
        return np.random.default_rng((self.seed, purpose))


def build_report(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None = None,
    observe: Observe | None = None,
    save: Save | None = None,
    seed: int = 0,
    alpha: float = 0.05,
    before: pd.DataFrame | None = None,
) -> Report:
    """Compare a synthetic table with the real one.

    Args:
      real: the table the synthesizer learnt from, ≥ 1 row.
      synthetic: ≥ 1 row; a column it lacks counts as missing throughout.
      schema: says which columns are compared (identifiers and text are left out) and the target.
      test: real rows the synthesizer never saw. Without it every fourth real row is kept for
        testing, and the report says so.
      observe: told what is being measured and the fraction done, in [0, 1].
      save: called with the report so far after each stage; single columns come first.
      seed: of subsamples and learners.
      alpha: level of the tests of tagged columns, in (0, 1/2).
      before: what the synthesizer would have released before boosting, to stand beside.

    Raises:
      ValueError: a table has no rows, or no column can be compared.
    """
    if not len(real) or not len(synthetic):
        raise ValueError("A report needs at least one real and one synthetic row.")
    build = _open(
        real, synthetic, schema, test=test, before=before, seed=seed, observe=observe, save=save
    )
    if not len(build.features):
        raise ValueError("No column can be compared: every one is dropped, text or an identifier.")
    for stage in (_columns, _pairs, _associations, _transport, _disclosure, _utility, _prediction):
        stage(build)
        if stage is _transport and build.before is not None:
            _before(build, build.before)
        if stage is _columns and schema.sensitive:
            build.observe("Testing the tagged columns", 0.08)
            checks = protection_checks(real, synthetic, schema, alpha=alpha, seed=seed)
            build.parts["protection"] = checks
        if stage is not _prediction:
            build.publish()
    build.observe("Report finished", 1.0)
    return build.publish(complete=True)


def _open(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None,
    before: pd.DataFrame | None,
    seed: int,
    observe: Observe | None,
    save: Save | None,
) -> _Build:
    watch = observe or (lambda _text, _fraction: None)
    watch("Reading both tables", 0.0)
    rng = np.random.default_rng(seed)
    parts: dict[str, Any] = {
        "rows_real": len(real),
        "rows_synthetic": len(synthetic),
        "target": schema.target if schema.target and schema[schema.target].modelled else None,
        "notes": [],
    }
    if max(len(real), len(synthetic)) > TABLE_ROWS:
        parts["notes"].append(f"Measured on random samples of at most {TABLE_ROWS:,} rows a side.")
    most = {"real": TABLE_ROWS, "synthetic": TABLE_ROWS, "test": TEST_ROWS}
    given = {"real": real, "synthetic": synthetic, "test": test, "before": before}
    frames = {
        name: frame.iloc[sample_rows(len(frame), most.get(name, PAIR_ROWS_AT_LEAST), rng)]
        for name, frame in given.items()
        if frame is not None and len(frame)
    }
    features, found = Features.fit(schema, *frames.values())
    cells = dict(zip(frames, found, strict=True))
    if "test" in cells:
        train, held_out = cells["real"], cells["test"]
    else:
        train, held_out = _split(cells["real"])
        parts["notes"].append(
            "No test table was given: every fourth real row was used for testing. The synthetic "
            "table was learnt from those rows too, so one that copies rows looks too good here."
        )
    return _Build(
        features,
        cells["real"],
        cells["synthetic"],
        train,
        held_out,
        parts["target"] if parts["target"] in features.names else None,
        seed,
        watch,
        save,
        parts,
        cells.get("before"),
        cells.get("test"),
    )


def _split(real: Cells) -> tuple[Cells, Cells]:
    """Three quarters to learn from and every fourth row to test on; nothing to test when tiny."""
    rows = np.arange(real.n)
    last = rows % TEST_EVERY == TEST_EVERY - 1
    if real.n < LEAST_ROWS:
        return real, real.take(rows[:0])
    return real.take(rows[~last]), real.take(rows[last])


def _resample(build: _Build) -> Cells:
    """As many real rows as there are synthetic ones, drawn with replacement: the ceiling."""
    return build.real.take(build.rng(1).integers(build.real.n, size=build.synthetic.n))


def _columns(build: _Build) -> None:
    build.observe("Comparing single columns", 0.05)
    features, real, synthetic = build.features, build.real, build.synthetic
    build.parts["columns"] = column_pictures(features, real, synthetic)
    build.parts["dimension_probability"] = dimension_probability(features, real, synthetic)
    found = one_way(features, real, synthetic)
    ceiling = one_way(features, real, _resample(build))
    build.scores.append(
        metric("tvd_1way").score(_mean(list(found.values())), ceiling=_mean(list(ceiling.values())))
    )


def _pairs(build: _Build) -> None:
    build.observe("Comparing pairs of columns", 0.1)
    m = len(build.features)
    rows = max(PAIR_ROWS_AT_LEAST, PAIR_WORK // max(1, m * (m - 1) // 2))
    rng = build.rng(2)
    real, synthetic, ceiling = (
        cells.take(sample_rows(cells.n, rows, rng))
        for cells in (build.real, build.synthetic, _resample(build))
    )
    matrix = two_way(build.features, real, synthetic)
    names = list(build.features.names)
    build.parts["pairs"] = PairTable(columns=names, tvd=np.round(matrix, 6).tolist())
    build.scores.append(
        metric("tvd_2way").score(
            pair_mean(matrix),
            ceiling=pair_mean(two_way(build.features, real, ceiling)),
            note="" if m > 1 else "There is one column only: this is its own distance.",
        )
    )


def _associations(build: _Build) -> None:
    build.observe("Comparing how columns belong together", 0.16)
    features, rng = build.features, build.rng(6)
    real, synthetic, again = (
        associations(features, _capped(cells, rows=ASSOCIATION_ROWS, rng=rng))
        for cells in (build.real, build.synthetic, _resample(build))
    )
    build.parts["associations"] = AssociationTable(
        columns=list(features.names),
        real=np.round(real, 4).tolist(),
        synthetic=np.round(synthetic, 4).tolist(),
    )
    if len(features) > 1:
        build.scores.append(
            metric("association_gap").score(
                mean_difference(real, synthetic), ceiling=mean_difference(real, again)
            )
        )


def _disclosure(build: _Build) -> None:
    if build.holdout is None:
        build.parts["notes"].append(
            "Whether anyone is exposed was not tested: that needs real rows that the synthesizer "
            "never saw, and no such table was given."
        )
        return
    build.observe("Trying to find people of the table", 0.36)
    build.parts["attacks"] = attacks(
        build.features,
        build.real,
        build.holdout,
        build.synthetic,
        target=build.target,
        seed=build.seed,
    )


def _transport(build: _Build) -> None:
    build.observe("Projecting on principal axes", 0.2)
    features, real, synthetic = build.features, build.real, build.synthetic
    axes = axes_of(features, real, seed=build.seed)
    rng = build.rng(3)
    named = {"real": real, "synthetic": synthetic, "before": build.before}
    dots = {
        name: np.round(
            axes.project(features.encode(cells.take(sample_rows(cells.n, POINTS, rng)))), 4
        ).tolist()
        for name, cells in named.items()
        if cells is not None
    }
    view = Projection(
        **dots,
        explained=(float(axes.explained[0]), float(axes.explained[1])),
    )
    build.parts["pca"] = view
    build.publish()  # the picture need not wait for the slow exact transport
    build.observe("Measuring Wasserstein scores", 0.25)
    found = wasserstein_scores(features, real, synthetic, seed=build.seed)
    best = wasserstein_scores(features, real, _resample(build), repeats=1, seed=build.seed)
    build.parts["pca"] = view.model_copy(
        update={"wscore": found.plane, "spread": found.plane_spread}
    )
    build.scores += [
        metric("wscore_pca").score(found.plane, spread=found.plane_spread, ceiling=best.plane),
        metric("wscore_whole").score(found.whole, spread=found.whole_spread, ceiling=best.whole),
    ]


def _before(build: _Build, before: Cells) -> None:
    """The same figures before boosting, put beside those after it."""
    build.observe("Comparing with the table before boosting", 0.38)
    features = build.features
    real = build.real.take(sample_rows(build.real.n, PAIR_ROWS_AT_LEAST, build.rng(5)))
    moved = wasserstein_scores(features, real, before, repeats=1, seed=build.seed)
    found = {
        "tvd_1way": _mean(list(one_way(features, real, before).values())),
        "tvd_2way": pair_mean(two_way(features, real, before)),
        "wscore_pca": moved.plane,
        "wscore_whole": moved.whole,
    }
    build.scores = [
        score.model_copy(update={"before": found.get(score.key)}) for score in build.scores
    ]


def _utility(build: _Build) -> None:
    rng = build.rng(4)
    learn = partial(_capped, rows=LEARN_ROWS, rng=rng)
    build.observe("Telling real from synthetic rows", 0.4)
    distance, _ = pmse(build.features, learn(build.real), learn(build.synthetic))
    build.scores.append(metric("pmse").score(distance))
    if build.target is None:
        return
    task = Task(build.features, build.target)
    test = _capped(build.test, rows=TEST_ROWS, rng=rng)
    build.observe(f"Learning {build.target} from real rows", 0.45)
    real = tstr(task, learn(build.train), test, seed=build.seed)
    build.observe(f"Learning {build.target} from synthetic rows", 0.58)
    synthetic = tstr(task, learn(build.synthetic), test, seed=build.seed)
    earlier = {}
    if build.before is not None:
        build.observe(f"Learning {build.target} from rows before boosting", 0.66)
        earlier = tstr(task, learn(build.before), test, seed=build.seed)
    both = [name for name in real if name in synthetic]
    real = {name: real[name] for name in both}
    build.parts["utility"] = utility_rows(task, real=real, synthetic=synthetic, test=test)
    note = "" if both else "The real test rows hold one value of the target only."
    names = {"tstr_r2": "R²"} if task.numeric else {"tstr_auroc": "AUROC", "tstr_auprc": "AUPRC"}
    for key, name in names.items():
        value, ceiling = mean_score(synthetic, name), mean_score(real, name)
        score = metric(key).score(value, ceiling=ceiling, note=note)
        build.scores.append(score.model_copy(update={"before": mean_score(earlier, name)}))


def _prediction(build: _Build) -> None:
    build.observe("Predicting each column from the others", 0.7)
    points = dimension_prediction(
        build.features,
        build.train,
        build.synthetic,
        build.test,
        seed=build.seed,
        observe=lambda part: build.observe(
            "Predicting each column from the others", 0.7 + 0.3 * part
        ),
    )
    gap = prediction_gap(points)
    note = (
        "" if gap is not None else "No column can be predicted from the others, even by real rows."
    )
    build.parts["dimension_prediction"] = points
    build.scores.append(metric("prediction_gap").score(gap, note=note))


def _capped(cells: Cells, *, rows: int, rng: np.random.Generator) -> Cells:
    return cells.take(sample_rows(cells.n, rows, rng))


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
