"""Stays of patients in a hospital: whether what belongs together in one stay comes out so.

    python benchmarks/stays.py [--people 12000] [--epsilon 1] [--seeds 3]

Patients (date of birth, sex, insurance, smoker, postal code) and their stays of some days in one of
four wards, each with diagnoses of its own; who comes where depends on age, sex and smoking, costs
on ward and days. Nothing is declared: dates, lists and bounds are learned. Real and synthetic
figures stand side by side: means of the seeds, with their range.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.histories import Tables, synthetic
from benchmarks.side_by_side import compare

MOST = 15  # stays of a patient
DIAGNOSES = {
    "cardio": ("I10", "I21", "I50"),
    "onco": ("C50", "C34", "C61"),
    "ortho": ("M16", "M17", "S72"),
    "gyn": ("O80", "N92", "O82"),
}
WARDS = tuple(DIAGNOSES)
DAYS = np.array([6.0, 9.0, 5.0, 3.0])  # of a stay beyond one, by ward
EMERGENCY = np.array([0.6, 0.1, 0.4, 0.3])
BEGIN = np.datetime64("2019-01-01")


def hospital(people: int, seed: int) -> Tables:
    """Patients and their stays, in the order of patients and time."""
    random = np.random.default_rng(seed)
    born = np.datetime64("1930-01-01") + random.integers(0, 31_000, people)
    age = (np.datetime64("2020-01-01") - born).astype(float) / 365.25
    female = random.random(people) < 0.54
    smokes = random.random(people) < 0.25 + 0.1 * ~female
    draws = {
        "insurance": (("statutory", "private", "self-pay"), (0.82, 0.15, 0.03)),
        "postal_code": (("10115", "20095", "50667", "80331"), (0.4, 0.25, 0.2, 0.15)),
    }
    patients = pd.DataFrame(
        {
            "patient": [f"PT{i:06d}" for i in range(people)],
            "birth_date": born.astype(str),
            "sex": np.where(female, "F", "M"),
            "smoker": np.where(smokes, "yes", "no"),
        }
        | {name: random.choice(labels, people, p=p) for name, (labels, p) in draws.items()}
    )
    fertile = female & (age > 18) & (age < 48)
    odds = np.stack(
        [
            0.1 + np.maximum(age - 40, 0) / 60 + 0.2 * smokes,
            0.1 + np.maximum(age - 40, 0) / 100,
            np.full(people, 0.3),
            0.5 * fertile + 0.02 * female,
        ],
        axis=1,
    )
    number = np.minimum(random.poisson(0.6 + np.maximum(age - 30, 0) / 25), MOST)
    when, ward, rows = random.integers(0, 900, people), np.full(people, -1), []
    for place in range(MOST):
        who = np.flatnonzero(number > place)
        again = (ward[who] < 0) | (random.random(len(who)) < 0.35)
        ward[who] = np.where(again, _choose(odds[who], random), ward[who])
        days = 1 + random.poisson(DAYS[ward[who]])
        which = random.choice(3, len(who), p=(0.5, 0.3, 0.2))
        costs = np.exp(random.normal(6.5, 0.3, len(who))) * days
        rows.append(
            pd.DataFrame(
                {
                    "patient": patients["patient"].to_numpy()[who],
                    "admitted": (BEGIN + when[who]).astype(str),
                    "discharged": (BEGIN + when[who] + days).astype(str),
                    "ward": np.array(WARDS)[ward[who]],
                    "diagnosis": np.array(list(DIAGNOSES.values()))[ward[who], which],
                    "emergency": np.where(
                        random.random(len(who)) < EMERGENCY[ward[who]], "yes", "no"
                    ),
                    "cost": costs.round(2),
                }
            )
        )
        when[who] += days + 1 + random.exponential(120.0, len(who)).astype(int)
    stays = pd.concat(rows).sort_values(["patient", "admitted"], kind="stable")
    return patients, stays.reset_index(drop=True)


def _choose(odds: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.intp]:
    line = odds.cumsum(axis=1)
    return (line < random.random((len(line), 1)) * line[:, -1:]).sum(axis=1)


def figures(tables: Tables) -> dict[str, float]:
    """What one would look at: times, wards and who lies in them."""
    patients, stays = tables
    begin, end = (pd.to_datetime(stays[name]) for name in ("admitted", "discharged"))
    days = (end - begin).dt.days
    own = {code: name for name, codes in DIAGNOSES.items() for code in codes}
    joined = stays.merge(patients, on="patient")
    age = (pd.to_datetime(joined["admitted"]) - pd.to_datetime(joined["birth_date"])).dt.days / 365
    gyn = joined["ward"] == "gyn"
    rest = begin.groupby(stays["patient"]).shift(-1) - end
    by_ward = {f"age in {ward}": float(age[joined["ward"] == ward].mean()) for ward in WARDS}
    lasts = {f"days in {ward}": float(days[stays["ward"] == ward].mean()) for ward in WARDS}
    return {
        "ends before it begins, %": 100.0 * float((days < 0).mean()),
        "days, median": float(days.median()),
        "days, 9 of 10 below": float(days.quantile(0.9)),
        **lasts,
        "days with cost, rank correlation": float(days.corr(stays["cost"], method="spearman")),
        "diagnosis of another ward, %": 100.0
        * float((stays["diagnosis"].map(own) != stays["ward"]).mean()),
        "men in gyn, %": 100.0 * float((joined["sex"][gyn] == "M").mean()),
        **by_ward,
        "next stay begins before the end, %": 100.0 * float((rest.dropna().dt.days < 0).mean()),
        "on the last day, %": 100.0 * float((begin == begin.max()).mean()),
    }


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    return compare(
        __doc__,
        ("people", 12_000),
        arguments,
        real=hospital,
        synthetic=lambda real, options, seed: synthetic(real, "histories", options, "stays", seed),
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
