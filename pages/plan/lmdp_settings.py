"""Hidden distributions (α-LMDP) on Plan: how different, tested how, and at what cost."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from core.lmdp.level import GROUP
from core.models.card import Card
from core.privacy.discovery.open_domain import planned_schema
from core.privacy.plan import Plan
from core.runs.records import TableRecord
from core.runs.request import DEFAULT_ALPHA, DEFAULT_SHIFT
from core.services.plan_advice import certificate_offers
from pages.shared import widgets as shared
from pages.shared.language import keyed, number, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables.hidden_columns import NOT_PEOPLE

SHIFTS = {
    0.0: to_say("none"),
    0.4: to_say("slightly"),
    DEFAULT_SHIFT: to_say("clearly"),
    0.95: to_say("strongly"),
}
SHIFTED = {
    0.0: to_say("not shifted, left to the model's training"),
    0.4: to_say("shifted slightly"),
    DEFAULT_SHIFT: to_say("shifted clearly"),
    0.95: to_say("shifted strongly"),
}


def choose(table: TableRecord, card: Card, epsilon: float) -> dict[str, Any]:
    """How the tagged columns are hidden, as fields of a RunRequest; asks nothing without tags."""
    groups = table.schema.sensitive
    if not groups:
        return {}
    st.subheader(say("Hidden distributions"), anchor=False)
    named = (f"**{plain(g)}**: {plain(', '.join(columns))}" for g, columns in groups.items())
    st.markdown("  \n".join(named))
    private = math.isfinite(epsilon)
    shifts = {value: said(label) for value, label in SHIFTS.items() if value or card.protects}
    shift = st.select_slider(
        say("How different from the real distributions?"),
        list(shifts),
        value=DEFAULT_SHIFT,
        format_func=shifts.__getitem__,
        key=keyed("shift_or_training" if card.protects else "shift"),  # they offer other values
        help=say(
            "How often {n} records would reveal the difference: slightly 40%, clearly 75%, "
            "strongly 95% of the time.",
            n=GROUP,
        )
        + (
            " " + say("None: only as much as {model}'s own training causes.", model=card.name)
            if card.protects
            else ""
        ),
    )
    offer = st.container()  # above what it depends on
    with offer:
        wanted = private and _wants_certificate(table)
    alpha, attempts = _level(unpaid=private and not wanted)
    with offer:
        strength = shift or DEFAULT_SHIFT
        certificate = _certificate(table, epsilon, strength, alpha, attempts) if wanted else None
    st.caption(f":material/info: {said(NOT_PEOPLE)}")
    unpaid = private and certificate is None
    return {
        "shift": shift,
        "certificate": certificate,
        "alpha": alpha,
        "attempts": 1 if unpaid else attempts,
    }


def _level(*, unpaid: bool) -> tuple[float, int]:
    """α and the number of attempts; one attempt where no certificate is paid for."""
    with st.expander(say("Test level and attempts"), icon=":material/rule:"):
        alpha = st.number_input(
            say("α: how often a test may raise a false alarm"),
            0.001,
            0.2,
            DEFAULT_ALPHA,
            step=0.01,
            help=say(
                "The probability that a test finds a difference between tables with the same "
                "distribution. Several attempts share it: each is tested at α divided by their "
                "number."
            ),
        )
        attempts = st.number_input(
            say("Attempts"),
            1,
            5,
            1,
            disabled=unpaid,
            help=say(
                "Start over until the check passes, at most this many times. With differential "
                "privacy all attempts are paid for in advance, because the decision to stop "
                "depends on the data."
            ),
        )
    return alpha, attempts


def _wants_certificate(table: TableRecord) -> bool:
    """Whether there can be a certificate, and somebody wants one."""
    if table.training_n < GROUP:
        st.caption(
            say(
                "A private certificate needs at least {n} {records!t}. You will see the result of "
                "the inside check instead.",
                n=GROUP,
                records=table.records,
            )
        )
        return False
    ways = {
        True: say("A certificate that you may share"),
        False: say("An internal check that only I see"),
    }
    paid = st.radio(
        say("How should it be checked?"),
        list(ways),
        format_func=ways.__getitem__,
        captions=[
            say("Tests the real rows with noise, for a share of ε."),
            say("Free, but you must not share the result."),
        ],
    )
    return bool(paid)


def _certificate(
    table: TableRecord, epsilon: float, shift: float, alpha: float, attempts: int
) -> float | None:
    """The ε of each group's certificate, or None."""
    offers = certificate_offers(
        table.training_n,
        groups=len(table.schema.sensitive),
        epsilon=epsilon,
        shift=shift,
        unit=table.schema.person,
        alpha=alpha,
        attempts=attempts,
    )
    if not offers:
        st.caption(say("ε is too small to pay for a certificate."))
        return None
    likely = {offer.epsilon: offer.likely for offer in offers}
    first = next((offer for offer in offers if offer.enough), offers[-1])
    costs = {value: number(str(value)) for value in likely}
    cost = st.select_slider(
        say("ε for each group's certificate"),
        list(costs),
        value=first.epsilon,
        format_func=costs.__getitem__,
    )
    st.caption(
        say(
            "If the columns come out as different as requested, the certificate is granted with a "
            "probability of **{likely:.0%}**{each}. If they do not differ at all, the probability "
            "is at most {alpha:.3g}%{together}.",
            likely=likely[cost],
            each=say(" per attempt") if attempts > 1 else "",
            alpha=100.0 * alpha,
            together=say(" over all attempts") if attempts > 1 else "",
        )
    )
    return cost


def confirm(table: TableRecord, plan: Plan) -> tuple[bool, str]:
    """Whether the ledger would take the plan as far as hidden distributions go, and the words.

    Where it would betray what earlier releases hide, the reason is shown and words are asked for.
    """
    ledger = store().ledger
    planned = planned_schema(table.schema, private=plan.budget.private)
    problem = ledger.objection(table.account_id, plan, planned.domain())
    if problem is None:
        return True, ""
    asked = say("To continue, state your reason: the hidden distributions may become known")
    return shared.confirmed(
        problem, asked, f"shift_{table.account_id}", icon=":material/visibility:"
    )


def summary(plan: Plan) -> None:
    """One line on what the plan does for tagged columns."""
    protection, tries = plan.protection, plan.attempts
    if protection is None:
        return
    shown = say("checked internally")
    if protection.certificate:
        shown = say("certified at ε = {epsilon:g} each", epsilon=protection.certificate)
    words = say(
        "Hidden: {n} group(s), {shift!t}, tested at α = {alpha:g}, {shown}{tries}.",
        n=len(protection.groups),
        shift=SHIFTED.get(protection.shift, to_say("shifted as requested")),
        alpha=protection.alpha,
        shown=shown,
        tries=""
        if tries == 1
        else say(
            ", at most {n} attempts, each tested at α = {level:g}",
            n=tries,
            level=plan.attempt_alpha,
        ),
    )
    st.markdown(f":material/visibility_off: {words}")
