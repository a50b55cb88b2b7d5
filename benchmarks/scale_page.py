"""The figures of `benchmarks/scale.py` as a page: ratios to the first line, and a plan on paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["plan_on_paper", "write_page"]

RESULTS = Path(__file__).with_name("results")
BILLION = 10**9


def write_page(lines: Sequence[dict[str, Any]]) -> None:
    """Write scale.json and scale.md beside the other results."""
    text = json.dumps({"lines": list(lines)}, indent=1)
    (RESULTS / "scale.json").write_text(text + "\n", encoding="utf-8")
    first = lines[0]
    rows = [
        "# Rows, columns, seconds and memory",
        "",
        "`python benchmarks/scale.py`; each line in a process of its own. A ratio of processor "
        "seconds for each row is to the first line of the same number of columns.",
        "",
        "| model | rows | columns | processors | seconds | processor seconds | load | peak MB | "
        "peak to first | processor time a row to first |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in lines:
        like = next((x for x in lines if x["columns"] == one["columns"]), first)
        each = _marginal(one) / _marginal(like)
        rows.append(
            f"| {one['model']} | {one['rows']:,} | {one['columns']:,} | {one['workers']} | "
            f"{one['seconds']:,} | {one['cpu_seconds']:,} | {one['load']} | "
            f"{one['peak_memory_mb']:,} | {one['peak_memory_mb'] / first['peak_memory_mb']:.2f} | "
            f"{each:.2f} |"
        )
    rows += ["", plan_on_paper(lines), ""]
    (RESULTS / "scale.md").write_text("\n".join(rows), encoding="utf-8")


def _marginal(one: dict[str, Any]) -> float:
    """Processor seconds of the stages that grow with rows, for each row."""
    steady = ("plan", "training", "debit", "report")  # the last looks at a bounded sample
    grown = sum(s for name, s in one["stages_cpu"].items() if name not in steady)
    return float(grown) / float(one["rows"])


def plan_on_paper(lines: Sequence[dict[str, Any]]) -> str:
    """What a billion rows would take, from the largest line of 50 columns."""
    known = [one for one in lines if one["columns"] == 50]
    if not known:
        return ""
    largest = max(known, key=lambda one: one["rows"])
    each = _marginal(largest)
    hours = each * BILLION / 3600
    return (
        f"A billion rows of 50 columns, by the constants of {largest['rows']:,} rows "
        f"({1e6 * each:.1f} µs a row on one machine): {hours:.1f} hours."
    )
