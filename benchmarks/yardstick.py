"""NIST's yardstick and census rules on tables that one model makes, nothing named by hand.

    FACSIMILE_DATA=… python benchmarks/yardstick.py --epsilon 1,10 --seeds 3 --json FILE.json
    python benchmarks/yardstick.py --columns demographic
    python benchmarks/yardstick.py --table TABLE.csv --group COLUMN
    python benchmarks/yardstick.py --made synthetic.csv               score a file, fit nothing

Without `--table` it is NIST's national2019. Lists and bounds are declared public unseen, as peers
get them; with `--learned` the run learns them; with `--suggested` the rules that a steward would be
asked about hold. The k-marginal score is of pairs of columns within
`--group` (PUMA where it is there), with the same numeric columns for every model. Records that
contradict themselves are counted by pairs of values that real rows never show, and by the rules of
NIST SDNist 2.5 for the census.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from core.quality.comparison import Comparison
from core.quality.metrics.broken_rules import inconsistent_rows
from core.quality.metrics.yardstick import yardsticks
from core.schema.column import Column, Kind
from core.schema.schema import Schema

ROOT = Path(__file__).resolve().parents[1]
DEMOGRAPHIC = "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE".split()
COUNTS, CODES = ("NOC", "NPF"), ("INDP",)  # of few values, and no numbers: NIST's dictionary
AS_WRITTEN: dict[str, Any] = {"dtype": str, "keep_default_na": False}
FEW = 20  # different numbers that are codes


def scored(real: pd.DataFrame, made: pd.DataFrame, group: str | None) -> dict[str, Any]:
    """Figures of a synthetic table, cells as text; columns that it lacks count as missing."""
    kinds = {}
    frames = [real.copy(), made.copy()]
    for name in real:
        numbers = pd.to_numeric(real[name], errors="coerce")
        long = numbers.nunique() > FEW and numbers.notna().mean() > 0.3 and name not in CODES
        kinds[name] = Kind.NUMBER if long or name in COUNTS else Kind.CATEGORY
        if kinds[name].numeric:
            for frame in frames:
                if name in frame:
                    frame[name] = pd.to_numeric(frame[name], errors="coerce")
    columns = [Column(name=name, kind=kind, missing=True) for name, kind in kinds.items()]
    schema = Schema(columns=tuple(columns))
    tables = Comparison.open(*frames, schema, grouping=(() if group is None else (group,), 2))
    first = yardsticks(tables, lambda *_: None).parts["yardsticks"][0]
    (pairs,) = inconsistent_rows(tables, lambda *_: None).scores
    figures: dict[str, Any] = {"k-marginal": round(first.score, 1)}
    figures["as close as % of rows"] = round(100 * first.as_close_as, 2)
    if first.groups:
        figures |= {"worst group": first.groups[0][0], "its score": first.groups[0][1]}
    figures |= {"contradict themselves": pairs.value, "most": str(pairs.note)}
    for source, result in (("PUMA", "DENSITY"), ("INDP", "INDP_CAT")):
        if {source, result} <= {*real} & {*made}:
            known = dict(zip(real[source], frames[0][result], strict=True))
            right = frames[1][result] == made[source].map(known)
            figures[f"{result} follows {source}"] = float(right.mean())
    if "AGEP" in made:
        figures |= census(made)
    return figures


def census(made: pd.DataFrame) -> dict[str, int]:
    """Records that break a rule of NIST's for the census, by kind; `N` is not applicable."""

    def number(name: str) -> pd.Series:
        return pd.to_numeric(made.get(name, pd.Series("", made.index)), errors="coerce")

    def blank(names: str) -> pd.DataFrame:
        return made[[name for name in names.split() if name in made]] == "N"

    def any_blank(names: str) -> pd.Series:
        return blank(names).any(axis=1)

    def any_said(names: str) -> pd.Series:
        return ~blank(names).all(axis=1)

    age, education, housing, tenure = map(number, ("AGEP", "EDU", "HOUSING_TYPE", "OWN_RENT"))
    adult = "MSP PINCP PINCP_DECILE"
    by_age = (age < 15) & (any_said(f"{adult} DVET INDP INDP_CAT") | (education >= 12))
    by_age |= (age < 5) & (any_said("DPHY DREM") | (education >= 5))
    by_age |= ((age < 3) & any_said("EDU")) | ((age > 15) & any_blank(f"{adult} EDU DPHY DREM"))
    work = any_blank("INDP INDP_CAT") & any_said("INDP INDP_CAT")
    house = (housing > 1) & (any_said("NOC NPF") | (tenure > 0))
    house |= (housing == 1) & ((tenure == 0) | any_blank("NOC"))
    house |= number("NOC") >= number("NPF")
    kinds = {"age": by_age, "work": work, "housing": house, "any": by_age | work | house}
    return {f"census, {name}": int(rows.sum()) for name, rows in kinds.items()}


def suggested(real: Path) -> list[str]:
    """The rules that the product suggests to a steward from the rows."""
    command = [sys.executable, "-m", "core.cli", "schema", str(real), "--out"]
    command += [str(real.with_suffix(".json"))]
    home = {"FACSIMILE_HOME": str(real.parent / "home")}
    said = subprocess.run(
        command, cwd=ROOT, env=os.environ | home, check=True, capture_output=True, text=True
    ).stderr
    return re.findall(r"^suggestion: --rule '(.*)' \(", said, flags=re.MULTILINE)


def fitted(real: Path, epsilon: float, seed: int, options: argparse.Namespace) -> Path:
    """A synthetic table from the command line, in a workspace of its own."""
    out = real.parent / f"made-{epsilon:g}-{seed}.csv"
    command = [sys.executable, "-m", "core.cli", "synth", str(real), "--model", options.model]
    command += ["--epsilon", f"{epsilon:g}", "--delta", f"{options.delta:g}", "--seed", str(seed)]
    command += [] if options.learned else ["--declare-public"]
    command += [word for rule in options.rules for word in ("--rule", rule)]
    home = {"FACSIMILE_HOME": str(real.parent / f"home-{epsilon:g}-{seed}")}
    command += ["--quiet", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=os.environ | home, check=True)
    return out


def main() -> int:
    """Fit, score, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    census_table = Path(os.environ.get("FACSIMILE_DATA", ".")) / "nist" / "national2019.csv"
    parser.add_argument("--table", type=Path, default=census_table)
    parser.add_argument("--columns", default="all", help="all, demographic, or A,B,C")
    parser.add_argument("--group", help="PUMA where it is there")
    parser.add_argument("--model", default="scan_focus")
    parser.add_argument("--epsilon", default="1", help="one or several, by commas")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--learned", action="store_true", help="declare nothing public")
    parser.add_argument("--suggested", action="store_true", help="declare all suggested rules")
    parser.add_argument("--made", type=Path, help="a synthetic table to score instead of fitting")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    real = pd.read_csv(options.table, **AS_WRITTEN)
    names = {"all": list(real), "demographic": DEMOGRAPHIC}
    real = real[names.get(options.columns) or options.columns.split(",")]
    group = options.group or ("PUMA" if "PUMA" in real else None)
    found = []
    with tempfile.TemporaryDirectory(prefix="yardstick-") as name:
        path = Path(name) / "real.csv"
        real.to_csv(path, index=False)
        options.rules = suggested(path) if options.suggested else []
        for epsilon in map(float, options.epsilon.split(",")):
            for seed in range(1 if options.made else options.seeds):
                began = time.perf_counter()
                out = options.made or fitted(path, epsilon, seed, options)
                seconds = time.perf_counter() - began
                figures = scored(real, pd.read_csv(out, **AS_WRITTEN), group)
                if not options.made:
                    figures |= {"epsilon": epsilon, "seed": seed, "seconds": seconds}
                print(json.dumps(figures, ensure_ascii=False), flush=True)
                found.append(figures)
                if options.json:
                    options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
