"""A worker whose model is a toy: one charged phase, then steps with a checkpoint each.

Run as a script it is a worker like `core.runs.execution.worker`. The plan's settings say how it
behaves: `steps`, `nap` (seconds a step takes), `fail_at` (step at which it raises, -1 for none).
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from core.models.synthesizer import Card, FitCancelled, FitEvent, FitPaused, Observe, Wish
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget, Guarantee, Phase, Plan
from core.runs.execution import worker
from core.table.codec import Codec, Codes
from core.table.schema import Domain

SECRET = "a value that nobody may see"


class ToyFitted:
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        codec, rng = Codec(self.domain), np.random.default_rng(seed)
        widths = [len(block.states) for block in codec.blocks]
        states = np.stack([rng.integers(0, width, rows) for width in widths], axis=1)
        return codec.decode_codes(Codes(states, rng.random((rows, codec.numbers))))

    def save(self, folder: Path) -> None:
        (folder / "toy.json").write_text(self.domain.model_dump_json())


class Toy:
    card = Card(
        id="toy", name="Toy", summary="s", good_at="tests", weak_at="all else", source="none"
    )

    def plan(
        self, domain: Domain, n: int, budget: Budget, settings: dict[str, Any] | None = None
    ) -> Plan:
        sigma = 8.0 if budget.private else 0.0
        phase = Phase(name="sum", title="Sum", what="w", share=1.0, noise_multiplier=sigma)
        claim = Guarantee(epsilon=1.0, epsilon_replace=2.0, delta=budget.delta)
        return Plan(
            model="toy",
            n=n,
            budget=budget,
            phases=(phase,),
            guarantee=claim,
            settings={"steps": 3, "nap": 0.0, "fail_at": -1} | (settings or {}),
        )

    def fit(
        self,
        table: PrivateTable,
        plan: Plan,
        *,
        observe: Observe,
        folder: Path,
        seed: int | None = None,
        device: str = "cpu",
        resume: bool = False,
    ) -> ToyFitted:
        checkpoint = folder / "step.json"
        step = 0
        if resume:
            step = json.loads(checkpoint.read_text())["step"]
        else:
            table.meter.charge("sum")
            checkpoint.write_text('{"step": 0}')
        steps = int(plan.settings["steps"])
        data = {"name": "fit", "title": "Fitting", "private": False}
        observe(FitEvent(kind="phase", data=data))
        while step < steps:
            if step == plan.settings["fail_at"]:
                raise RuntimeError(SECRET)
            time.sleep(float(plan.settings["nap"]))
            step += 1
            half = checkpoint.with_suffix(".half")  # a kill leaves the old file or the new one
            half.write_text(json.dumps({"step": step}))
            half.replace(checkpoint)
            observe(FitEvent(kind="metrics", data={"step": step, "loss": 1.0 / step}))
            wish = observe(
                FitEvent(kind="progress", data={"step": step, "steps": steps, "phase": "fit"})
            )
            if wish is Wish.CANCEL:
                raise FitCancelled
            if wish is Wish.PAUSE:
                raise FitPaused
        return ToyFitted(table.domain)

    def load(self, folder: Path) -> ToyFitted:
        return ToyFitted(Domain.model_validate_json((folder / "toy.json").read_text()))


class ToyReport(BaseModel):
    rows: int


def compare(real: pd.DataFrame, synthetic: pd.DataFrame, schema: object, **_: object) -> ToyReport:
    return ToyReport(rows=len(synthetic))


COMMAND = ("-m", "tests.runs.toy")


def find(model_id: str) -> Toy:
    assert model_id == "toy"
    return Toy()


if __name__ == "__main__":
    sys.exit(worker.main(find=find, compare=compare, command=COMMAND))
