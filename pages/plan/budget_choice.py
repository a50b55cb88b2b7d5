"""The budget on Plan: ε with its meaning, what of it buys shares and scores, a first limit."""

from __future__ import annotations

import math

import streamlit as st

from core.privacy.discovery.open_domain import planned_schema
from core.privacy.plan import LARGEST_EPSILON
from core.runs.accounts.account import DEFAULT_LIMIT, set_limit, table_account
from core.runs.execution.noisy_scores import DEFAULT_SHARE
from core.runs.execution.paid_release import shown_columns
from core.runs.records import TableRecord
from core.schema.column import SchemaError
from core.services import reviews
from pages.server import guard
from pages.shared import glossary
from pages.shared.language import keyed, number, said, say, to_say
from pages.shared.workspace_store import store

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0)
USUAL = 1.0  # ε that is proposed
REVIEW_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
MEANING = (
    (0.5, to_say("Very strong: one person's contribution is practically invisible.")),
    (1.0, to_say("Strong: the usual choice for data about people.")),
    (3.0, to_say("Moderate: fine for less sensitive data or large tables.")),
    (8.0, to_say("Weak: unusual individuals may leave traces.")),
    (math.inf, to_say("Very weak: handle the result almost like the real table.")),
)


def epsilon(off: bool) -> float:
    """ε with its meaning, or ∞ with what that means."""
    if off:
        st.error(
            say(
                "Nothing is protected. The result may reveal to anyone who is in the table and "
                "what their values are."
            ),
            icon=":material/warning:",
        )
        return math.inf
    labels = {value: number(str(value)) for value in EPSILONS}
    chosen = st.select_slider(
        say("ε: how much anyone can learn about one person (lower is more private)"),
        EPSILONS,
        value=USUAL,
        format_func=labels.__getitem__,
        help=glossary.entry("ε"),
        key=keyed("epsilon"),  # outlives a look at what ε = ∞ would mean
    )
    st.markdown(said(next(text for limit, text in MEANING if chosen <= limit)))
    return float(chosen)


def review_share(epsilon: float) -> float | None:
    """What people outside the house may see of real shares, as a share of the budget."""
    if not math.isfinite(epsilon):
        return None
    labels = {value: say("{share:.0%} of the budget", share=value) for value in REVIEW_SHARES}
    labels[0.0] = say("none")
    share = st.select_slider(
        say("For readers outside: release real shares with noise, from the same ε"),
        REVIEW_SHARES,
        value=0.0,
        format_func=labels.__getitem__,
        key=keyed("review_share"),
        help=say(
            "Without this, outside reports show synthetic rows only. With it, each column's real "
            "shares are released once, with noise, and may be shown to anyone. If some columns are "
            "hidden, the shares of the others are shifted like the released table."
        ),
    )
    return share or None


def score_share(table: TableRecord, epsilon: float, shift: float) -> float | None:
    """Whether this run may be compared without looking, as a share of the budget."""
    try:
        domain = planned_schema(table.schema, private=math.isfinite(epsilon)).domain()
    except SchemaError:  # the plan says what is wrong
        return None
    if not math.isfinite(epsilon) or not shown_columns(domain):
        return None
    if reviews.bought(store(), table.id, domain, table.training_n, shift):
        st.caption(
            ":material/casino: "
            + say(
                "An earlier run has already paid for noisy counts of these columns, so this run "
                "can be compared without looking at real data, at no cost."
            )
        )
        return None
    wanted = st.toggle(
        say("Allow this run to be compared with others without looking at real data"),
        key="score",
        help=say(
            "Spends about {share:.0%} of the budget on noisy counts, once for this table. Runs get "
            "a score from these counts, and if you pick the best by score, the certificate says "
            "that ε covers the choice.",
            share=DEFAULT_SHARE,
        ),
    )
    return DEFAULT_SHARE if wanted else None


def first_limit(table: TableRecord) -> float | None:
    """The limit that a first release is to open the account with; None where there is no choice."""
    if table_account(store(), table.id).limit is not None or not guard.sets_limits():
        return None
    return float(
        st.number_input(
            say("Limit on ε for all releases about these people together"),
            0.1,
            LARGEST_EPSILON,
            DEFAULT_LIMIT,
            0.5,
            key=f"first_limit_{table.id}",
            help=say(
                "Set once, with this first release; all later releases must fit within it. It "
                "cannot be changed afterwards. Lower is safer."
            ),
        )
    )


def open_account(table: TableRecord, limit: float | None) -> None:
    """Open it with the chosen limit; the usual one opens with the release itself."""
    if limit is not None and limit != DEFAULT_LIMIT:
        set_limit(store(), table.id, epsilon=limit)
