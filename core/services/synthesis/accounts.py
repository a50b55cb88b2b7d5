"""Whose people a table in memory is about; its rows are not stored, only a sketch."""

from __future__ import annotations

import sys

import pandas as pd

from core.privacy.discovery.open_domain import planned_schema
from core.privacy.plan import Plan
from core.runs.accounts import people
from core.runs.accounts.learned_earlier import learned_earlier
from core.runs.accounts.record_linkage import Comparison, LinkedAccount
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.schema import Schema
from core.services.synthesis.options import RefusedError, SynthesisOptions
from core.services.synthesis.saved_runs import earlier_run


def account_for(options: SynthesisOptions, store: RunStore, frame: pd.DataFrame) -> str:
    """The account that pays for a table; what was decided goes to stderr in one line.

    Args:
      frame: all rows, those kept out too.

    Raises:
      RefusedError: rows are in tables of several accounts, and nobody said which one pays.
    """
    if options.people is None:
        linked = Comparison(store, frame, None).linked()
        if len(linked) > 1:
            _refuse(linked)
    answer = people.choose_account(
        store,
        frame,
        title=options.table,
        account_id=options.people,
        words=f"--people {options.people}",
    )
    if answer.open:  # another table came in meanwhile
        _refuse(answer.linked)
    _say(options, answer)
    return answer.account_id


def foresee(
    options: SynthesisOptions, frame: pd.DataFrame, schema: Schema, plan: Plan
) -> list[str]:
    """Why a run of this plan would be refused for want of words; stores nothing."""
    home = Workspace.default_home()
    if not home.is_dir():
        return []
    planned = planned_schema(schema, private=plan.budget.private)
    with RunStore(Workspace(home)) as store:
        linked = Comparison(store, frame, None).linked()
        account = options.people or (linked[0].account_id if linked else people.NEW)
        _say(options, people.AccountChoice(account, linked, f"--people {options.people}"))
        learned_earlier(store, account, schema, earlier_run(options.learned_by))
        hidden = store.ledger.objection(account, plan, planned.domain())
        mixed = store.ledger.unit_objection(account, plan)
    return [
        f"{problem} ({option} WORDS)"
        for problem, option, words in (
            (hidden, "--confirm-shift", options.request.shift_words),
            (mixed, "--confirm-unit", options.request.unit_words),
        )
        if problem is not None and not words.strip()
    ]


def _refuse(linked: tuple[LinkedAccount, ...]) -> None:
    names = ", ".join(one.account_id for one in linked)
    raise RefusedError(
        f"rows of this table are in tables of several accounts ({names}); nothing was spent; say "
        "with --people which one pays"
    )


def _say(options: SynthesisOptions, answer: people.AccountChoice) -> None:
    if options.people is None and answer.linked:
        print(
            f"note: {answer.linked[0].evidence} The account {answer.account_id} pays; "
            "choose another with --people.",
            file=sys.stderr,
        )
    elif answer.others:
        print(
            f"note: {answer.others[0].evidence} With --people {options.people} you declare that "
            "these are other people; the certificate says so.",
            file=sys.stderr,
        )
