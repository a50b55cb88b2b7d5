"""A worker whose model is a toy: one charged phase, then steps with a checkpoint each.

Run as a script it is a worker like `core.runs.execution.worker`. The plan's settings say how it
behaves: `steps`, `nap` (seconds a step takes), `fail_at` (step at which it raises, -1 for none).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from core.encoding.codec import Codec, Codes
from core.models.card import Card
from core.models.events import Emitter, Metrics, Progress
from core.models.step import FitContext
from core.models.synthesizer import Synthesizer
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Phase, Plan
from core.runs.execution import worker
from core.schema.schema import Domain

SECRET = "a value that nobody may see"


class ToyFitted:
    baseline = None

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        codec, rng = Codec(self.domain), np.random.default_rng(seed)
        widths = [len(block.states) for block in codec.blocks]
        states = np.stack([rng.integers(0, width, rows) for width in widths], axis=1)
        return codec.decode_codes(Codes(states, rng.random((rows, codec.numbers))))

    def save(self, folder: Path) -> None:
        (folder / "toy.json").write_text(self.domain.model_dump_json())


class ToySettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = 3
    nap: float = 0.0
    fail_at: int = -1


class Toy(Synthesizer[ToySettings]):
    settings_class = ToySettings
    card = Card(
        id="toy", name="Toy", summary="s", good_at="tests", weak_at="all else", source="none"
    )

    def training_phases(
        self, domain: Domain, n: int, settings: ToySettings, scale: float
    ) -> tuple[Phase, ...]:
        return (Phase(name="sum", title="Sum", what="w", share=1.0, noise_multiplier=scale),)

    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> ToyFitted:
        checkpoint = context.folder / "step.json"
        step = 0
        if context.resume:
            step = json.loads(checkpoint.read_text())["step"]
        else:
            table.meter.charge("sum")
            checkpoint.write_text('{"step": 0}')
            table.meter.settle()  # as with every checkpoint: both outlive the machine together
        steps = int(plan.settings["steps"])
        emitter = Emitter(context.on_event)
        emitter.phase("fit", "Fitting")
        while step < steps:
            if step == plan.settings["fail_at"]:
                raise RuntimeError(SECRET)
            time.sleep(float(plan.settings["nap"]))
            step += 1
            half = checkpoint.with_suffix(".half")  # a kill leaves the old file or the new one
            half.write_text(json.dumps({"step": step}))
            half.replace(checkpoint)
            table.meter.settle()
            emitter.send(Metrics(step=step, values={"loss": 1.0 / step}))
            emitter.send(Progress(step=step, steps=steps, phase="fit"))
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
