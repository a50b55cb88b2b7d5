"""replicas: repeat a finished run on rows of its own model, for error bars; spends nothing."""

from __future__ import annotations

import argparse
import sys

from core.cli.common import print_json
from core.models.events import FitEvent, Progress, Signal
from core.runs.execution.threads import limit_threads
from core.services.inference.replicas import make


def replicas(options: argparse.Namespace) -> int:
    """Make those that are missing, and say how many there are."""
    limit_threads()
    shown = -1

    def on_event(event: FitEvent) -> Signal:
        nonlocal shown
        if isinstance(event, Progress) and event.step != shown:
            shown = event.step
            print(f"{event.step} of {event.steps} replicas", file=sys.stderr)
        return Signal.GO_ON

    made = make(options.run, on_event, count=options.count)
    print(f"{made} replicas of run {options.run}: nothing was spent; no real row was read")
    if options.json:
        print_json({"run": options.run, "replicas": made})
    return 0
