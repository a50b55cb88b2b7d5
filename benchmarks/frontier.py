"""Every model and every peer that is there, on the same tables at the same ε, judged by one code.

    python benchmarks/frontier.py --tables adult,titanic,parity3,dependencies --epsilon .2,1,4 \
        --models pearl,p3gm,aim,mst,tabpe --seeds 3 --peers DIR --out benchmarks/results/NAME

Tables are those of `generated_tables.py`, and Adult and Titanic from the folder FACSIMILE_DATA;
`tuning` stands for all that constants are chosen on, `reported` for all that are reported.
Bounds and labels are declared public and the same for all. Every fit runs in a process of its own.
A peer runs in an environment of its own below DIR (`fitting.py` says which); one that is not there
is skipped with a word. NAME.json is written after every run, and a run that is in it is not
repeated unless `--again`, so a campaign can be stopped and taken up. NAME.md shows ratios against
the best peer and says where ours lose; NAME.html draws figures over ε.

Seconds are of the whole process, start included, on a machine that may do other work: upper bounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fitting import PEERS, FitError, absent, fit_and_sample
from benchmarks.frontier_figures import ceiling, judged
from benchmarks.frontier_page import curves, heading, markdown, table_words
from benchmarks.generated_tables import REPORTED, TUNING
from benchmarks.named_tables import REAL, NamedTable, load
from core.models.registry import cards

PROTOCOL = (
    "Classifiers learn from all synthetic rows and are tested on real rows that no model saw; "
    "TVD in 16 equal-width bins over the real range; C2ST by boosted trees on at most 20,000 rows "
    "a side, held out; association by |r|, correlation ratio or Cramér's V, lost among pairs above "
    "0.3; Wasserstein scores on 2,000 rows a side, mean of 3 draws."
)
PACKAGES = ("numpy", "pandas", "scikit-learn", "pot")


class Results:
    """The runs of one campaign, on disk after each.

    Attributes:
      runs: by identity; each holds what was asked, what was used, and figures or why it failed.
      ceilings: figures of learning from real rows, by table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.runs: dict[str, dict[str, Any]] = stored.get("runs", {})
        self.ceilings: dict[str, dict[str, float | None]] = stored.get("ceilings", {})

    def facts(self) -> dict[str, Any]:
        """All of it, as it is stored."""
        return {
            "protocol": PROTOCOL,
            "machine": {
                "cores": os.cpu_count(),
                "system": platform.system(),
                "python": platform.python_version(),
                "judged with": {name: version(name) for name in PACKAGES},
            },
            "ceilings": self.ceilings,
            "runs": self.runs,
        }

    def save(self) -> None:
        """Write the file whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partly = self.path.with_suffix(".partly")
        partly.write_text(json.dumps(self.facts(), indent=1, sort_keys=True), encoding="utf-8")
        partly.replace(self.path)


def identity(request: dict[str, Any]) -> str:
    """What tells one run from another, as text that can name a file."""
    rows = "" if request["rows"] is None else f"-{request['rows']}rows"
    changed = "".join(f"-{pair}" for pair in request["settings"])
    budget = f"e{request['epsilon']:g}-d{request['delta']:g}"
    return f"{request['table']}{rows}-{request['tool']}{changed}-{budget}-s{request['seed']}"


def requests(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every run that the command line asks for, and that can be run here."""
    runs = []
    for tool in options.models:
        if reason := absent(tool, options.peers):
            print(f"{tool} is skipped: {reason}", file=sys.stderr)
            continue
        settings = [
            pair.partition(":")[2] for pair in options.settings if pair.startswith(f"{tool}:")
        ]
        runs += [
            {
                "table": table,
                "rows": options.rows,
                "tool": tool,
                "epsilon": epsilon,
                "delta": options.delta,
                "seed": seed,
                "settings": settings,
            }
            for table in options.tables
            for epsilon in options.epsilon
            for seed in range(options.first_seed, options.first_seed + options.seeds)
        ]
    return sorted(runs, key=lambda run: options.tables.index(run["table"]))  # stable otherwise


def run_one(
    request: dict[str, Any], table: NamedTable, options: argparse.Namespace
) -> dict[str, Any]:
    """What one run reached, or why it failed."""
    done = request | {"date": datetime.now(UTC).date().isoformat()}
    try:
        fit = fit_and_sample(
            request["tool"],
            table,
            epsilon=request["epsilon"],
            delta=request["delta"],
            seed=request["seed"],
            settings=tuple(request["settings"]),
            peers=options.peers,
            threads=options.threads,
            limit=options.limit,
        )
    except FitError as error:
        return done | {"failed": str(error)}
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        fit.frame.to_parquet(options.keep / f"{identity(request)}.parquet", index=False)
    figures = judged(table, fit.frame, request["seed"], ten=options.ten)
    figures |= {"seconds": fit.seconds, "memory_mb": fit.memory_mb}
    used = {"used": fit.settings, "versions": fit.versions, "load": fit.load}
    return done | used | {"trained": len(table.train), "figures": figures}


def judge_again(results: Results, options: argparse.Namespace) -> None:
    """Figures of kept tables by today's code, for the runs asked for; nothing is fitted."""
    renewed: set[str] = set()
    for request in requests(options):
        key = identity(request)
        path = options.keep / f"{key}.parquet"
        if key in results.runs and path.exists():
            table = load(request["table"], request["seed"], request["rows"])
            words = table_words(request)
            if words not in renewed:
                results.ceilings[words] = ceiling(table)
                renewed.add(words)
            figures = judged(table, pd.read_parquet(path), request["seed"], ten=options.ten)
            results.runs[key].setdefault("figures", {}).update(figures)
            results.save()
            print(f"{key}: judged", file=sys.stderr, flush=True)


def campaign(results: Results, options: argparse.Namespace) -> None:
    """Run what is asked for and not there, and store each as it is done."""
    for request in requests(options):
        key = identity(request)
        if key in results.runs and not options.again:
            print(f"{key}: there already", file=sys.stderr)
            continue
        table = load(request["table"], request["seed"], request["rows"])
        words = table_words(request)
        if words not in results.ceilings:
            results.ceilings[words] = ceiling(table)
        print(f"{key} …", file=sys.stderr, flush=True)
        results.runs[key] = run_one(request, table, options)
        results.save()
        run = results.runs[key]
        words = run.get("failed") or f"{run['figures']['seconds']:.0f} s"
        print(f"{key}: {words}", file=sys.stderr, flush=True)


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _tables(text: str) -> list[str]:
    families = {"tuning": TUNING, "reported": (*REAL, *REPORTED)}
    names = [name for part in _names(text) for name in families.get(part, (part,))]
    known = (*families, *TUNING, *REAL, *REPORTED)
    for name in names:
        if name not in known:
            words = f"no table is called '{name}'; there are: {', '.join(known)}"
            raise argparse.ArgumentTypeError(words)
    return list(dict.fromkeys(names))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    ours = [card.id for card in cards()]
    parser.add_argument("--tables", type=_tables, required=True, metavar="A,B")
    parser.add_argument("--models", type=_names, default=[*ours, *PEERS], metavar="A,B")
    parser.add_argument("--epsilon", type=_numbers, default=[1.0], metavar="E,E")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="to train on; a table's own number")
    parser.add_argument("--settings", nargs="*", default=[], metavar="TOOL:NAME=VALUE")
    parser.add_argument("--peers", type=Path, help="folder of peers' environments and checkouts")
    parser.add_argument("--threads", type=int, default=1, help="a fit may compute with")
    parser.add_argument("--limit", type=float, help="seconds after which a fit is ended")
    parser.add_argument("--ten", action="store_true", help="ten kinds of classifiers too")
    parser.add_argument("--again", action="store_true", help="repeat runs that are there")
    parser.add_argument("--keep", type=Path, help="folder for synthetic tables")
    parser.add_argument("--judge", action="store_true", help="judge kept tables again, fit nothing")
    parser.add_argument("--out", type=Path, required=True, help="path without an ending")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    for tool in options.models:
        if tool not in (*ours, *PEERS):
            parser.error(f"no model is called '{tool}'; there are: {', '.join((*ours, *PEERS))}")
    if options.judge and options.keep is None:
        parser.error("--judge needs --keep, the folder that holds the tables")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run, judge, write, print. Exit code 0."""
    options = parse(arguments)
    results = Results(options.out.with_suffix(".json"))
    (judge_again if options.judge else campaign)(results, options)
    facts = results.facts()
    page = heading(facts) + markdown(results.runs, results.ceilings, tuple(PEERS))
    options.out.with_suffix(".md").write_text(page, encoding="utf-8")
    curves(results.runs, results.ceilings, tuple(PEERS), options.out.with_suffix(".html"))
    print(page)
    if options.json:
        print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
