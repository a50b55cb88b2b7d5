"""Long lists of codes that determine a label: industries their sector, wards their district.

Each code by itself may be too rare for its counts to say which label it belongs to. Codes are
sorted, so that neighbours mostly belong together: a hidden Markov chain along the list says it.
Where it says so clearly, a code's other labels are places without records, to be asked about; what
is told of these leads along the same chain to one label a code. Some codes may have none: what
others were merged into goes with any. Rows that lie with another label get another code, for labels
are known better than codes are.

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
from scipy.special import softmax

from core.models.steps.counting.relations import MAX_VARYING_BROKEN
from core.models.steps.counting.zeros.structural_zeros import StructuralZero
from core.privacy.discovery.thresholds import EVIDENCE

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
SUSPECT = 0.25  # of the records, that break the rule by the other of two hypotheses
UNLIKELY = 1e-4  # probability of a change that an order of labels does not foresee
PLAUSIBLE = 0.001  # probability from which on a code may belong to a label
# deviations of the noise: it alone lets one label in forty seem to be with codes far off
FAR_SNR_THRESHOLD = 2.0
ANY_LABEL = 1e-4  # probability that a code goes with any label


@dataclass(frozen=True)
class LabelsOfCodes:
    """A column of labels that seem to follow from codes.

    Attributes:
      columns: of codes, of labels.
      seen: float64 [codes, labels + 1], how likely pairs are if all of a code's records have a
        label, or last if it goes with any; logarithm.
      codes: float64 [codes], records of each; `spread`, their standard deviations.
      clearest: how much likelier the rule is than that a part of the records break it, logarithm.
    """

    columns: tuple[int, int]
    seen: Floats
    codes: Floats
    spread: Floats
    clearest: float

    @cached_property
    def belongs(self) -> Floats:
        """Float64 [codes, labels], the probability that all of a code's records have a label."""
        return _states(self.seen)[:, :-1]

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
        alone = np.outer(self.codes, _shares(self.belongs, self.codes))
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
        far, (code, label) = len(self._labels), self._unsure
        records = (self.belongs * self.codes[:, None]).sum(axis=0)[self._labels]
        many = counts[:far] > MAX_VARYING_BROKEN * adds[:far] * records + FAR_SNR_THRESHOLD * noise
        told = np.zeros_like(self.seen)
        known = adds[far:] * self.codes[code], adds[far:] * self.spread[code]
        told[code, label] = _all_of_it(counts[far:], *known, noise)
        some = known[0] * _shares(self.belongs, self.codes)[label]
        np.add.at(told[:, -1], code, some * (counts[far:] - some / 2.0) / noise**2)
        likeliest = _states(self.seen + told).argmax(axis=1)[:, None]
        every = np.arange(self.belongs.shape[1])
        without = (likeliest != every) & (likeliest <= every[-1])
        without[:, self._labels[many]] = False
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
    seen = _all_of_it(counts, codes[:, None], spread[:, None], noise)
    belongs = _states(np.pad(seen, ((0, 0), (0, 1)), constant_values=-np.inf))[:, :-1]
    rule = np.eye(belongs.shape[1])[belongs.argmax(axis=1)] * codes[:, None]
    alone = codes[:, None] * _shares(belongs, codes)
    broken = (1.0 - SUSPECT) * rule + SUSPECT * alone
    evidence = ((rule - broken) * (counts - (rule + broken) / 2.0)).sum() / noise**2
    if evidence >= EVIDENCE:
        of_any = (alone * (counts - alone / 2.0)).sum(axis=1, keepdims=True) / noise**2
        seen = np.concatenate([seen, of_any], axis=1)
        yield LabelsOfCodes(columns, seen, codes, spread, float(evidence))


def _shares(belongs: Floats, codes: Floats) -> Floats:
    """Float64 [labels], of all records."""
    records = (belongs * codes[:, None]).sum(axis=0)
    return np.asarray(records / max(1.0, float(records.sum())))


def _all_of_it(counts: Floats, whole: Floats, spread: Floats, noise: float) -> Floats:
    """How much likelier each count is if it holds all of a code's records than none, logarithm.

    Args:
      whole: records of the codes; `spread`, their standard deviations; both as they are counted.
    """
    variance = noise**2 + spread**2
    off = (counts - whole) ** 2 / variance + np.log(variance / noise**2)
    return np.asarray(((counts / noise) ** 2 - off) / 2.0)


def _states(seen: Floats) -> Floats:
    """Float64 [codes, labels + 1], the probability of each label of a code, and last of any.

    As many changes of the label along the list are expected as there are labels, to any other; or,
    which is as likely beforehand, all to later ones; or to earlier ones.
    """
    length, labels = len(seen), seen.shape[1] - 1
    every = np.ones((labels, labels))
    orders = every, np.triu(every), np.tril(every)
    chains = [_chain(seen, _moves(to, labels / length)) for to in orders]
    likely = np.array([whole for _, whole in chains])
    each = np.array([states for states, _ in chains])
    return np.asarray(np.einsum("k,kij->ij", softmax(likely), each))


def _moves(to: Floats, change: float) -> Floats:
    """Logarithms of the probabilities of the next code's state, [labels + 1, labels + 1]."""
    others = to * (1.0 - np.eye(len(to)))
    changing = min(0.5, change) * others / np.maximum(1.0, others.sum(axis=1, keepdims=True))
    moves = changing + np.diag(1.0 - changing.sum(axis=1))
    moves = np.pad(moves, ((0, 1), (0, 0)), constant_values=1.0 / len(to))
    moves = np.pad((1.0 - ANY_LABEL) * moves, ((0, 0), (0, 1)), constant_values=ANY_LABEL)
    return np.asarray(np.log(np.maximum(moves, UNLIKELY)))


def _chain(seen: Floats, moves: Floats) -> tuple[Floats, float]:
    """The probabilities of each label of each code, and the logarithm of that of all counts."""
    before, after = np.zeros_like(seen), np.zeros_like(seen)
    for i in range(1, len(seen)):
        before[i] = np.logaddexp.reduce((before[i - 1] + seen[i - 1])[:, None] + moves, axis=0)
        after[-1 - i] = np.logaddexp.reduce(after[-i] + seen[-i] + moves, axis=1)
    whole = before + seen + after
    total = np.logaddexp.reduce(whole, axis=1, keepdims=True)
    return np.exp(whole - total), float(total[0, 0])
