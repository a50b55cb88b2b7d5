"""How far a figure of this synthetic table may be off. Needs pandas and scipy alone.

    from intervals import interval

    interval(lambda rows: (rows["readmitted"] == "yes").mean())

The estimate is that of synthetic.csv. The replicas are tables that the same method made of rows of
its own model, so figures vary between them as they vary by sampling, noise and model together. With
k replicas the interval is s ± t(k - 1) · sd · sqrt(1 + 1/k). It covers no bias of the method:
see README.txt.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import stdev

import pandas as pd
from scipy.special import stdtrit


def interval(
    statistic: Callable[[pd.DataFrame], float], folder: str | Path = ".", level: float = 0.95
) -> dict[str, float]:
    """The estimate of synthetic.csv and where the truth lies.

    Args:
      statistic: a number of a table's rows.
      folder: that holds synthetic.csv and replica-1.csv, replica-2.csv, …
      level: of the interval, in (0, 1).
    """
    estimate = float(statistic(pd.read_csv(Path(folder) / "synthetic.csv")))
    replicas = sorted(Path(folder).glob("replica-*.csv"))
    values = [float(statistic(pd.read_csv(path))) for path in replicas]
    k = len(values)
    half = float(stdtrit(k - 1, 0.5 + level / 2)) * stdev(values) * (1 + 1 / k) ** 0.5
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half}
