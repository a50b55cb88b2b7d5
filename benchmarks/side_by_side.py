"""Real and synthetic figures side by side, for benchmarks that make tables up."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from benchmarks.histories import _go_on
from core.proposing.propose import infer_schema
from core.reading.raw_cells import raw_frame
from core.services.linking.files import LinkedFile, link_all
from core.services.linking.unlinking import unlink
from core.services.synthesis.options import options_of
from core.services.synthesis.schema_options import with_schema
from core.services.synthesis.synthesize import synthesize

Made = TypeVar("Made")
Files = dict[str, pd.DataFrame]  # by name, people first


def compare(
    about: str | None,
    size: tuple[str, int],
    arguments: Sequence[str] | None,
    *,
    real: Callable[[int, int], Made],
    synthetic: Callable[[Made, argparse.Namespace, int], Made],
    figures: Callable[[Made], dict[str, float]],
) -> int:
    """Make, judge, print, in a workspace that is thrown away. Exit code 0.

    Args:
      about: what a benchmark says of itself; its first line tells what it is.
      size: an option's name and default, of how much is made up.
      real: what is made up of a size, with a seed.
      synthetic: what a fit makes of that, by the options and a seed.
    """
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument(f"--{size[0]}", type=int, default=size[1])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    found: dict[str, list[dict[str, float]]] = {"real": [], "synthetic": []}
    with tempfile.TemporaryDirectory() as home:
        os.environ["FACSIMILE_HOME"] = home
        for seed in range(options.seeds):
            own = real(getattr(options, size[0]), seed)
            made = synthetic(own, options, seed)
            for side, tables in (("real", own), ("synthetic", made)):
                found[side].append(figures(tables))
    _print_means(found)
    return 0


def synthetic_files(
    real: Files,
    options: argparse.Namespace,
    seed: int,
    *,
    keys: Sequence[str],
    order: str | None = None,
) -> Files:
    """Linked files, of which nothing is declared, as a run makes them.

    Args:
      keys: the column of each that says who, see `core.services.linking.files.link_all`.
    """
    files = [
        LinkedFile(raw_frame(frame), infer_schema(frame), name, key)
        for (name, frame), key in zip(real.items(), keys, strict=True)
    ]
    linked = link_all(files, order=order)
    given = {"epsilon": options.epsilon, "model": "scan_focus", "people": "new", "seed": seed}
    asked = options_of(given, table=next(iter(real)), declared=False)
    done = synthesize(asked, *with_schema(asked, linked.rows, linked.schema), on_event=_go_on)
    return {n: f for n, (f, _) in unlink(done.outcome.tables.synthetic, done.schema).items()}


def _print_means(found: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    """Each figure of each side: the mean of its runs, and their range."""
    print("| | " + " | ".join(found) + " |\n" + "|---" * (len(found) + 1) + "|")
    for name in next(iter(found.values()))[0]:
        cells = []
        for runs in found.values():
            values = [run[name] for run in runs]
            cells.append(f"{np.mean(values):.2f} ({min(values):.2f}–{max(values):.2f})")
        print(f"| {name} | {' | '.join(cells)} |")
