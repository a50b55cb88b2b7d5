"""Hidden distributions (α-LMDP) on Plan: how different, tested how, and at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import streamlit as st

from core.lmdp.level import GROUP, groups_of
from core.models.card import Card
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.runs.storage.records import TableRecord
from core.services.plan_advice import certificate_offers
from core.services.planning import DEFAULT_SHIFT
from pages.parts import shared
from pages.parts.lmdp_tags import NOT_PEOPLE
from pages.parts.plain import plain

SHIFTS = {0.0: "none", 0.4: "slightly", DEFAULT_SHIFT: "clearly", 0.95: "strongly"}


@dataclass(frozen=True)
class LmdpChoice:
    """What `planning.make_plan` takes for tagged columns; its defaults where none is tagged."""

    shift: float | None = None
    certificate: float | None = None
    alpha: float = 0.05
    attempts: int = 1


def choose(table: TableRecord, card: Card, epsilon: float) -> LmdpChoice:
    """How the tagged columns are hidden; asks nothing without tags.

    Args:
      table: to plan for.
      card: of the model.
      epsilon: budget, inf for none.
    """
    groups = table.schema.sensitive
    if not groups:
        return LmdpChoice()
    st.subheader("Hidden distributions", anchor=False)
    named = (f"**{plain(g)}**: {plain(', '.join(columns))}" for g, columns in groups.items())
    st.markdown("  \n".join(named))
    private = math.isfinite(epsilon)
    shift = st.select_slider(
        "How different from the real ones?",
        list(SHIFTS),
        value=DEFAULT_SHIFT,
        format_func=SHIFTS.__getitem__,
        key="shift",
        help=f"Slightly, clearly, strongly: {GROUP} records of an unshifted table would notice in "
        "40, 75 or 95 of 100 tries. None leaves it to the model's own training (PPEM).",
    )
    if not shift and not card.protects:
        st.warning(f"{card.name} does not hide distributions by itself.", icon=":material/warning:")
    certificate = _certificate(table, epsilon, shift or DEFAULT_SHIFT) if private else None
    with st.expander("Level and attempts", icon=":material/rule:"):
        alpha = st.number_input(
            "α: how often a test may cry wolf",
            0.001,
            0.2,
            0.05,
            step=0.01,
            help="Chance that a test tells tables apart that follow one distribution.",
        )
        attempts = st.number_input(
            "Attempts",
            1,
            5,
            1,
            disabled=private and certificate is None,
            help="Begin anew until the check passes, at most so often. With differential privacy "
            "all attempts are paid for beforehand, because when to stop depends on the data.",
        )
    st.caption(f":material/info: {NOT_PEOPLE}")
    return LmdpChoice(shift, certificate, alpha, attempts)


def _certificate(table: TableRecord, epsilon: float, shift: float) -> float | None:
    """The ε of each group's certificate, or None."""
    if not groups_of(table.training_n):
        st.caption(
            f"A private certificate needs {GROUP} {table.records} at least. You will see the "
            "inside check."
        )
        return None
    paid = st.radio(
        "How shall it be shown?",
        [True, False],
        format_func=lambda yes: (
            "A certificate that may leave the house" if yes else "A check for my eyes only"
        ),
        captions=[
            "The real rows are asked, with noise, for a share of ε.",
            "Costs nothing. Its result must not be shown to others.",
        ],
    )
    if not paid:
        return None
    person = table.schema.person
    offers = certificate_offers(
        table.training_n,
        groups=len(table.schema.sensitive),
        epsilon=epsilon,
        shift=shift,
        rows=1 if person is None or person.grouped else person.rows,
    )
    if not offers:
        st.caption("ε is too small to pay for a certificate.")
        return None
    likely = {offer.epsilon: offer.likely for offer in offers}
    first = next((offer for offer in offers if offer.enough), offers[-1])
    cost = st.select_slider("ε for each group's certificate", list(likely), value=first.epsilon)
    st.caption(
        f"If the columns come out as different as asked, it is granted with a chance of "
        f"**{likely[cost]:.0%}**; if they do not differ at all, with 5 % at most."
    )
    return cost


def confirm(table: TableRecord, plan: Plan) -> tuple[bool, str]:
    """Whether the ledger would take the plan as far as hidden distributions go, and the words.

    Where it would betray what earlier releases hide, the reason is shown and words are asked for.
    """
    ledger = Ledger(shared.store().engine)
    problem = ledger.objection(table.people, plan, table.schema.domain())
    if problem is None:
        return True, ""
    st.error(plain(problem), icon=":material/visibility:")
    typed = st.text_input(
        "Confirm in words that the hidden distributions may become known",
        max_chars=300,
        key="confirm_shift",
        help="The ledger keeps your words, and every later certificate about these people repeats "
        "them.",
    )
    return bool(typed.strip()), typed


def summary(plan: Plan) -> None:
    """One line on what the plan does for tagged columns."""
    if plan.protection is None:
        return
    tries = plan.attempts
    st.markdown(
        f":material/visibility_off: Hidden: {len(plan.protection.groups)} group(s), shifted "
        f"{SHIFTS.get(plan.protection.shift, 'as asked')}, tested at α = "
        f"{plan.protection.alpha:g}, "
        + (
            f"certified for ε = {plan.protection.certificate:g} each"
            if plan.protection.certificate
            else "checked for your eyes only"
        )
        + (f", at most {tries} attempts, all paid for." if tries > 1 else ".")
    )
