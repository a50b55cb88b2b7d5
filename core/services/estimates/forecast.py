"""What Plan foretells: how near a run may come and how long it takes; which model to take.

All of it comes from `forecast.json`, which `benchmarks/forecast.py` measured on generated tables.
No row of anybody's table is read: what is asked is how many rows and columns there are, and ε.

Between what was measured, figures are interpolated along the logarithms of ε and of the number of
records. Noise on a share goes with 1/(n·ε), so a table of more or fewer records than measured is
looked up at the nearest number, with ε that much larger or smaller.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from core.encoding.layout.layout import Layout
from core.message import Message, joined, to_say
from core.models.registry import cards, synthesizer
from core.privacy.accounting.accountant import EXACT
from core.privacy.accounting.attacker import best_attack, gaussian_attack
from core.privacy.discovery.open_domain import stand_in
from core.privacy.plan import Guarantee, Plan
from core.schema.column import SchemaError
from core.schema.schema import Schema

FILE = Path(__file__).with_name("forecast.json")
NEAREST = 3  # tables, by how many columns they have
UNUSABLE_DISTANCE = 0.10  # distance of single columns: one row in ten lies elsewhere
CLEARLY = 0.03  # two models differ when their losses do by more than this
USUAL = "scan_focus"  # unless another was clearly nearer: it alone sees what pairs do not show


@dataclass(frozen=True)
class Range:
    """What was measured: the mean over tables, and the tables' lowest and highest."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Forecast:
    """What runs like this came to on generated tables.

    Attributes:
      tvd_1way, tvd_2way: mean distance of single columns, and of pairs, in [0, 1]; lower is closer.
      learnt: what learning the target from synthetic rows reaches, of what real rows reach, both
        counted from guessing, in [0, 1]; higher is closer.
      columns: of the tables it comes from, fewest and most.
      beyond: whether the table is much wider than any of them, so that this is a guess.
    """

    tvd_1way: Range
    tvd_2way: Range
    learnt: Range
    columns: tuple[int, int]
    tables: int
    beyond: bool


@dataclass(frozen=True)
class Advice:
    """A model and why.

    Attributes:
      sentence: with the evidence.
    """

    model: str
    sentence: str


def modelled_columns(schema: Schema) -> int:
    """How many columns are learned of a table, or of the windows of its histories; public."""
    if schema.walked:
        with suppress(SchemaError):
            return len(Layout(stand_in(schema).domain()).domain.columns)
    return sum(column.modelled for column in schema.columns)


def effective_epsilon(plan: Plan) -> float:
    """What is left of ε for the model itself, as if one record were one person and one attempt."""
    own = plan.phases[: len(plan.phases) - plan.added]
    share = min(1.0, math.fsum(phase.share for phase in own))
    return plan.budget.epsilon * share / (plan.rows_of_one * plan.attempts)


def expect(model: str, *, n: int, columns: int, epsilon: float) -> Forecast | None:
    """What runs of a model came to on generated tables like this one; None where none was measured.

    Args:
      n: records that are trained on, ≥ 1.
      columns: that models see, ≥ 1.
      epsilon: of the model itself, see `effective_epsilon`; > 0, inf counts as the most measured.
    """
    curves = _curves().get(model, {})
    near = sorted(curves, key=lambda name: abs(math.log(_width(curves[name]) / columns)))[:NEAREST]
    if not near:
        return None
    widths = [_width(curves[name]) for name in near]
    ranges = {}
    for figure in ("tvd_1way", "tvd_2way", "learnt"):
        values = [_read(curves[name], figure, n, epsilon) for name in near]
        ranges[figure] = Range(float(np.mean(values)), min(values), max(values))
    return Forecast(
        **ranges,
        columns=(min(widths), max(widths)),
        tables=len(near),
        beyond=columns > 2 * max(_width(rows) for rows in curves.values()),
    )


def prospects(
    plan: Plan, *, columns: int, epsilons: Sequence[float], claim: Guarantee
) -> list[dict[str, Any]]:
    """What a private plan would come to at each ε, for `prospects_figure`; from public numbers.

    Args:
      claim: of the plan, with what earlier runs learned for it.
    """
    points: list[dict[str, Any]] = []
    more = max(0.0, claim.epsilon - plan.guarantee.epsilon)
    exact = plan.guarantee.method == EXACT and not more
    for at in epsilons:
        part = at / plan.budget.epsilon
        one = expect(plan.model, n=plan.n, columns=columns, epsilon=part * effective_epsilon(plan))
        spent = at + more, claim.delta
        attack = gaussian_attack(*spent) if exact else best_attack(None, *spent)
        points.append({"epsilon": at, "attacker": [attack.right] * 3})
        if one is not None:
            far, learnt = one.tvd_2way, one.learnt
            points[-1]["pairs"] = [1.0 - x for x in (far.mean, far.high, far.low)]
            points[-1]["learnt"] = [learnt.mean, learnt.low, learnt.high]
    return points


def drowned(*, n: int, columns: int, epsilon: float) -> bool:
    """Whether noise decides what comes out: no measured model kept even single columns."""
    asked = [expect(model, n=n, columns=columns, epsilon=epsilon) for model in _curves()]
    return all(one is not None and one.tvd_1way.mean > UNUSABLE_DISTANCE for one in asked)


def expected_seconds(
    plan: Plan, *, columns: int, speed: float, table_rows: int = 0
) -> float | None:
    """Seconds of a fit on one idle core of this machine; None where the model was not timed.

    Args:
      plan: says which model, how many records and steps.
      table_rows: as many windows of histories there are at most.
      speed: `core.services.estimates.run_progress.machine_seconds` of this machine.
    """
    facts = _facts()
    timed = [row for row in facts.get("pace", ()) if row["model"] == plan.model]
    if not timed:
        return None
    widths = {row["columns"] for row in timed}
    width = min(widths, key=lambda known: abs(math.log(known / columns)))
    rows = sorted((r for r in timed if r["columns"] == width), key=lambda r: float(r["n"]))
    n, unit = plan.n, plan.unit
    if unit is not None and unit.walked:
        n = max(n, min(table_rows, n * (unit.most_windows - 1)))
    row = min(rows, key=lambda r: abs(math.log(r["n"] / n)))
    seconds = float(row["fixed"]) * n / row["n"]
    for setting, each in row["per_step"].items():
        seconds += float(each) * float(plan.settings.get(setting, 0))
    wider = max(1.0, columns / max(widths))  # beyond what was timed: at least so much more
    return float(seconds * wider * speed / float(facts["matrix_seconds"]))


def seconds_range(seconds: float, *, measured: bool) -> tuple[float, float]:
    """What so many expected seconds may become: at best, and with what else this machine does.

    Args:
      measured: whether they were scaled from a run of the same table, not from benchmark runs.
    """
    low, high = (0.7, 1.5) if measured else (0.5, 3.0)
    busy = max(1.0, (os.getloadavg()[0] + 1.0) / (os.cpu_count() or 1))
    return seconds * low, seconds * high * busy


def advise(
    *, n: int, columns: int, epsilon: float, target: bool, tagged: int = 0, rows_of_one: int = 1
) -> Advice:
    """The model that came nearest on generated tables like this one, and why.

    Args:
      n: records that are trained on, ≥ 1.
      epsilon: of the budget; inf counts as the most measured.
      target: whether there is a column to predict.
      tagged: columns whose distribution is to be hidden.
      rows_of_one: rows that a person may have each for itself; noise is as much wider.
    """
    own = epsilon / rows_of_one
    if drowned(n=n, columns=columns, epsilon=own):
        words = to_say(
            "**{model}** is the usual choice: with so few records and this ε, noise decides what "
            "comes out of every model."
        )
        return Advice(USUAL, Message(words, model=_name(USUAL)))
    asked = {model: expect(model, n=n, columns=columns, epsilon=own) for model in _curves()}
    known = {model: one for model, one in asked.items() if one is not None}
    losses = {model: _loss(one, target) for model, one in known.items()}
    best = min(losses, key=lambda model: losses[model])
    chosen = USUAL if losses.get(USUAL, math.inf) <= losses[best] + CLEARLY else best
    one = known[chosen]
    first, *more = dict.fromkeys(one.columns)
    width = Message("{n}", n=first)
    if more:
        width = Message("{first} to {last}", first=first, last=more[-1])
    sentences = [
        Message(
            "**{model}** is recommended: on {n} generated tables of {width} columns with as many "
            "rows and this ε, after few training steps, no other model came clearly closer.",
            model=_name(chosen),
            n=one.tables,
            width=width,
        )
    ]
    if tagged:
        able = ", ".join(card.name for card in cards() if card.protects)
        sentences.append(
            Message(
                "Tagged columns are shifted whichever model you choose; only {models} can do "
                "without a shift.",
                models=able,
            )
        )
    return Advice(chosen, joined(sentences))


def advise_for(schema: Schema, *, n: int, epsilon: float) -> Advice:
    """The advice for a table, from its shape alone."""
    person = schema.person
    if schema.walked:
        words = to_say(
            "**{model}** is recommended: of the models that learn how a person's rows follow on "
            "one another, it came closest."
        )
        return Advice(USUAL, Message(words, model=_name(USUAL)))
    return advise(
        n=n,
        columns=modelled_columns(schema),
        epsilon=epsilon,
        target=schema.target is not None,
        tagged=sum(len(columns) for columns in schema.sensitive.values()),
        rows_of_one=1 if person is None or person.grouped else person.rows,
    )


def _loss(one: Forecast, target: bool) -> float:
    """What is lost: the distance of pairs and, where there is a target, what is not learnt."""
    return one.tvd_2way.mean + (1.0 - one.learnt.mean if target else 0.0)


def _name(model: str) -> str:
    return synthesizer(model).card.name


@cache
def _facts() -> Mapping[str, Any]:
    facts: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return facts


@cache
def _curves() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Curves by model and table, by rising n."""
    by_model: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in sorted(_facts()["curves"], key=lambda row: float(row["n"])):
        by_model.setdefault(row["model"], {}).setdefault(row["table"], []).append(row)
    return by_model


def _width(rows: Sequence[Mapping[str, Any]]) -> int:
    return int(rows[0]["columns"])


def _read(rows: Sequence[Mapping[str, Any]], figure: str, n: int, epsilon: float) -> float:
    """A figure of one table at n and ε, between the points that were measured.

    Args:
      rows: of the table, by rising n.
    """
    sizes = [float(row["n"]) for row in rows]
    size = min(max(float(n), sizes[0]), sizes[-1])
    epsilon *= n / size  # noise on a share goes with 1/(n·ε)
    at = [float(np.interp(math.log(epsilon), np.log(row["epsilon"]), row[figure])) for row in rows]
    return float(np.interp(math.log(size), np.log(sizes), at))
