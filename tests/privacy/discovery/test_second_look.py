"""A second look at lists goes to those that lack labels, and neither shows what one unit holds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from core.privacy.accounting.accountant import guarantee
from core.privacy.discovery.open_domain import open_domain
from core.privacy.discovery.planning import LISTS, LISTS_AGAIN, Levels
from core.privacy.discovery.raw_rows import read_raw
from core.privacy.discovery.release import release_domain
from core.privacy.mechanisms.domain_release import LabelCounts
from core.privacy.meter import Meter
from core.privacy.plan import Plan
from core.schema.column import Kind
from core.schema.labels import category_indices
from core.schema.schema import Schema
from tests.mutants import broken_discovery as broken
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.learned_tables import by_name, labelled, learn, planned, schema_for, to_learn

N = 4000
SLACK = 1.0 + 1e-9


def many_towns(n: int = N) -> tuple[pd.DataFrame, Schema]:
    """Eight short lists, and one of sixty towns of which the rarest has a sixtieth part."""
    rng = np.random.default_rng(5)
    short = {f"list {i}": rng.choice(["a", "b", "c"], n) for i in range(8)}
    share = 1.0 / np.arange(1.0, 61.0)
    towns = [f"town {i:02d}" for i in range(60)]
    frame = pd.DataFrame({**short, "town": rng.choice(towns, n, p=share / share.sum())})
    return frame, schema_for(frame.astype("str"))


def one_look(plan: Plan) -> Plan:
    """The same divergence with the whole of it in the first look."""
    first, again = plan.phase(LISTS), plan.phase(LISTS_AGAIN)
    both = (first.noise_multiplier**-2 + again.noise_multiplier**-2) ** -0.5
    whole = {"noise_multiplier": both, "failure": first.failure + again.failure}
    return plan.model_copy(update={"phases": (first.model_copy(update=whole),)})


def moves(mechanism: LabelCounts, frame: pd.DataFrame, schema: Schema) -> list[float]:
    """How far each record left out moves the counts, as a share of Δ."""
    raw = read_raw(frame, open_domain(schema))[0].to("cpu")
    whole = mechanism.statistic(raw, torch.ones(len(frame)))
    moved = []
    for i in range(len(frame)):
        rest = np.delete(np.arange(len(frame)), i)
        without = mechanism.statistic(raw.take(rest), torch.ones(len(rest)))
        moved.append(float(torch.linalg.norm(whole - without)) / mechanism.sensitivity)
    return moved


def test_no_record_moves_a_second_look_beyond_its_sensitivity() -> None:
    frame, schema = labelled(12, 4)
    keys = read_raw(frame, open_domain(schema))[1]
    chosen, scales = (0, 2, 3), (0.7, 0.2, 1.0)
    lengths = tuple(len(keys[i]) for i in chosen)
    mechanism = LabelCounts(lengths, 12, chosen, scales)
    assert mechanism.sensitivity == pytest.approx(math.sqrt(1.53))
    assert 0.95 <= max(moves(mechanism, frame, schema)) <= SLACK
    wrong = broken.LabelsStateOne(lengths, 12, chosen, scales)
    assert max(moves(wrong, frame, schema)) > SLACK


def test_noise_goes_where_labels_are_missing() -> None:
    frame, schema = many_towns()
    wanted, plan = planned(schema, N, 1.0)
    once, twice = (
        release_domain(frame, wanted, one, Meter(one), noise_source=DeterministicNoise(1))
        for one in (one_look(plan), plan)
    )
    assert guarantee(one_look(plan).phases, 1e-6).epsilon == pytest.approx(1.0, rel=1e-3)
    lengths = [len(by_name(one)["town"].categories or ()) for one in (once, twice)]
    assert lengths[1] > 1.3 * lengths[0]
    assert by_name(twice)["list 0"].categories == ("a", "b", "c")
    assert once.counts["town"].std[0] > 1.5 * twice.counts["town"].std[0]


def test_averaged_counts_have_the_noise_that_is_stated() -> None:
    frame, schema = many_towns()
    wanted, plan = planned(schema, N, 2.0)
    real, off = frame["town"].value_counts(), []
    for seed in range(40):
        noise = DeterministicNoise(seed)
        found = release_domain(frame, wanted, plan, Meter(plan), noise_source=noise)
        labels, counts = by_name(found)["town"].categories or (), found.counts["town"]
        common = [i for i, label in enumerate(labels) if real.get(label, 0) > 150]
        off += [(counts.counts[i] - real[labels[i]]) / counts.std[i] for i in common]
    assert np.std(off) == pytest.approx(1.0, abs=0.12)


def test_lists_that_are_whole_are_counted_again_alike() -> None:
    frame = pd.DataFrame({name: ["u", "v"] * 500 for name in ("one", "two")})
    schema = schema_for(frame)
    wanted, plan = planned(schema, 1000, 1.0)
    found = learn(frame, schema, 1.0)
    expected = Levels.of(plan, wanted).averaged(
        plan, wanted, 1.0, sensitivity=math.sqrt(2.0), lists=2
    )[1]
    assert found.counts["one"].std[0] == pytest.approx(expected.std[LISTS])


# -- the chance that a label of one unit shows -----------------------------------------------------


def shown(level: float, std: float, again: float, weight: float, threshold: float) -> float:
    """How often one record passes the first threshold, or in the average the second."""
    random = np.random.default_rng(0)
    first, second = 1.0 + random.normal(0.0, [[std], [again]], (2, 400_000))
    return float(((first > level) | (weight * first + (1 - weight) * second > threshold)).mean())


@pytest.mark.parametrize("lists", [1, 9])
def test_both_looks_together_keep_to_their_failure(lists: int) -> None:
    wanted, plan = planned(many_towns()[1], N, 1.0)
    failures = {LISTS: 0.04 * 9 / lists, LISTS_AGAIN: 0.04}  # of which each of 9 lists has a part
    phases = [p.model_copy(update={"failure": failures[p.name]}) for p in plan.phases]
    plan = plan.model_copy(update={"phases": tuple(phases)})
    first = Levels.of(plan, wanted)
    weight, levels = first.averaged(plan, wanted, 1.0, sensitivity=math.sqrt(lists), lists=lists)
    std = first.std[LISTS]
    again = std * math.sqrt(weight / (1.0 - weight))
    both = shown(first.label, std, again, weight, levels.label)
    allowed = failures[LISTS] / 9 + failures[LISTS_AGAIN] / lists
    assert both <= 1.05 * allowed
    without = shown(first.label, std, again, weight, levels.label - 0.2 * levels.std[LISTS])
    assert without > 1.05 * allowed  # a lower threshold is caught


# -- numbers in lists ------------------------------------------------------------------------------


def test_unlisted_numbers_move_to_the_nearest() -> None:
    rng = np.random.default_rng(2)
    codes = rng.choice(["10", "20", "90", "N"], N)
    last = ["14", "16", "14", None, "-3", "1000", "X", "15", "16", "1000", "N", "90"]
    cells = pd.Series([*codes[: N - len(last)], *last], dtype="str")
    frame = pd.DataFrame({"code": cells})
    schema = Schema(columns=(to_learn("code", Kind.CATEGORY),))
    column = by_name(learn(frame, schema, 1.0))["code"]
    assert column.categories == ("10", "20", "90", "N") and column.other is None
    indices = category_indices(cells[-len(last) :].reset_index(drop=True), column)
    assert indices.tolist() == [0, 1, 0, -1, 0, 2, -1, 0, 1, 2, 3, 2]


def test_a_column_of_numbers_with_one_listed_stays_numbers() -> None:
    frame = pd.DataFrame({"years": [0] * (N - 400) + [*range(1, 9)] * 50})
    schema = Schema(columns=(to_learn("years", Kind.ORDERED, dtype="int64"),))
    column = by_name(learn(frame, schema, 0.05))["years"]
    assert column.categories == ("0",) and column.other is None and column.learned.nearest


def test_words_that_are_not_listed_become_other() -> None:
    frame, schema = many_towns(800)
    column = by_name(learn(frame, schema, 1.0))["town"]
    assert column.other == "OTHER" and not column.learned.nearest
