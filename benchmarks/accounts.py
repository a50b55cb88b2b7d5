"""Accounts of a bank with three linked files: holders, standing orders, and loans, which few have.

    python benchmarks/accounts.py [--accounts 4500] [--epsilon 1] [--seeds 3]

Who has two holders has an owner and an authorised person; who has a loan pays it by an order;
orders go to thirteen banks. Nothing is declared. Real and synthetic figures stand side by side:
means of the seeds, with their range.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.side_by_side import Files, compare, synthetic_files

BANKS = [a + b for a, b in zip("ABCDEFGHIJKLM", "BCDEFGHIJKLMN", strict=True)]
PURPOSES, MEDIANS = ("household", "insurance", "leasing", "loan"), (3200.0, 600.0, 2000.0, 4000.0)


def accounts(count: int, seed: int) -> Files:
    """Four tables whose keys match."""
    random = np.random.default_rng(seed)
    numbers = np.arange(count) + 1
    opened = np.datetime64("1993-01-01") + random.integers(0, 1800, count)
    paid = random.choice(["monthly", "weekly", "at once"], count, p=(0.93, 0.05, 0.02))
    account = pd.DataFrame({"account": numbers, "paid": paid, "opened": opened.astype(str)})
    lent = np.flatnonzero(random.random(count) < 0.15)
    begun = opened[lent] + random.integers(60, 700, len(lent))
    rates = random.choice([12, 24, 36, 48, 60], len(lent))
    rate = random.lognormal(8.2, 0.6, len(lent)).round()
    loan = pd.DataFrame(
        {"account": numbers[lent], "begun": begun.astype(str), "amount": rates * rate,
         "months": rates, "rate": rate}
    )  # fmt: skip
    many = random.choice(6, count, p=(0.17, 0.47, 0.21, 0.09, 0.05, 0.01))
    own = np.concatenate([np.repeat(np.arange(count), many), lent])
    purpose = random.choice(3, int(many.sum()), p=(0.75, 0.15, 0.1))
    purpose = np.concatenate([purpose, np.full(len(lent), 3)])
    order = pd.DataFrame(
        {
            "account": numbers[own],
            "bank": random.choice(BANKS, len(own)),
            "amount": (np.array(MEDIANS)[purpose] * random.lognormal(0.0, 0.5, len(own))).round(),
            "purpose": np.array(PURPOSES)[purpose],
        }
    )
    second = np.flatnonzero(random.random(count) < 0.2)
    kind = ["owner"] * count + ["authorised"] * len(second)
    holder = pd.DataFrame({"account": np.concatenate([numbers, numbers[second]]), "kind": kind})
    return {"accounts": account, "holders": holder, "orders": order, "loans": loan}


def figures(tables: Files) -> dict[str, float]:
    """What one would look at: labels, how many of what, and what goes together."""
    account, holder, order, loan = tables.values()

    def of(table: pd.DataFrame) -> pd.Series:
        return table["account"].value_counts().reindex(account["account"], fill_value=0)

    lent, pays = of(loan) > 0, of(order[order["purpose"] == "loan"]) > 0
    two = of(holder) == 2
    both = holder.groupby("account")["kind"].agg(
        lambda kinds: set(kinds) == {"owner", "authorised"}
    )
    amount, months = (pd.to_numeric(loan[name], errors="coerce") for name in ("amount", "months"))
    known = {"banks": order["bank"].isin(BANKS), "purposes": order["purpose"].isin(PURPOSES)}
    known["kinds of holders"] = holder["kind"].isin(("owner", "authorised"))
    return {
        **{f"{name} that are real, %": 100.0 * float(is_.mean()) for name, is_ in known.items()},
        "accounts with a loan, %": 100.0 * float(lent.mean()),
        "loans of whom has one": float(of(loan)[lent].mean()),
        "orders an account": float(of(order).mean()),
        "amounts of loans that are missing, %": 100.0 * float(amount.isna().mean()),
        "amounts of loans, one in ten below": float(amount.quantile(0.1)),
        "amounts of loans, median": float(amount.median()),
        "amounts of loans, one in ten above": float(amount.quantile(0.9)),
        "months of loans, median": float(months.median()),
        "two holders, one of each kind, %": 100.0 * float(both.reindex(two[two].index).mean()),
        "who has a loan pays one, %": 100.0 * float(pays[lent].mean()),
        "who has none pays one, %": 100.0 * float(pays[~lent].mean()),
    }


def made(real: Files, options: argparse.Namespace, seed: int) -> Files:
    """The same tables as a run makes them."""
    return synthetic_files(real, options, seed, keys=("account",) * len(real))


def main(arguments: list[str] | None = None) -> int:
    """Make, judge, print. Exit code 0."""
    return compare(
        __doc__,
        ("accounts", 4_500),
        arguments,
        real=accounts,
        synthetic=made,
        figures=figures,
    )


if __name__ == "__main__":
    sys.exit(main())
