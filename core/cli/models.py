"""models: the ids and what each is good at."""

from __future__ import annotations

import argparse

from core.cli.common import print_json
from core.models.registry import cards


def models(options: argparse.Namespace) -> int:
    """Print the models."""
    known = cards()
    for card in known:
        print(f"{card.id:12} {card.name}: {card.summary}")
    if options.json:
        print_json({"models": [card.model_dump(mode="json") for card in known]})
    return 0
