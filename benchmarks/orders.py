"""Orders of a shop: whether dates, times and sums of money come out as people write them.

    python benchmarks/orders.py [--rows 6000] [--epsilon 1] [--seeds 3]

An order comes on a working day, at a time within shop hours, is exported with the midnight of its
day, billed on the last of its month and booked on the first of its quarter. Its amount is quantity
times price, and its total is that and carriage. Nothing is declared. Real and synthetic figures
stand side by side: means of the seeds, with their range.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.side_by_side import compare
from core import api

ITEMS = {"pen": 2.0, "book": 15.0, "lamp": 40.0, "chair": 90.0, "desk": 250.0}  # and their prices
MANY = ("pen", "book")  # of which people buy several
BEGIN = np.datetime64("2019-01-01")


def orders(rows: int, seed: int) -> pd.DataFrame:
    """Orders of four years."""
    random = np.random.default_rng(seed)
    item = random.choice(list(ITEMS), rows, p=(0.35, 0.3, 0.15, 0.12, 0.08))
    price = np.round(pd.Series(item).map(ITEMS) * np.exp(random.normal(0.0, 0.3, rows)), 2)
    most = np.where(np.isin(item, MANY), 3.0, 0.5)
    quantity = np.minimum(1 + random.poisson(most), 20)
    amount = np.round(quantity * price, 2)
    carriage = np.where(amount > 50.0, 0.0, random.choice((2.5, 4.9, 7.9), rows))
    day = pd.Series(BEGIN + random.integers(0, 1461, rows))
    day -= pd.to_timedelta(np.maximum(day.dt.day_of_week - 4, 0), "D")
    minute = np.clip(random.normal(13 * 60, 150, rows), 9 * 60, 20 * 60 - 1).astype(int)
    return pd.DataFrame(
        {
            "item": item,
            "ordered": day.dt.strftime("%d/%m/%Y"),
            "time": [f"{m // 60}:{m % 60:02d}" for m in minute],
            "exported": day.dt.strftime("%Y-%m-%d 00:00:00"),
            "billed": (day + pd.offsets.MonthEnd(0)).dt.strftime("%Y-%m-%d"),
            "booked": day.dt.to_period("Q").dt.start_time.dt.strftime("%Y-%m-%d"),
            "quantity": quantity,
            "price": price,
            "amount": amount,
            "carriage": carriage,
            "total": np.round(amount + carriage, 2),
        }
    )


def figures(frame: pd.DataFrame) -> dict[str, float]:
    """What one would look at: days, hours and sums, in percent of the rows."""
    ordered = pd.to_datetime(frame["ordered"], format="%d/%m/%Y")
    exported = pd.to_datetime(frame["exported"])
    billed, booked = (pd.to_datetime(frame[name]) for name in ("billed", "booked"))
    time = pd.to_datetime(frame["time"], format="%H:%M", errors="coerce")
    number = {name: frame[name].astype(float) for name in ("quantity", "price", "amount")}
    product = number["quantity"] * number["price"]
    parts = number["amount"] + frame["carriage"].astype(float)
    shares = {
        "ordered on a weekend": ordered.dt.day_of_week > 4,
        "ordered on a Friday": ordered.dt.day_of_week == 4,
        "time outside shop hours, or none": ~time.dt.hour.between(9, 19),
        "exported at another time than midnight": exported != exported.dt.normalize(),
        "billed on no last of a month": ~billed.dt.is_month_end,
        "booked on no first of a quarter": ~booked.dt.is_quarter_start,
        "billed in another month than ordered": billed.dt.to_period("M")
        != ordered.dt.to_period("M"),
        "booked in another quarter than ordered": booked.dt.to_period("Q")
        != ordered.dt.to_period("Q"),
        "amount is not quantity times price": (number["amount"] - product).abs() > 0.006,
        "total is not amount and carriage": (frame["total"].astype(float) - parts).abs() > 0.006,
    }
    return {name: 100.0 * float(share.mean()) for name, share in shares.items()}


def made(real: pd.DataFrame, options: argparse.Namespace, seed: int) -> pd.DataFrame:
    """Synthetic orders, with nothing declared."""
    asked = {"model": "scan_focus", "people": "new", "epsilon": options.epsilon}
    return api.synthesize(real, **asked, seed=seed).table


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    return compare(
        __doc__,
        ("rows", 6_000),
        arguments,
        real=orders,
        synthetic=made,
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
