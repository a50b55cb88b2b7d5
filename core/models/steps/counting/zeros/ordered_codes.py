"""Long lists of codes that determine a label: industries their sector, wards their district.

Each code by itself may be too rare for its counts to say which label it belongs to. Codes are
sorted, so that neighbours mostly belong together: a hidden Markov chain along the list says it.
Where it says so clearly, a code's other labels are places without records, to be asked about. Rows
that lie there get another code, for labels are known better than codes are.

Source: Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 1989 (forward and
backward probabilities).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from core.models.steps.counting.relations import MAX_VARYING_BROKEN
from core.models.steps.counting.zeros.structural_zeros import EVIDENCE, StructuralZero

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
SUSPECT = 0.25  # of the records, that break the rule by the other of two hypotheses
UNLIKELY = 1e-4  # probability of a change that an order of labels does not foresee
PLAUSIBLE = 0.01  # posterior probability from which on a code may belong to a label


@dataclass(frozen=True)
class LabelsOfCodes:
    """A column of labels that seem to follow from codes.

    Attributes:
      columns: of codes, of labels.
      belongs: float64 [codes, labels], the probability that all of a code's records have a label.
      codes: float64 [codes], records of each.
      clearest: how much likelier the rule is than that a part of the records break it, logarithm.
    """

    columns: tuple[int, int]
    belongs: Floats
    codes: Floats
    clearest: float

    @cached_property
    def apart(self) -> Mask:
        """Bool [codes, labels], what does not seem to go together."""
        return np.asarray(self.belongs < PLAUSIBLE)

    @cached_property
    def _far(self) -> Mask:
        """The same without codes next to the label's own, which it may share."""
        own = np.pad(~self.apart, ((1, 1), (0, 0)))
        return self.apart & ~own[2:] & ~own[:-2]

    @cached_property
    def _labels(self) -> Indices:
        """Labels that are asked about."""
        return np.flatnonzero(self._far.any(axis=0))

    @cached_property
    def _unsure(self) -> Indices:
        """Codes and labels, [2, cells], of codes that seem to go with several."""
        several = (~self.apart).sum(axis=1, keepdims=True) > 1
        return np.stack(np.nonzero(~self.apart & several))

    @cached_property
    def asked(self) -> tuple[StructuralZero, ...]:
        """Of each label all codes far from its own; then each code with each label it may have."""
        every = np.arange(len(self.codes))
        far = [self._zero(self._far[:, label], label) for label in self._labels]
        return (*far, *(self._zero(every == code, label) for code, label in self._unsure.T))

    @cached_property
    def in_parts(self) -> Floats:
        """Float64 [asked], records if columns were independent, or if a code has the label."""
        records = (self.belongs * self.codes[:, None]).sum(axis=0)
        alone = np.outer(self.codes, records / max(1.0, float(records.sum())))
        far = (self._far * alone).sum(axis=0)[self._labels]
        return np.append(far, self.codes[self._unsure[0]])

    @property
    def beforehand(self) -> Floats:
        """Float64 [asked], how much likelier each is empty before it is asked about, logarithm."""
        return np.repeat([self.clearest, 0.0], [len(self._labels), self._unsure.shape[1]])

    def _zero(self, codes: Mask, label: int) -> StructuralZero:
        labels = torch.arange(self.belongs.shape[1])
        return StructuralZero(
            self.columns, torch.from_numpy(codes), labels == int(label), mends_left=True
        )

    def kept(self, counts: Floats, noise: float, adds: Floats) -> Iterator[StructuralZero]:
        """Of labels of which few records lie far off all codes that do not go with them.

        Args:
          counts: float64 [asked], released; `noise`, standard deviation of one.
          adds: float64 [asked], what a record there is expected to add to its count.
        """
        far = len(self._labels)
        records = (self.belongs * self.codes[:, None]).sum(axis=0)[self._labels]
        few = counts[:far] < MAX_VARYING_BROKEN * adds[:far] * records + noise
        without = np.zeros_like(self.apart)
        without[:, self._labels[few]] = self.apart[:, self._labels[few]]
        code, label = self._unsure
        whole = adds[far:] * self.codes[code]
        likely = np.full(self.belongs.shape, -np.inf)
        likely[code, label] = np.log(self.belongs[code, label])
        likely[code, label] += whole * (counts[far:] - whole / 2.0) / noise**2
        some = np.unique(code)
        without[some] |= ~self.apart[some] & (softmax(likely[some], axis=1) < PLAUSIBLE)
        for one in np.flatnonzero(without.any(axis=0)):
            yield self._zero(without[:, one], int(one))


def labels_of_codes(
    columns: tuple[int, int], counts: Floats, codes: Floats, spread: Floats, noise: float
) -> Iterator[LabelsOfCodes]:
    """The rule between two columns, if most records seem to keep to a label a code.

    Args:
      columns: of codes, of labels.
      counts: float64 [codes, labels], released; `noise`, standard deviation of one.
      codes: float64 [codes], records of each; `spread`, their standard deviations.
    """
    codes = np.maximum(codes, 0.0)
    belongs = _belongs(counts, codes, spread, noise)
    labels = (belongs * codes[:, None]).sum(axis=0)
    rule = np.eye(len(labels))[belongs.argmax(axis=1)] * codes[:, None]
    alone = codes[:, None] * labels / max(1.0, float(labels.sum()))
    broken = (1.0 - SUSPECT) * rule + SUSPECT * alone
    evidence = ((rule - broken) * (counts - (rule + broken) / 2.0)).sum() / noise**2
    if evidence >= EVIDENCE:
        yield LabelsOfCodes(columns, belongs, codes, float(evidence))


def _belongs(counts: Floats, codes: Floats, spread: Floats, noise: float) -> Floats:
    """Float64 [codes, labels], the probability that all of a code's records have a label.

    As many changes of the label along the list are expected as there are labels, to any other; or,
    which is as likely beforehand, all to later ones; or to earlier ones.
    """
    length, labels = counts.shape
    every = np.ones((labels, labels))
    variance = (noise**2 + spread**2)[:, None]
    off = (counts - codes[:, None]) ** 2 / variance + np.log(variance / noise**2)
    seen = ((counts / noise) ** 2 - off) / 2.0  # against no records at all
    orders = every, np.triu(every), np.tril(every)
    chains = [_chain(seen, _moves(to, labels / length)) for to in orders]
    likely = np.array([whole for _, whole in chains])
    each = np.array([belongs for belongs, _ in chains])
    return np.asarray(np.einsum("k,kij->ij", softmax(likely), each))


def _moves(to: Floats, change: float) -> Floats:
    """Logarithms of the probabilities of the next code's label, [labels, labels]."""
    others = to * (1.0 - np.eye(len(to)))
    changing = min(0.5, change) * others / np.maximum(1.0, others.sum(axis=1, keepdims=True))
    moves = changing + np.diag(1.0 - changing.sum(axis=1))
    return np.asarray(np.log(np.maximum(moves, UNLIKELY)))


def _chain(seen: Floats, moves: Floats) -> tuple[Floats, float]:
    """The probabilities of each label of each code, and the logarithm of that of all counts."""
    before, after = np.zeros_like(seen), np.zeros_like(seen)
    for i in range(1, len(seen)):
        before[i] = logsumexp((before[i - 1] + seen[i - 1])[:, None] + moves, axis=0)
        after[-1 - i] = logsumexp(after[-i] + seen[-i] + moves, axis=1)
    whole = before + seen + after
    total = logsumexp(whole[0])
    return np.exp(whole - logsumexp(whole, axis=1, keepdims=True)), float(total)
