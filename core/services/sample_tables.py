"""Tables to try the product with: a made-up one that needs nothing, and a public one by network."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.reading.cells import TableReadError

SAMPLE_NAME = "clinic visits"
SAMPLE_TARGET = "readmitted"
ADULT_ID = 1590  # OpenML data set "adult", version 2: both halves of UCI Adult


def sample_table(rows: int = 5000) -> pd.DataFrame:
    """Made-up clinic visits: no person is behind any row.

    Age drives blood pressure, illness and cost; triage, earlier visits and smoking drive whether
    the patient comes back within a month, which is the target. Every kind of column is there: an
    identifier, a date, integers, numbers, a zero-inflated cost with a heavy tail, categories, an
    order, booleans and missing values.
    """
    rng = np.random.default_rng(20240229)
    age = np.clip(np.rint(18 + 72 * rng.beta(1.6, 1.5, rows)), 18, 95).astype(np.int64)
    frailty = (age - 50) / 18 + rng.normal(size=rows)  # what the columns share; not in the table
    female = rng.random(rows) < 0.54
    smoker = rng.random(rows) < 0.32 - 0.08 * female - 0.10 * (age > 65)
    ward = _ward(rng, age=age, frailty=frailty, female=female)
    triage = np.digitize(frailty + 0.6 * smoker + 0.5 * rng.normal(size=rows), (-0.4, 0.8, 2.0))
    earlier = np.minimum(rng.poisson(np.exp(0.45 * frailty - 0.4)), 9)
    pressure = np.rint(112 + 0.32 * age + 7 * smoker + rng.normal(0, 11, rows)).astype(np.int64)
    bmi = np.round(24.5 + 1.4 * frailty + rng.gamma(2.2, 1.9, rows) - 2.5, 1).clip(15, 55)
    billed = rng.random(rows) < 1 / (1 + np.exp(1.1 - 0.55 * triage))
    cost = np.where(billed, np.exp(4.6 + 0.55 * triage + 0.9 * rng.normal(size=rows)), 0.0)
    score = -3.1 + 0.75 * triage + 0.42 * earlier + 0.8 * smoker + 0.018 * (age - 50)
    readmitted = rng.random(rows) < 1 / (1 + np.exp(-score))
    # Weekdays are busier, so days are not uniform.
    day = rng.integers(0, 104, rows) * 7 + rng.choice(
        7, rows, p=[0.2, 0.18, 0.17, 0.17, 0.16, 0.07, 0.05]
    )
    start = np.datetime64("2022-01-03")  # a Monday
    frame = pd.DataFrame(
        {
            "visit_id": [f"V{100_000 + i}" for i in rng.permutation(rows)],
            "visit_date": np.datetime_as_string(start + day.astype("timedelta64[D]"), unit="D"),
            "age": age,
            "sex": np.where(female, "female", "male"),
            "ward": ward,
            "triage": np.array(["low", "moderate", "high", "critical"])[triage],
            "earlier_visits": earlier.astype(np.int64),
            "blood_pressure": pressure,
            "bmi": bmi,
            "smoker": np.where(smoker, "yes", "no"),
            "cost": np.round(cost, 2),
            SAMPLE_TARGET: np.where(readmitted, "yes", "no"),
        }
    )
    # Measurements are skipped in the mildest cases more often; smoking is not always asked.
    unmeasured = rng.random(rows) < np.where(triage == 0, 0.15, 0.04)
    frame["blood_pressure"] = frame["blood_pressure"].astype("Int64").mask(unmeasured)
    frame["bmi"] = frame["bmi"].mask(rng.random(rows) < 0.06)
    frame["smoker"] = frame["smoker"].mask(rng.random(rows) < 0.03)
    return frame


def _ward(
    rng: np.random.Generator,
    *,
    age: npt.NDArray[np.int64],
    frailty: npt.NDArray[np.float64],
    female: npt.NDArray[np.bool_],
) -> npt.NDArray[np.str_]:
    """A ward per visit, drawn from log-weights that depend on the patient."""
    names = np.array(["general", "cardiology", "orthopaedics", "maternity", "surgery", "oncology"])
    ones = np.ones(len(age))
    weights = np.column_stack(
        [
            1.2 * ones,
            0.8 * frailty - 0.3,
            0.2 * ones,
            np.where(female & (age < 46), 0.9, -9.0),
            0.1 * ones,
            0.4 * frailty - 1.0,
        ]
    )
    # Adding Gumbel noise and taking the largest draws from the softmax of the weights.
    chosen: npt.NDArray[np.str_] = names[np.argmax(weights + rng.gumbel(size=weights.shape), 1)]
    return chosen


def fetch_adult() -> pd.DataFrame:
    """UCI Adult (census income), 48,842 rows, from OpenML through scikit-learn's cache."""
    from sklearn.datasets import fetch_openml  # heavy, and only this function needs it

    try:
        frame: pd.DataFrame = fetch_openml(
            data_id=ADULT_ID, as_frame=True, parser="auto", n_retries=0
        ).frame
    except (OSError, ValueError):
        raise TableReadError(
            "The Adult table could not be downloaded from openml.org. Check the network, "
            "or use the built-in sample table."
        ) from None
    frame = frame.rename(columns={"class": "income"})
    for name in frame.columns:
        kind = "int64" if pd.api.types.is_numeric_dtype(frame[name].dtype) else "str"
        frame[name] = frame[name].astype(pd.api.types.pandas_dtype(kind))
    return frame
