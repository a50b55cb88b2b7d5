"""ledger: what was spent on which table, and whether the record of it is whole."""

from __future__ import annotations

import argparse
import time

from core.commands.common import print_json
from core.privacy.ledger import Ledger
from core.runs.accounts import NO_LIMIT
from core.runs.store import RunStore
from core.runs.workspace import Workspace

__all__ = ["ledger"]

BROKEN = 2


def ledger(options: argparse.Namespace) -> int:

    with RunStore(Workspace.default()) as store:
        ledger = Ledger(store.engine)
        entries, chain = ledger.entries(), ledger.verify()
    if options.what == "verify":
        words = f"{chain.entries} entries follow each other; the newest has hash {chain.head}"
        print(words if chain else f"the chain is broken: {chain.problem}")
        if options.json:
            print_json(chain.model_dump(mode="json"))
        return 0 if chain else BROKEN
    for entry in entries:
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.time))
        amount = f"ε {entry.epsilon:.4g}, δ {entry.delta:.3g}" if entry.private else "no privacy"
        what = entry.model if entry.kind == "release" else "account opened, limit"
        print(f"{entry.seq:5}  {day}  {entry.people}  {what}: {amount}")
    print(f"{len(entries)} entries in {options_home()}")
    if options.json:
        print_json({"entries": [entry.model_dump(mode="json") for entry in entries]})
    return 0
