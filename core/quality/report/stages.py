"""Stages of a report that compare the tables themselves: columns, pairs, triples, shapes."""

from __future__ import annotations

import numpy as np

from core.quality.metrics.association import associations, mean_difference
from core.quality.metrics.bands import half_width
from core.quality.metrics.columns import column_pictures
from core.quality.metrics.components import density, pca_marginals
from core.quality.metrics.joint import nist_score, three_way
from core.quality.metrics.kernel import discrepancy
from core.quality.metrics.marginals import dimension_probability, one_way, pair_mean, two_way
from core.quality.metrics.ranges import range_error
from core.quality.metrics.registry import metric
from core.quality.metrics.transport import axes_of, sliced_score, wasserstein_scores
from core.quality.report.builder import Build, capped, mean_of
from core.quality.report.types import AssociationTable, PairTable, Projection

__all__ = ["before", "columns", "joint", "pairs", "plane", "shapes", "strengths"]

PAIR_WORK = 100_000_000  # rows × pairs: a few seconds of counting
PAIR_ROWS_AT_LEAST = 20_000
JOINT_ROWS = 60_000  # rows a side for triples and boxes
ASSOCIATION_ROWS = 50_000  # rows a side
POINTS = 1_500  # dots drawn a side


def columns(build: Build) -> None:
    """Every column by itself, and the pictures that come first."""
    build.observe("Comparing single columns", 0.05)
    features, real, synthetic = build.features, build.real, build.synthetic
    build.parts["columns"] = column_pictures(features, real, synthetic)
    build.parts["dimension_probability"] = dimension_probability(features, real, synthetic)
    found = one_way(features, real, synthetic)
    ceiling = one_way(features, real, build.again)
    band = half_width(
        lambda a, b: mean_of(list(one_way(features, a, b).values())),
        real,
        synthetic,
        seed=build.seed,
    )
    build.scores.append(
        metric("tvd_1way").score(
            mean_of(list(found.values())),
            half_width=band,
            ceiling=mean_of(list(ceiling.values())),
        )
    )


def pairs(build: Build) -> None:
    """Every pair of columns, as a matrix of distances."""
    build.observe("Comparing pairs of columns", 0.1)
    m = len(build.features)
    rows = max(PAIR_ROWS_AT_LEAST, PAIR_WORK // max(1, m * (m - 1) // 2))
    rng = build.rng(2)
    real, synthetic, ceiling = (
        capped(cells, rows=rows, rng=rng) for cells in (build.real, build.synthetic, build.again)
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


def joint(build: Build) -> None:
    """Three columns at a time, and rows counted in boxes."""
    build.observe("Comparing three columns at a time", 0.14)
    features, rng = build.features, build.rng(7)
    real, synthetic, again = (
        capped(cells, rows=JOINT_ROWS, rng=rng)
        for cells in (build.real, build.synthetic, build.again)
    )
    found = three_way(features, real, synthetic, seed=build.seed)
    best = three_way(features, real, again, seed=build.seed)
    if found is not None and best is not None:
        build.scores += [
            metric("tvd_3way").score(found, ceiling=best),
            metric("nist").score(nist_score(found), ceiling=nist_score(best)),
        ]
    build.observe("Counting rows in boxes", 0.16)
    build.scores.append(
        metric("range_error").score(
            range_error(features, real, synthetic, seed=build.seed),
            ceiling=range_error(features, real, again, seed=build.seed),
        )
    )


def strengths(build: Build) -> None:
    """How strongly columns belong together, whatever their kinds."""
    build.observe("Comparing how columns belong together", 0.18)
    features, rng = build.features, build.rng(6)
    real, synthetic, again = (
        associations(features, capped(cells, rows=ASSOCIATION_ROWS, rng=rng))
        for cells in (build.real, build.synthetic, build.again)
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


def plane(build: Build) -> None:
    """The tables on their strongest directions: dots, densities and their distance."""
    build.observe("Projecting on principal axes", 0.2)
    features, real, synthetic = build.features, build.real, build.synthetic
    axes = axes_of(features, real, seed=build.seed)
    rng = build.rng(3)
    named = {"real": real, "synthetic": synthetic, "before": build.before}
    dots = {
        name: np.round(
            axes.project(features.encode(capped(cells, rows=POINTS, rng=rng))), 4
        ).tolist()
        for name, cells in named.items()
        if cells is not None
    }
    explained = (float(axes.explained[0]), float(axes.explained[1]))
    build.parts["pca"] = Projection(**dots, explained=explained)
    build.parts["density"] = density(features, real, synthetic, seed=build.seed)
    one, two, three = pca_marginals(features, real, synthetic, seed=build.seed)
    build.scores.append(
        metric("pca_3way").score(
            three,
            ceiling=pca_marginals(features, real, build.again, seed=build.seed)[-1],
            note=f"On the first axis alone {one:.3f}, on two {two:.3f}.",
        )
    )


def shapes(build: Build) -> None:
    """How far rows must be moved, by exact transport of samples and by slices of all rows."""
    build.observe("Measuring Wasserstein scores", 0.23)
    features, real, synthetic, seed = build.features, build.real, build.synthetic, build.seed
    again = build.again
    found = wasserstein_scores(features, real, synthetic, seed=seed)
    best = wasserstein_scores(features, real, again, repeats=1, seed=seed)
    build.parts["pca"] = build.parts["pca"].model_copy(
        update={"wscore": found.plane, "spread": found.plane_spread}
    )
    build.scores += [
        metric("wscore_pca").score(found.plane, spread=found.plane_spread, ceiling=best.plane),
        metric("wscore_whole").score(found.whole, spread=found.whole_spread, ceiling=best.whole),
    ]
    build.observe("Looking from many sides", 0.3)
    score, spread = sliced_score(features, real, synthetic, seed=seed)
    ceiling, _ = sliced_score(features, real, again, seed=seed)
    build.scores.append(metric("sliced").score(score, spread=spread, ceiling=ceiling))
    build.observe("Looking for any difference at all", 0.33)
    squared, p = discrepancy(features, real, synthetic, seed=seed)
    build.scores.append(
        metric("mmd").score(
            squared,
            ceiling=discrepancy(features, real, again, seed=seed)[0],
            note=f"Two samples of one table differ as much with probability {p:.3f}.",
        )
    )


def before(build: Build) -> None:
    """The same figures before boosting, put beside those after it."""
    if build.before is None:
        return
    build.observe("Comparing with the table before boosting", 0.38)
    features, earlier = build.features, build.before
    real = capped(build.real, rows=PAIR_ROWS_AT_LEAST, rng=build.rng(5))
    moved = wasserstein_scores(features, real, earlier, repeats=1, seed=build.seed)
    found = {
        "tvd_1way": mean_of(list(one_way(features, real, earlier).values())),
        "tvd_2way": pair_mean(two_way(features, real, earlier)),
        "wscore_pca": moved.plane,
        "wscore_whole": moved.whole,
    }
    build.scores = [
        score.model_copy(update={"before": found.get(score.key)}) for score in build.scores
    ]
