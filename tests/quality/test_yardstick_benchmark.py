"""The yardstick's command: rules of the census by hand, and a file that is scored as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.yardstick import census

ROOT = Path(__file__).parents[2]
ADULT = {
    "AGEP": "40", "MSP": "1", "PINCP": "900", "EDU": "9", "DPHY": "2", "NOC": "1", "NPF": "3",
    "HOUSING_TYPE": "1", "OWN_RENT": "2", "INDP": "170", "INDP_CAT": "0",
}  # fmt: skip
CHILD = {"MSP": "N", "PINCP": "N", "INDP": "N", "INDP_CAT": "N"}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, None),
        ({"AGEP": "14"} | CHILD, None),
        ({"AGEP": "14"}, "age"),
        ({"AGEP": "14", "EDU": "12"} | CHILD, "age"),
        ({"AGEP": "2", "DPHY": "N"} | CHILD, "age"),
        ({"AGEP": "2", "DPHY": "N", "EDU": "N"} | CHILD, None),
        ({"MSP": "N"}, "age"),
        ({"AGEP": "15", "MSP": "N"}, None),
        ({"INDP": "N"}, "work"),
        ({"NOC": "3"}, "housing"),
        ({"HOUSING_TYPE": "3", "OWN_RENT": "0"}, "housing"),
        ({"HOUSING_TYPE": "3", "OWN_RENT": "0", "NOC": "N", "NPF": "N"}, None),
        ({"OWN_RENT": "0"}, "housing"),
    ],
)
def test_rules_of_the_census(changes, kind):
    found = census(pd.DataFrame([ADULT | changes]))
    wrong = {name for name, rows in found.items() if rows}
    assert wrong == (set() if kind is None else {f"census, {kind}", "census, any"})


def test_a_file_is_scored_as_it_is(tmp_path):
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["p", "q"] * 50, "n": range(100)})
    frame.to_csv(tmp_path / "real.csv", index=False)
    frame.assign(b="p").to_csv(tmp_path / "made.csv", index=False)
    command = [sys.executable, "benchmarks/yardstick.py", "--table", str(tmp_path / "real.csv")]
    command += ["--made", str(tmp_path / "made.csv"), "--group", "a"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    # (b, n) within a: every second row lies in another cell, Σ|p − q| = 1
    assert figures["k-marginal"] == 500.0 and figures["worst group"] == "y"
