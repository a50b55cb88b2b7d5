"""One ledger account for the eye: what was spent, what is left, on which runs, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.privacy.ledger.entries import Entry, Left
from core.privacy.ledger.shift_consistency import SHARED_PEOPLE
from core.privacy.ledger.units import mixed_units, units_of
from core.privacy.plan import Plan
from core.runs.accounts import spending
from core.runs.accounts.account import DEFAULT_LIMIT, Account, table_account
from core.runs.events import State
from core.runs.records import RunRecord, TableRecord
from core.schema.rounding_up import round_up
from pages.server import guard
from pages.shared import lines
from pages.shared import widgets as shared
from pages.shared.language import number, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

KINDS = {
    "account": to_say("account opened"),
    "release": to_say("release"),
    "statement": to_say("declaration"),
    "shift": to_say("shift of hidden columns set"),
    "shared": to_say("note by the privacy officer"),
}
USUAL_DELTA = 1e-6
# What became of a run that paid and has no table: its ε is spent all the same.
ENDED = {
    State.FAILED: to_say("failed; its ε stays spent"),
    State.CANCELLED: to_say("cancelled; its ε stays spent"),
    State.LOST: to_say("lost; its ε stays spent"),
}
SHARE = "Share of the limit"
Runs = Mapping[str, RunRecord]  # by id, those whose names this person may read


def numbers(account: Account) -> None:
    """What is used of the limit, in the unit that adds up, and what could still be released."""
    releases = [entry for entry in account.entries if entry.kind == "release"]
    private = [entry for entry in releases if entry.private]
    if account.left is not None and len(account.left.units) < 2:
        delta = account.delta or USUAL_DELTA
        used, limit, could = st.columns(3)
        share = spending.share_used(account.left)
        used.metric(
            say("Limit used"),
            number(f"{share:.2%}"),
            help=say(
                "By {n} releases. Each one uses a share of the limit. The list below shows the "
                "shares, which add up.",
                n=len(private),
            ),
        )
        limit.metric(
            say("Limit for all releases"),
            number(f"ε {account.limit:g}"),
            help=say(
                "The most that all releases about these people together may reveal about any one "
                "of them."
            ),
        )
        could.metric(
            say("Left for the next release"),
            said(account.left.words(delta)).removeprefix(f"{say('about')} "),
            help=say(
                "Roughly the largest ε that the next release can have at δ = {delta:.0e}.",
                delta=delta,
            ),
        )
        st.progress(share)
        words = spending.left_words(account.left, delta)
        st.caption(" ".join(said(sentence) for sentence in words))
    without = len(releases) - len(private)
    if without:
        st.warning(
            say(
                "{n} of these releases had no differential privacy. No ε and no limit applies to "
                "what they revealed.",
                n=without,
            ),
            icon=":material/warning:",
        )


def units(account: Account) -> None:
    """Whom the account's ε is about; a warning where it is about several."""
    counted = units_of(account.entries)
    mixed = mixed_units(counted)
    if mixed is not None:
        st.warning(plain(said(mixed)), icon=":material/warning:")
    elif counted:
        unit = say("In this account, ε holds {unit!t}.", unit=counted[0].words)
        st.caption(f":material/person: {plain(unit)}")


def confirm_unit(table: TableRecord, plan: Plan) -> tuple[bool, str]:
    """Whether the ledger would take the plan as far as its unit goes, and the words for it.

    Where earlier releases protect others, that is shown and words are asked for.
    """
    problem = store().ledger.unit_objection(table.account_id, plan)
    if problem is None:
        return True, ""
    asked = say("To continue, state your reason: the account's limit will no longer hold")
    return shared.confirmed(problem, asked, f"unit_{table.account_id}", icon=":material/group:")


def before_release(table: TableRecord) -> None:
    """What the ledger says of these people before this run."""
    account = table_account(store(), table.id)
    if account.left is None:
        fresh = say(
            "This first release opens their account with a limit of ε = {limit:g} for all releases "
            "together, unless a different limit is set first. It cannot be changed later.",
            limit=DEFAULT_LIMIT,
        )
        st.caption(f":material/receipt_long: {fresh}")
        return
    words = spending.left_words(account.left, account.delta or 1e-6)
    if len(account.left.units) < 2:
        st.caption(f":material/receipt_long: {' '.join(said(sentence) for sentence in words)}")
    units(account)


def over_time(account: Account) -> None:
    """The share of the limit that is used after each release; nothing before the second."""
    private = [e for e in account.entries if e.kind == "release" and e.private]
    if len(private) < 2 or account.left is None or len(account.left.units) > 1:
        return
    line = used_over_time(account.left, private)
    line["limit"] = 100.0
    shown = {"used": say("used"), "limit": say("limit")}
    lines.draw(
        line.set_index("when").rename(columns=shown), x_title="", y_title=say("% of the limit used")
    )


def used_over_time(left: Left, releases: Sequence[Entry]) -> pd.DataFrame:
    """Steps of the limit's use over time: "when" (UTC) and "used", in %, two rows a release."""
    rows, total = [], 0.0
    for entry in releases:
        when = pd.Timestamp(entry.time, unit="s", tz="UTC")
        rows.append({"when": when, "used": total})
        total += 100.0 * spending.share_of(left, entry)
        rows.append({"when": when, "used": total})
    return pd.DataFrame(rows)


def entries(account: Account, runs: Runs) -> None:
    """Every entry with its run's name, what became of it and its link, as far as `runs` has it."""
    shown = [e for e in account.entries if e.kind != "account" or account.limit is not None]
    if not shown:
        return
    left = account.left
    if left is not None and len(left.units) > 1:
        left = None  # shares of a limit that does not hold
    rows = shared.without_empty([_row(entry, runs, left) for entry in shown])
    st.dataframe(rows, hide_index=True, column_config=_config(), placeholder="")


def _config() -> dict[str, Any]:
    """How the entries' columns are shown that hold more than words."""
    zone = shared.time_zone()
    return {
        "When": st.column_config.DatetimeColumn(
            say("When ({zone})", zone=zone), timezone=zone, format=say("D MMM YYYY, HH:mm")
        ),
        "ε": st.column_config.TextColumn("ε", help=say("Lower is safer.")),
        "δ": st.column_config.NumberColumn(
            "δ", format="%.0e", help=say("The probability that the guarantee does not hold.")
        ),
        SHARE: st.column_config.TextColumn(
            say("Share of the limit"),
            help=say("The share of the limit that this release uses. The shares add up."),
        ),
        "Open": st.column_config.LinkColumn(say("Open"), display_text=say("Open")),
    }


def _row(entry: Entry, runs: Runs, left: Left | None) -> dict[str, object]:
    """One entry for the eye."""
    run = runs.get((entry.run or "").split(".")[0]) if entry.kind == "release" else None
    declared = entry.kind in ("statement", "shared", "shift")
    paid = entry.kind == "release"
    epsilon = (
        say("no privacy")
        if entry.epsilon is None
        else number(f"{round_up(entry.epsilon, '.4g'):.4g}")
    )
    counted = left is not None and entry.kind == "release" and entry.private
    row: dict[str, object] = {
        "When": pd.Timestamp(entry.time, unit="s", tz="UTC"),
        say("Entry"): said(KINDS[entry.kind]),
        "ε": "" if declared else epsilon,
        "δ": None if declared else entry.delta,
        SHARE: _share(left, entry) if left is not None and counted else "",
        say("Run"): _name(entry, run),
        say("Outcome"): "" if run is None else _became(run),
        say("Model"): shared.model_name(entry.model),
        say("Hides"): "; ".join(", ".join(group) for group in entry.groups),
        say("Protects"): said(entry.unit.words) if paid and entry.private else "",
        say("Reasons given"): " · ".join(filter(None, (entry.words, entry.unit_words))),
    }
    if guard.steward():
        row["Open"] = "" if run is None else f"training?run={run.id}"
    return row


def _share(left: Left, entry: Entry) -> str:
    return number(f"{spending.shown_share(spending.share_of(left, entry)):.2%}")


def _became(run: RunRecord) -> str:
    ended = ENDED.get(run.state)
    return shared.state_word(run.state) if ended is None else said(ended)


def _name(entry: Entry, run: RunRecord | None) -> str:
    """What people call a release's run; one that is gone keeps its key."""
    if entry.kind != "release":
        return ""
    if run is None:
        return say("deleted or not shared with you ({run})", run=entry.run)
    return shared.run_title(run)


def declared(account: Account) -> None:
    """What the steward declared about these people."""
    if any(entry.kind == "shared" for entry in account.entries):
        st.caption(f":material/group: {said(SHARED_PEOPLE)}")
    words = [entry.words for entry in account.entries if entry.kind == "statement"]
    for declared in dict.fromkeys(words):
        text = say(
            "The steward declared that these people have no other account: “{words}”. Certificates "
            "repeat this.",
            words=plain(declared),
        )
        st.caption(f":material/group_off: {text}")
