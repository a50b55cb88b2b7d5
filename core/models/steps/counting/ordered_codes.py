"""Long lists of codes that determine a label: industries their sector, wards their district.

Each code by itself may be too rare for its counts to say which label it belongs to. Codes are
sorted, so that neighbours mostly belong together: a hidden Markov chain along the list says it.
Where it says so clearly, a code's other labels are places without records, to be asked about. Rows
that lie there get another code, for labels are known better than codes are.

Source: Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 1989 (forward and
backward probabilities).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp

from core.models.steps.counting.relations import MAX_VARYING_BROKEN
from core.models.steps.counting.structural_zeros import EVIDENCE, StructuralZero

Floats = NDArray[np.float64]
SUSPECT = 0.25  # of the records, that break the rule by the other of two hypotheses
PLAUSIBLE = 0.05  # posterior probability from which on a code may belong to a label


@dataclass(frozen=True)
class LabelsOfCodes:
    """A column of labels that seem to follow from codes.

    Attributes:
      asked: of each label, all codes that do not seem to belong to it.
      records: float64 [asked], how many have the label.
      clearest: how much likelier the rule is than that a part of the records break it, logarithm.
    """

    asked: tuple[StructuralZero, ...]
    records: Floats
    clearest: float

    def kept(self, counts: Floats, noise: float) -> Iterator[StructuralZero]:
        """Of labels of which few records lie there by a release of noise of this deviation."""
        few = counts < MAX_VARYING_BROKEN * self.records + noise
        yield from (zero for zero, kept in zip(self.asked, few, strict=True) if kept)


def labels_of_codes(
    columns: tuple[int, int], counts: Floats, codes: Floats, noise: float
) -> Iterator[LabelsOfCodes]:
    """The rule between two columns, if most records seem to keep to a label a code.

    Args:
      columns: of codes, of labels.
      counts: float64 [codes, labels], released; `codes`, float64 [codes], records of each.
      noise: standard deviation of one count.
    """
    codes = np.maximum(codes, 0.0)
    belongs = _belongs(counts, codes, noise)
    labels = (belongs * codes[:, None]).sum(axis=0)
    rule = np.eye(len(labels))[belongs.argmax(axis=1)] * codes[:, None]
    alone = codes[:, None] * labels / max(1.0, float(labels.sum()))
    broken = (1.0 - SUSPECT) * rule + SUSPECT * alone
    evidence = ((rule - broken) * (counts - (rule + broken) / 2.0)).sum() / noise**2
    if evidence < EVIDENCE:
        return
    apart = torch.from_numpy(belongs < PLAUSIBLE)
    own = torch.eye(len(labels), dtype=torch.bool)
    some = np.flatnonzero(apart.any(dim=0))
    yield LabelsOfCodes(
        tuple(StructuralZero(columns, apart[:, i], own[i], mends_left=True) for i in some),
        labels[some],
        float(evidence),
    )


def _belongs(counts: Floats, codes: Floats, noise: float) -> Floats:
    """Float64 [codes, labels], the probability that all of a code's records have a label.

    As many changes of the label along the list are expected as there are labels.
    """
    length, labels = counts.shape
    change = min(0.5, labels / length)
    moves = np.full((labels, labels), math.log(change / max(1, labels - 1)))
    np.fill_diagonal(moves, math.log1p(-change))
    seen = codes[:, None] * (counts - codes[:, None] / 2.0) / noise**2  # against no records at all
    before, after = np.zeros_like(seen), np.zeros_like(seen)
    for i in range(1, length):
        before[i] = logsumexp(before[i - 1] + seen[i - 1] + moves, axis=1)
        after[-1 - i] = logsumexp(after[-i] + seen[-i] + moves, axis=1)
    whole = before + seen + after
    return np.asarray(np.exp(whole - logsumexp(whole, axis=1, keepdims=True)))
