"""One ledger account for the eye: what was spent, what is left, on which runs, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.privacy.ledger.ledger import Entry
from core.runs.accounts.account import Account
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord
from pages.parts import guard, shared
from pages.parts.plain import plain

KINDS = {"account": "account opened", "release": "release", "statement": "declaration"}
USUAL_DELTA = 1e-6
# What became of a run that paid and has no table: its ε is spent all the same.
ENDED = {
    State.FAILED: "failed; its ε stays spent",
    State.CANCELLED: "cancelled; its ε stays spent",
    State.LOST: "lost; its ε stays spent",
}
Runs = Mapping[str, RunRecord]


def numbers(account: Account) -> None:
    """Spent, left and the limit, each with its unit."""
    releases = [entry for entry in account.entries if entry.kind == "release"]
    private = [entry for entry in releases if entry.private]
    spent, left, limit = st.columns(3)
    spent.metric(
        "Spent so far, added up",
        f"ε {sum(entry.limit for entry in private):.3g}",
        help=f"The sum over {len(private)} releases; lower is safer. Together they reveal no more "
        "than that, and often less: the limit counts more exactly.",
    )
    if account.left is not None:
        delta = account.delta or USUAL_DELTA
        left.metric(
            "Left for one more release",
            account.left.words(delta).removeprefix("about "),
            help=f"About the largest ε that the next release may have, at δ {delta:.0e}.",
        )
        limit.metric(
            "Limit of all together",
            f"ε {account.limit:g}",
            help="The most that all releases about these people may reveal about one of them.",
        )
        st.progress(account.left.share, text=f"{account.left.share:.0%} of the limit is left.")
    without = len(releases) - len(private)
    if without:
        st.warning(
            f"{without} of these releases had no differential privacy: no ε and no limit holds for "
            "what they showed.",
            icon=":material/warning:",
        )


def over_time(account: Account) -> None:
    """The sum of ε after each release, against the limit; nothing before the first."""
    private = [e for e in account.entries if e.kind == "release" and e.private]
    if not private:
        return
    line = spending(private)
    if account.limit is not None:
        line["limit"] = account.limit
    st.line_chart(line, x="when", x_label="", y_label="ε, added up", height=200)


def spending(releases: Sequence[Entry]) -> pd.DataFrame:
    """Steps of the sum of ε over time: "when" (UTC) and "spent", two rows a release, oldest first.

    Args:
      releases: private ones, oldest first, at least one.
    """
    rows, total = [], 0.0
    for entry in releases:
        when = pd.Timestamp(entry.time, unit="s", tz="UTC")
        rows.append({"when": when, "spent": total})
        total += entry.limit
        rows.append({"when": when, "spent": total})
    return pd.DataFrame(rows)


def entries(account: Account, runs: Runs) -> None:
    """Every entry with its run's name, what became of it, and its link.

    Args:
      account: whose.
      runs: by id, those whose names this person may read.
    """
    shown = [e for e in account.entries if e.kind != "account" or account.limit is not None]
    if not shown:
        return
    zone = shared.time_zone()
    config = {
        "When": st.column_config.DatetimeColumn(
            f"When ({zone})", timezone=zone, format="D MMM YYYY, HH:mm"
        ),
        "ε": st.column_config.TextColumn("ε", help="Lower is safer."),
        "δ": st.column_config.NumberColumn(
            "δ", format="%.0e", help="Chance that the promise fails altogether."
        ),
        "Open": st.column_config.LinkColumn("Open", display_text="Open"),
    }
    st.dataframe([_row(entry, runs) for entry in shown], hide_index=True, column_config=config)


def _row(entry: Entry, runs: Runs) -> dict[str, object]:
    """One entry for the eye."""
    run = runs.get((entry.run or "").split(".")[0]) if entry.kind == "release" else None
    stated = entry.kind == "statement"
    row: dict[str, object] = {
        "When": pd.Timestamp(entry.time, unit="s", tz="UTC"),
        "What": "bounds and lists bought" if entry.purchase else KINDS[entry.kind],
        "ε": "" if stated else "no privacy" if entry.epsilon is None else f"{entry.epsilon:.3g}",
        "δ": None if stated else entry.delta,
        "Run": _name(entry, run),
        "What became of it": "" if run is None else ENDED.get(run.state, _state(run)),
        "Model": "" if entry.purchase else entry.model,
        "Hides": "; ".join(", ".join(group) for group in entry.groups),
        "Confirmed in words": entry.words,
    }
    if guard.steward():
        row["Open"] = "" if run is None else f"training?run={run.id}"
    return row


def _state(run: RunRecord) -> str:
    return shared.STATE_BADGES[run.state].label.lower()


def _name(entry: Entry, run: RunRecord | None) -> str:
    """What people call a release's run; one that is gone keeps its key."""
    if entry.kind != "release" or entry.purchase:
        return ""
    return f"deleted or not yours ({entry.run})" if run is None else run.title


def declared(account: Account) -> None:
    """What the steward declared about these people."""
    words = [entry.words for entry in account.entries if entry.kind == "statement"]
    for said in dict.fromkeys(words):
        st.caption(
            ":material/group_off: The steward declared that these people have no other account: "
            f"“{plain(said)}”. Certificates say so."
        )
