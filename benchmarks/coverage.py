"""How often intervals hold the truth: figures of synthetic tables with their error bars.

    python -m benchmarks.coverage --runs 50 --epsilon .3,1,4 --shapes 6 --json

Each run draws a table of a known law, makes a synthetic one, and replicas of that
(`core.inference`). For every number that is asked, the interval of the replicas and the one that
somebody would compute who takes synthetic rows for records are compared with the truth. Answers of
every run are kept in a folder, so that a campaign may stop and go on. Runs without replicas take a
twentieth of the time, and tell an oracle how far published values lie from the truth.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.stats import norm

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.coverage_shapes import SHAPES, Shape, answers
from core.encoding.codec import Codec
from core.inference.estimates import Estimates, Scale
from core.inference.intervals import chance_of_none, interval_ends
from core.inference.refitting import Refitting
from core.models.events import FitEvent, Signal
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.saved_model import SavedModel
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
DELTA = 1e-6
LEVELS = (0.9, 0.95)
OF = ("table", "population")
SCALES: dict[str, Scale] = {"share": "share", "pair cell": "share", "pair of ranges": "share"}
FEWEST_RUNS = 5  # from which an oracle knows how far values lie from the truth
TEST = "two-group test"  # whether a difference that is not there is found, at 5 %
DIFFERENCE, THERE = "group difference", "difference that is there"
# A smaller model than the product's own, so that many runs are possible.
SETTINGS: dict[str, dict[str, Any]] = {
    "scan_focus": {
        "steps": 200,
        "trainings": 2,
        "preliminary_steps": 60,
        "members": 4,
        "components": 60,
        "hidden": 64,
    },
    "pearl": {"steps": 300, "frequencies": 1000, "batch": 256, "hidden": 64},
}


@dataclass(frozen=True)
class Measured:
    """What one run and its replicas answer.

    Attributes:
      real, published: [questions, 2], estimates and naive standard errors.
      sources, drawn: [replicas, questions, 2], of each replica's two tables; none of a run alone.
    """

    real: Floats
    published: Floats
    sources: Floats
    drawn: Floats

    def truth(self, of: str, population: Floats) -> Floats:
        """What intervals should hold, [questions]."""
        return self.real[:, 0] if of == "table" else population

    def ends(self, scales: tuple[Scale, ...], level: float) -> dict[str, Floats]:
        """Low and high of the intervals for the table and the population, [2, questions] each."""
        found = interval_ends(*self._estimates(scales), level=level)
        return dict(zip(OF, found, strict=True))

    def chances(self, scales: tuple[Scale, ...]) -> Floats:
        """Of the test that values are 0 in the population, [questions]."""
        return chance_of_none(*self._estimates(scales))

    def _estimates(
        self, scales: tuple[Scale, ...]
    ) -> tuple[Estimates, list[Estimates], list[Estimates]]:
        names = tuple((str(i),) for i in range(len(scales)))

        def one(answered: Floats) -> Estimates:
            return Estimates(names, *answered.T, scales, rows=1, most=1)

        sources, drawn = ([one(table) for table in side] for side in (self.sources, self.drawn))
        return one(self.published), sources, drawn


def measure(
    shape: Shape, epsilon: float, seed: int, options: argparse.Namespace, replicas: int
) -> Measured:
    """One run, and what its tables answer."""
    model, domain = synthesizer(options.model), shape.schema.domain()
    budget = Budget(epsilon=epsilon, delta=DELTA)
    plan = plan_fit(model, domain, shape.rows, budget, SETTINGS[options.model])
    table = shape.table(seed)
    rows = PrivateTable(Codec(domain).encode(table), domain, plan)
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=_go_on, folder=Path(folder), seed=seed)
        fitted = SavedModel.of(model.fit(rows, plan, context))
    made = Refitting(model=model, fitted=fitted, plan=plan, schema=shape.schema, rows=shape.rows)
    both = np.zeros((2, replicas, len(shape.questions), 2))
    for number in range(replicas):
        one = made.replica(1000 * seed + number, _go_on)
        both[:, number] = answers(shape, one.source), answers(shape, one.drawn)
    sources, drawn = both
    published = answers(shape, fitted.sample(shape.rows, seed))
    return Measured(answers(shape, table), published, sources, drawn)


def _go_on(event: FitEvent) -> Signal:
    return Signal.GO_ON


def campaign(options: argparse.Namespace) -> Iterator[tuple[Shape, float, list[Measured]]]:
    """All runs of each shape and ε; those that are kept are not made again."""
    options.keep.mkdir(parents=True, exist_ok=True)
    shapes = list(SHAPES.values())[: options.shapes]
    for seed in _seeds(options):
        replicas = options.replicas if seed >= options.first else 0
        for shape, epsilon in ((s, e) for e in options.epsilon for s in shapes):
            file = _file(options.keep, shape, epsilon, seed)
            if not options.gather and not file.exists():
                np.savez(file, **vars(measure(shape, epsilon, seed, options, replicas)))
                print(f"{shape.name}, ε = {epsilon:g}, run {seed}", file=sys.stderr, flush=True)
    for shape, epsilon in ((s, e) for s in shapes for e in options.epsilon):
        files = [_file(options.keep, shape, epsilon, seed) for seed in _seeds(options)]
        yield shape, epsilon, [_read(file) for file in files if file.exists()]


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first - options.alone, options.first + options.runs)


def _file(folder: Path, shape: Shape, epsilon: float, seed: int) -> Path:
    return folder / f"{shape.name.replace(' ', '-')}_{epsilon:g}_{seed}.npz"


def _read(file: Path) -> Measured:
    with np.load(file) as kept:
        return Measured(**{name: kept[name] for name in kept.files})


def judged(
    shape: Shape, epsilon: float, runs: list[Measured], population: Floats
) -> Iterator[pd.DataFrame]:
    """A row for every interval: of which statistic, whether it held, and how wide it is.

    The oracle knows how far published values lie from the truth in all runs, those alone too.
    """
    statistics = [question.statistic for question in shape.questions]
    null = np.array([question.null for question in shape.questions])
    scales = tuple(SCALES.get(one, "number") for one in statistics)
    for of in OF:
        errors = [run.published[:, 0] - run.truth(of, population) for run in runs]
        typical = np.sqrt(np.nanmean(np.square(errors), axis=0))
        typical = typical if len(runs) >= FEWEST_RUNS else np.full_like(typical, np.nan)
        for level in LEVELS:
            z = norm.ppf(0.5 + level / 2.0)
            for run, error in zip(runs, errors, strict=True):
                if not len(run.sources):
                    continue
                low, high = run.ends(scales, level)[of]
                half, naive = (high - low) / 2, z * run.published[:, 1]
                truth = run.truth(of, population)
                rows = pd.DataFrame(
                    {
                        "statistic": statistics,
                        "epsilon": epsilon,
                        "of": of,
                        "level": level,
                        "shape": shape.name,
                        "coverage": (low <= truth) & (truth <= high),
                        "naive": np.abs(error) <= naive,
                        "width": half / (z * np.maximum(typical, 1e-12)),
                    }
                )
                rows = rows[np.isfinite(half) & np.isfinite(error)]
                yield rows
                there = rows[(rows["statistic"] == DIFFERENCE) & ~null[rows.index]]
                yield there.assign(statistic=THERE)
                if of == "population":
                    quiet = rows[null[rows.index]]
                    missed = run.chances(scales)[quiet.index] >= 1.0 - level
                    yield quiet.assign(statistic=TEST, coverage=missed, width=np.nan)


def summary(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each statistic, ε, level and truth: shares that held, median width, how many."""
    shapes = list(SHAPES.values())[: options.shapes]
    populations = {one.name: answers(one, one.population)[:, 0] for one in shapes}
    rows = pd.concat(
        part
        for shape, epsilon, runs in campaign(options)
        if runs
        for part in judged(shape, epsilon, runs, populations[shape.name])
    )
    by = ["statistic", "epsilon", "of", "level", *(["shape"] if options.by_shape else [])]
    grouped = rows.groupby(by, sort=True)
    found = grouped[["coverage", "naive"]].mean().join(grouped["width"].median())
    found["intervals"] = grouped.size()
    found = found.round(4).reset_index().astype(object)
    return found.where(found.notna(), None).to_dict("records")


def runs_kept(options: argparse.Namespace) -> dict[str, int]:
    """How many runs with replicas there are, by ε."""
    kept = [file.stem.rsplit("_", 2) for file in options.keep.glob("*.npz")]
    kept = [one for one in kept if 0 <= int(one[2]) - options.first < options.runs]
    return {f"{e:g}": sum(float(one[1]) == e for one in kept) for e in options.epsilon}


def markdown(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """The page of results, at 95 %."""
    shapes = list(SHAPES)[: options.shapes]
    lines = [
        "# How often intervals hold the truth",
        "",
        "    python -m benchmarks.coverage --runs "
        f"{options.runs} --first {options.first} --alone {options.alone} --epsilon "
        f"{','.join(f'{e:g}' for e in options.epsilon)} --shapes {options.shapes} "
        f"--model {options.model}",
        "",
        f"{len(shapes)} shapes of 3,000 to 4,000 rows ({', '.join(shapes)}); {options.replicas} "
        "replicas a run; a smaller model than the product's own: "
        + ", ".join(f"{name} {value}" for name, value in SETTINGS[options.model].items())
        + ". Runs of all shapes together: "
        + ", ".join(f"{count} at ε = {e}" for e, count in runs_kept(options).items())
        + ". Intervals were developed on runs 0 to 3, 100 to 103 and 300 to 302 of the same "
        "shapes, the test on 400 to 449.",
        "",
        "Intervals at 95 %. *Naive*: as if synthetic rows were records. *Width*: beside an "
        "oracle's, which knows how far published values lie from the truth in all runs and in "
        f"{options.alone} without replicas; not told of fewer than {FEWEST_RUNS} runs of a shape.",
        "",
        "| statistic | of | ε | covers | naive | width | intervals |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['statistic']} | {r['of']} | {r['epsilon']:g} | {r['coverage']:.1%} | "
        f"{r['naive']:.1%} | {_shown(r['width'])} | {r['intervals']:,} |"
        for r in rows
        if r["level"] == LEVELS[-1]
    ]
    lines += [
        "",
        f"*{TEST}*: of differences that are not there, those not found at 5 %; 100 % less this is "
        f"the share of false alarms. *{THERE}*: all others.",
        "",
    ]
    return "\n".join(lines)


def _shown(width: float | None) -> str:
    return "–" if width is None else f"{width:.2f}"


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    """Coverage over ε, a picture a statistic; the page loads plotly.js from its network."""
    table = pd.DataFrame(rows)
    table = table[(table["level"] == LEVELS[-1]) & (table["of"] == "population")]
    names = sorted(table["statistic"].unique())
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True)
    for at, name in enumerate(names, start=1):
        own = table[table["statistic"] == name].sort_values("epsilon")
        for key, colour in (("coverage", "#1f77b4"), ("naive", "#888888")):
            figure.add_scatter(
                x=own["epsilon"], y=own[key], name=key, legendgroup=key, showlegend=at == 1,
                mode="lines+markers", line={"color": colour}, row=1, col=at,
            )  # fmt: skip
        figure.add_hline(y=LEVELS[-1], line={"dash": "dot", "color": "#888888"}, row=1, col=at)
    figure.update_xaxes(type="log", title="ε")
    figure.update_layout(height=360, width=260 * len(names), template="simple_white")
    figure.write_html(path, include_plotlyjs="cdn", div_id="coverage")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of a campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="of each shape and ε")
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--alone", type=int, default=0,
                        help="runs without replicas, of the seeds before the first")  # fmt: skip
    parser.add_argument("--epsilon", default=".3,1,4", help="values, with commas")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="the first so many")
    parser.add_argument("--model", choices=sorted(SETTINGS), default="scan_focus")
    parser.add_argument("--replicas", type=int, default=20, help="of each run")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "coverage",
                        help="folder of what runs answered")  # fmt: skip
    parser.add_argument("--gather", action="store_true", help="make no run; take those kept")
    parser.add_argument("--by-shape", action="store_true", help="a row for each shape too")
    parser.add_argument("--out", type=Path, help="folder for coverage.md, .json and .html")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args(arguments)
    options.epsilon = [float(one) for one in options.epsilon.split(",")]
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write what was found."""
    options = parse(arguments)
    torch.set_num_threads(1)  # of runs this small more are slower
    rows = summary(options)
    told = {
        "rows": rows,
        "runs": runs_kept(options),
        "replicas": options.replicas,
        "settings": SETTINGS[options.model],
    }
    if options.out is not None:
        file = options.out / (
            "coverage" if options.model == "scan_focus" else f"coverage_{options.model}"
        )
        file.with_suffix(".md").write_text(markdown(rows, options), encoding="utf-8")
        file.with_suffix(".json").write_text(json.dumps(told, indent=1), encoding="utf-8")
        picture(rows, file.with_suffix(".html"))
    print(json.dumps(told) if options.json else markdown(rows, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
