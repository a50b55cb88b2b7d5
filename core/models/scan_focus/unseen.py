"""Dependence of columns that the releases leave possible, beyond what a mixture has learnt.

Noise is shrunk away and dependence with it, so replicas whose truth is the mixture would lose too
little. How far released counts lie from the mixture says how much may be hidden, as noise's part of
that is known. Truths of replicas hold as much of it more. Post-processing of releases.

A pair is looked at through scores of both columns: each label against all more frequent ones, and
three slow waves along numbers. Coefficients are like correlations then, of one size for all labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.models.steps.counting.counts import PairTarget
from core.models.steps.counting.releases import Releases
from core.models.steps.training.column_bins import one_of_each

Floats = NDArray[np.float64]
WAVES, LABELS = 3, 16  # scores of a column, at most
MOST_SCORES = 1500  # of all columns; the matrices have its square
SWEEPS, MOST_LOG_ODDS = 3, 4.0
LEAST_VARIANCE = 1e-18


def unseen(
    known: Releases, counted: Sequence[PairTarget], mixture: tuple[Tensor, Tensor]
) -> dict[str, Tensor]:
    """Tensors that `with_unseen` reads; none without noise, of windows or of too many columns.

    A label's coefficients with another column are normal with one variance (pairs are denoised
    label by label): what lies beyond noise, and one standard deviation of chance more. Stored are
    mean and deviation of each coefficient given its released value, less the chance of drawing rows
    in the deviation, as released counts hold that already.

    Args:
      mixture: weights [components] and shares [components, cells].
    """
    share, shares = (one.cpu().double() for one in mixture)
    sizes = [scale.size for scale in known.scales]
    most = min(LABELS, MOST_SCORES // len(sizes))
    silent = not known.plan.budget.private or known.scanned is None
    if silent or not most or known.codec.domain.roles:
        return {}
    parts = torch.split(shares, sizes, dim=1)
    whole = [(share @ part).numpy() for part in parts]
    each = [
        _scores(one, scale.line, most, known.table.n)
        for one, scale in zip(whole, known.scales, strict=True)
    ]
    filters = [np.linalg.pinv(one * s[:, None]) for one, s in zip(each, whole, strict=True)]
    ends = np.cumsum([0, *(scores.shape[1] for scores in each)])
    mean, deviation = np.zeros((2, ends[-1], ends[-1]), dtype=np.float32)
    for (a, b), released, noise in _released(known, counted):
        learnt = ((parts[a] * share[:, None]).T @ parts[b]).numpy()
        own = filters[a] @ (released - learnt) @ filters[b].T
        squares = np.outer(*(np.square(filters[c]).sum(axis=1) for c in (a, b)))
        block = np.s_[ends[a] : ends[a + 1], ends[b] : ends[b + 1]]
        mean[block], deviation[block] = _left_possible(own, noise**2 * squares, 1.0 / known.table.n)
    scores = {f"unseen.{i}": torch.from_numpy(one).float() for i, one in enumerate(each)}
    rest = {"mean": mean, "deviation": deviation, "columns": _columns_left_possible(known, whole)}
    return scores | {f"unseen.{name}": torch.from_numpy(one).float() for name, one in rest.items()}


def _columns_left_possible(known: Releases, whole: Sequence[Floats]) -> Floats:
    """Deviation of each cell's share from a mixture's, of all columns in turn.

    A mean of prior and counts that lies 1 - k of the noise from these knows shares with k of the
    noise's variance; one that lies farther than noise explains is as much too far off. To either a
    standard deviation of chance is added.
    """
    found = []
    for share, counts, noise in zip(whole, known.column_counts, known.column_noise, strict=True):
        variances = np.maximum(np.square(noise / known.table.n), LEAST_VARIANCE)
        lies = float((np.square(counts / known.table.n - share) / variances).mean())
        kept = min(1.0, abs(1.0 - lies) + math.sqrt(2.0 / len(share)))
        chance = share * (1.0 - share) / known.table.n
        found.append(np.sqrt(np.maximum(kept * variances - chance, 0.0)))
    return np.concatenate(found)


def _left_possible(found: Floats, variances: Floats, chance: float) -> tuple[Floats, Floats]:
    """Mean and deviation of coefficients that were found with noise of known variances.

    Those in a line along the shorter axis have one variance. Drawing rows adds `chance` to it.
    """
    if not found.size:
        return found, found
    axis = int(np.argmin(found.shape))
    variances, count = np.maximum(variances, LEAST_VARIANCE), found.shape[axis]
    lies = (np.square(found) / variances).sum(axis=axis, keepdims=True)
    beyond = np.maximum(0.0, lies - count + math.sqrt(2.0 * count))
    between = beyond / (1.0 / variances).sum(axis=axis, keepdims=True)
    kept = between / (between + variances)
    return kept * found, np.sqrt(np.maximum(kept * variances - chance, 0.0))


def _scores(share: Floats, line: int, most: int, n: int) -> Floats:
    """Scores of a column's cells, [cells, k], orthonormal under their shares and zero on average.

    Args:
      line: how many of its cells lie on the line.
      most: labels that have a score, the most frequent ones; and waves.
      n: records; rarer cells count as if they had one.
    """
    root = np.sqrt(np.maximum(share, 1.0 / n))
    mass = root[:line] ** 2
    ranks = (np.cumsum(mass) - mass / 2.0) / max(float(mass.sum()), 1.0 / n)
    waves = np.zeros((len(root), max(0, min(WAVES, most, line - 1))))
    waves[:line] = np.cos(np.pi * np.outer(ranks, np.arange(1, waves.shape[1] + 1)))
    labels = line + np.argsort(-share[line:], kind="stable")
    labels = labels[: most + 1] if line else labels[1 : most + 1]
    rare_first = np.eye(len(root))[:, labels[::-1]]
    basis = np.linalg.qr(np.column_stack([root, rare_first, root[:, None] * waves]))[0]
    return np.asarray(basis[:, 1:] / root[:, None])


def _released(
    known: Releases, counted: Sequence[PairTarget]
) -> Iterator[tuple[tuple[int, int], Floats, float]]:
    """Columns, shares of the cells as they were released, and a share's noise."""
    condition = known.design.condition
    margins: dict[int, tuple[Floats, float]] = dict(known.within)
    for pair in counted:
        shares = pair.shares.double().numpy()
        yield pair.columns, shares.sum(axis=0), pair.noise * math.sqrt(len(shares))
        if condition is None or len(shares) < 2:
            continue
        for column, axis in zip(pair.columns, (2, 1), strict=True):
            noise = pair.noise * math.sqrt(shares.shape[axis])
            if column not in margins or noise < margins[column][1]:
                margins[column] = shares.sum(axis=axis), noise
    if condition is not None:
        for column, (shares, noise) in margins.items():
            yield (condition, column), shares, noise


def with_unseen(
    cells: Tensor,
    component: Tensor,
    parts: Sequence[Tensor],
    weights: Mapping[str, Tensor],
    random: torch.Generator,
) -> Tensor:
    """Rows of a population whose columns depend on each other as far as releases leave possible.

    Each column in turn is drawn anew given the others of its row, and so that the shares of its
    cells are those of a column which releases leave possible.

    Args:
      cells: int64 [columns, rows], drawn independently within components.
      component: int64 [rows].
      parts: [components, cells] of each column.
      weights: those of a stored mixture.
    """
    if "unseen.mean" not in weights:
        return cells
    scores = [weights[f"unseen.{i}"] for i in range(len(parts))]
    mean, deviation = weights["unseen.mean"], weights["unseen.deviation"]
    odds = mean + deviation * torch.randn(mean.shape, generator=random)
    odds = odds + odds.t()
    ends = np.cumsum([0, *(one.shape[1] for one in scores)])
    whole = torch.cat([weights["weights"] @ part for part in parts])
    goals = torch.split(
        _positive(whole, weights["unseen.columns"], random), [part.shape[1] for part in parts]
    )
    row = torch.cat([one[own] for one, own in zip(scores, cells, strict=True)], dim=1)
    cells = cells.clone()
    for _ in range(SWEEPS):
        for i, part in enumerate(parts):
            own = slice(int(ends[i]), int(ends[i + 1]))
            log_odds = (row @ odds[:, own]) @ scores[i].t()
            chances = part[component] * log_odds.clamp_max(MOST_LOG_ODDS).exp()
            chances /= chances.sum(dim=1, keepdim=True)
            chances *= goals[i] / chances.mean(dim=0).clamp_min(1e-12)
            cells[i] = one_of_each(chances, random)
            row[:, own] = scores[i][cells[i]]
    return cells


def _positive(mean: Tensor, deviation: Tensor, random: torch.Generator) -> Tensor:
    """Positive numbers with these means and deviations: gamma, so that most of what is rare is not.

    Cutting normal ones at zero would fill every cell that noise alone keeps from being empty.
    """
    variance = deviation.double().square().clamp_min(LEAST_VARIANCE)
    shape, scale = mean.double().square() / variance, variance / mean.double().clamp_min(1e-12)
    chance = np.random.default_rng(int(torch.randint(2**62, (1,), generator=random)))
    drawn = chance.gamma(shape.numpy(), scale.numpy())
    return torch.from_numpy(drawn).clamp_min(1e-9).float()
