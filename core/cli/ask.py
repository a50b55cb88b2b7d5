"""ask: a figure of a run's synthetic table, and how far it may be off; spends nothing."""

from __future__ import annotations

import argparse

from core.cli.common import print_json
from core.export.answer_sentences import notes, rows, sentence
from core.services.inference.asking import ask_run


def ask(options: argparse.Namespace) -> int:
    """Print the answer in sentences, with a line for each value where there are several."""
    asked = {"by": options.by, "where": options.where, "at": options.at, "level": options.level}
    found = ask_run(options.run, options.statistic, options.of, **asked)
    print(sentence(found))
    lines = rows(found)
    for line in lines if len(lines) > 1 else ():
        known = line["table low"] is not None
        ends = f"  {line['table low']:.4g} to {line['table high']:.4g}" if known else ""
        print(f"  {line['of']}: {line['value']:.4g}{ends}  {line['note']}".rstrip())
    told = [*filter(None, [found.measured]), *notes(found)]
    for note in told:
        print(f"note: {note}")
    if options.json:
        about = {"run": options.run, "level": found.level, "replicas": found.replicas}
        print_json(about | {"rows": lines, "notes": told})
    return 0
