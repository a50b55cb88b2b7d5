"""Negative controls: the suite fails if any deliberately broken twin passes its checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sqlalchemy import create_engine

from core.privacy.guarded import PrivateTable
from core.privacy.ledger.admission import LedgerError
from core.privacy.ledger.ledger import Ledger
from core.privacy.mechanisms.additive import Mechanism
from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.meter import UnplannedReleaseError
from tests.ledger_files import ledger_files
from tests.mutants import broken_privacy as broken
from tests.privacy import toys
from tests.privacy.harness import (
    Caught,
    check_additive,
    check_gaussian,
    check_isolation,
    check_sensitivity,
    check_tight,
    check_zero_out,
)

ROWS = toys.random_table(6, 1)
OTHER = toys.random_table(6, 2)
FAR = toys.table(np.full((6, toys.WIDTH), 50.0))
LONELY = toys.table(np.vstack([ROWS.values[:5] / 100, FAR.values[:1]]))  # one record far away


def sensitivity(mechanism: Mechanism) -> None:
    check_sensitivity(mechanism, ROWS)
    check_sensitivity(mechanism, LONELY)
    check_sensitivity(mechanism, FAR)


def tightness(mechanism: Mechanism) -> None:
    check_tight(mechanism, FAR)


def zero_out(mechanism: Mechanism) -> None:
    check_zero_out(mechanism, ROWS, OTHER)


def isolation(mechanism: Mechanism) -> None:
    check_isolation(mechanism, ROWS, OTHER)
    check_additive(mechanism, ROWS, OTHER)


Check = Callable[[Mechanism], None]
WAVES = toys.waves().frequencies


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (broken.ForgetsRootTwo(WAVES), sensitivity),
        (broken.ForgetsToClip(1.0), sensitivity),
        (broken.IgnoresMask(1.0), zero_out),
        (broken.IgnoresMask(1.0), tightness),
        (broken.ZeroIsNotNothing(WAVES), zero_out),
        (broken.CentresOnTheMean(1.0), sensitivity),
        (broken.CentresOnTheMean(1.0), isolation),
        (broken.DividesByCount(1.0), sensitivity),
        (broken.StatesTwice(1.0), tightness),
    ],
    ids=lambda x: type(x).__name__ if hasattr(x, "noise") else x.__name__,
)
def test_a_broken_mechanism_is_caught(mutant: Mechanism, check: Check) -> None:
    with pytest.raises(Caught):
        check(mutant)


@pytest.mark.parametrize("check", [sensitivity, tightness, zero_out, isolation])
@pytest.mark.parametrize("honest", [toys.ClippedSum(), toys.waves(), toys.Histogram()])
def test_the_honest_twins_pass(honest: Mechanism, check: Check) -> None:
    check(honest)


def draws(source: NoiseSource | None) -> np.ndarray:
    """1,000 releases of 2 × 8 waves through a `PrivateTable`, less the truth."""
    mechanism = toys.waves(8)
    made = toys.plan(6, [toys.phase(noise_multiplier=1.3, count=1000)])
    private_table = PrivateTable(ROWS, toys.domain(), made, noise_source=source)
    truth = mechanism.statistic(ROWS, torch.ones(6))
    noise = [
        (private_table.release("sum", mechanism) - truth).flatten().numpy() for _ in range(1000)
    ]
    return np.array(noise)


DUE = 1.3 * np.sqrt(8)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (broken.Quieter(0.9), "standard deviation"),
        (broken.Quieter(1 / np.sqrt(2)), "standard deviation"),
        (broken.SilentImaginaryPart(), "standard deviation"),
        (broken.SharedImaginaryPart(), "correlated"),
    ],
    ids=["a tenth too small", "Δ forgot √2", "imaginary part without noise", "one draw for both"],
)
def test_broken_noise_is_caught(source: NoiseSource, why: str) -> None:
    with pytest.raises(Caught, match=why):
        check_gaussian(draws(source), DUE)


def test_honest_noise_passes() -> None:
    check_gaussian(draws(None), DUE)


def test_a_meter_that_stops_counting_is_caught() -> None:
    made = toys.plan(6, [toys.phase(count=2)])
    lax = PrivateTable(ROWS, toys.domain(), made, meter=broken.LaxMeter(made))
    honest = PrivateTable(ROWS, toys.domain(), made)

    def count(private_table: PrivateTable) -> tuple[int, int]:
        """(releases made, releases claimed)"""
        done = 0
        try:
            for _ in range(4):
                private_table.release("sum", toys.ClippedSum())
                done += 1
        except UnplannedReleaseError:
            pass
        return done, sum(p.count for p in private_table.meter.executed)

    assert count(honest) == (2, 2)
    done, claimed = count(lax)
    assert done != claimed


def test_a_ledger_that_refunds_is_caught(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger = broken.RefundingLedger(engine, ledger_files(tmp_path))
    ledger.register("people", 3.0, 1e-5, n=6)
    plan = toys.plan(6, [toys.phase(noise_multiplier=20.0)])
    for name in ("a", "b"):
        ledger.debit("people", plan, name)
    assert ledger.verify()
    ledger.refund(3)  # the newest too: the head knows of it
    assert not ledger.verify()
    with pytest.raises(LedgerError, match="missing at the end"):
        ledger.debit("people", plan, "c")
    assert not hasattr(Ledger, "refund")
