"""A graphics card beside the processor, and beside Opacus on the same card.

    python -m benchmarks.gpu

Three things, each as a ratio: milliseconds a step of every model's phases, rows a second of the
statistics that read the whole table, and a private step beside Opacus's (by `benchmarks.dpsgd`).
Without a card it says so and measures nothing; `--rehearse` runs everything with the processor in
the card's place, which shows that it runs and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks import dpsgd
from core.encoding.codec import Codec
from core.models.events import FitEvent, PhaseStarted, Progress, Signal
from core.models.planning import plan_fit
from core.models.registry import cards, synthesizer
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from core.proposing.propose import infer_schema
from core.services.sample_tables import SAMPLE_TARGET, sample_table

NONE = "There is no graphics card here (torch.cuda.is_available() is False): nothing was measured."
SHORT: dict[str, dict[str, Any]] = {
    "pearl": {"steps": 200},
    "scan_focus": {"steps": 100, "preliminary_steps": 50},
    "p3gm": {"steps": 200},
    "dp_gan": {"steps": 100},
    "dp_auto_gan": {"steps": 100, "encoder_steps": 200},
    "pgb": {"steps": 100},
    "ppem": {"marginal_steps": 50, "steps": 50},
}


@dataclass
class Clock:
    """Observes a fit: seconds and steps by phase.

    Attributes:
      seconds: wall time, the card's queue emptied.
      steps: how many the phase told of; rows where it reads the whole table.
    """

    device: str
    seconds: dict[str, float] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    _phase: str = ""
    _since: float = 0.0

    def __call__(self, event: FitEvent) -> Signal:
        """See `OnEvent`."""
        if isinstance(event, PhaseStarted):
            self.enter(event.name)
        elif isinstance(event, Progress):
            self.steps[event.phase] = event.step
        return Signal.GO_ON

    def enter(self, phase: str) -> None:
        """End the present phase, begin another."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        if self._phase:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now


def run(model: str, rows: int, device: str) -> Clock:
    """One short fit of the sample table."""
    frame = sample_table(rows)
    schema = infer_schema(frame).model_copy(update={"target": SAMPLE_TARGET})
    domain = schema.domain()
    budget = Budget(epsilon=1.0, delta=1e-6)
    plan = plan_fit(synthesizer(model), domain, rows, budget, SHORT[model])
    table, clock = PrivateTable(Codec(domain).encode(frame), domain, plan), Clock(device)
    with tempfile.TemporaryDirectory() as folder:
        context = FitContext(on_event=clock, folder=Path(folder), seed=0, device=device)
        synthesizer(model).fit(table, plan, context)
    clock.enter("")
    return clock


def compare(rows: int, devices: tuple[str, str], models: list[str]) -> list[dict[str, Any]]:
    """Each phase of each model on both devices; the first fit of a device only warms it up."""
    found = []
    for model in models:
        run(model, min(rows, 500), devices[1])
        slow, fast = (run(model, rows, device) for device in devices)
        for phase, seconds in slow.seconds.items():
            count = slow.steps.get(phase)
            if not count or phase not in fast.seconds:
                continue
            ratio = seconds / fast.seconds[phase]
            cell = {"model": model, "phase": phase, "count": count, "ratio": ratio}
            found.append(cell | {"processor_s": seconds, "card_s": fast.seconds[phase]})
            unit = "rows" if count == rows else "steps"
            print(
                f"{model:<12}{phase:<14}{count:>8} {unit:<6}{count / seconds:>12.0f}/s"
                f"{count / fast.seconds[phase]:>12.0f}/s{ratio:>9.2f}×",
                flush=True,
            )
    return found


def beside_opacus(device: str, rounds: int) -> dict[str, Any]:
    """A private step beside Opacus on the same device; geometric means over networks and sizes."""
    cells: list[dict[str, object]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus warns of secure_mode and of its own hooks
        for net in dpsgd.NETS:
            for batch in (128, 1100):
                ms = dpsgd.measure(dpsgd.Cell(net, batch, device), rounds)
                cells.append({"net": net, "batch": batch, "ms": ms})
    total = dpsgd.summary(cells, device)
    for key, value in total.items():
        if isinstance(value, float):
            print(f"{key}: {value:.2f}")
    return total


def main(arguments: list[str] | None = None, *, say: Callable[[str], None] = print) -> int:
    """Measure, print. Exit code 0, also without a card."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=15, help="of the comparison with Opacus")
    parser.add_argument("--models", nargs="*", default=[card.id for card in cards()])
    parser.add_argument("--rehearse", action="store_true", help="the processor in a card's place")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    options = parser.parse_args(arguments)
    card = torch.cuda.is_available()
    name = torch.cuda.get_device_name() if card else None
    result: dict[str, Any] = {
        "card": name,
        "torch": torch.__version__,
        "rehearsal": options.rehearse and not card,
    }
    if not card and not options.rehearse:
        say(NONE)
    else:
        say(name or "A rehearsal: the processor twice. No ratio below says anything of a card.")
        device = "cuda" if card else "cpu"
        result["phases"] = compare(options.rows, ("cpu", device), options.models)
        result["steps"] = beside_opacus(device, options.rounds) if options.rounds else None
    if options.json:
        say(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
