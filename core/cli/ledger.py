"""ledger: what was spent on which table, and whether the record of it is whole."""

from __future__ import annotations

import argparse
import sys
import time

from core.cli.common import print_json
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.filters import left_of, opening
from core.privacy.ledger.units import units_of
from core.runs.accounts.people import account_names
from core.runs.accounts.spending import left_words
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.rounding_up import round_up

BROKEN = 2


def ledger(options: argparse.Namespace) -> int:
    """Show the entries, or verify their chain (exit code 2 where it is not found sound)."""
    with RunStore(Workspace.default()) as store:
        book = store.ledger
        entries, chain = book.entries(), book.verify()
        names = account_names(store)
    if options.what == "verify":
        whole = f"sound: {chain.entries} entries, the newest has hash {chain.head}"
        broken = f"broken: {chain.problem}" if chain.checked else chain.problem
        print(whole if chain else broken)
        if options.json:
            print_json(chain.model_dump(mode="json"))
        return 0 if chain else BROKEN
    for entry in entries:
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.time))
        print(f"{entry.seq:5}  {day}  {entry.account_id:20}  {_words(entry)}")
    for account_id, tables in names.items():
        own = tuple(entry for entry in entries if entry.account_id == account_id)
        opened = opening(own)
        words = left_words(left_of(own), opened.delta) if opened else ()
        units = units_of(own)
        if len(units) == 1:
            words = (*words, f"ε counts {units[0].words}.")
        print(" ".join((f"account {account_id}: {tables}.", *words)))
    print(f"{len(entries)} entries")
    if not chain:
        print(f"They cannot be trusted: {chain.problem}", file=sys.stderr)
    if options.json:
        print_json({"entries": [entry.model_dump(mode="json") for entry in entries]})
    return 0


def _words(entry: Entry) -> str:
    amount = f"ε {round_up(entry.limit, '.4g'):.4g}, δ {round_up(entry.delta, '.3g'):.3g}"
    if entry.kind == "account":
        return f"account with limit {amount}"
    if entry.kind == "statement":
        return f"declared to have no other account: “{entry.words}”"
    if entry.kind == "shift":
        return f"settled how tagged columns are shifted{_hidden(entry)}"
    if entry.kind == "shared":
        return f"noted to be in tables of another owner too: “{entry.words}”"
    claim = f"{amount} {entry.unit.words}" if entry.private else "no differential privacy"
    return f"{entry.model}: {claim}{_hidden(entry)}"


def _hidden(entry: Entry) -> str:
    """What a release hides, and what was confirmed in words."""
    groups = "; ".join(", ".join(group) for group in entry.groups)
    hidden = f", hides {groups} at strength {entry.shift:g}" if groups else ""
    confirmed = filter(None, (entry.words, entry.unit_words))
    return hidden + "".join(f", confirmed: “{words}”" for words in confirmed)
