"""Hidden distributions on the Plan page: how different, tested how, and at what cost."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from core.lmdp.level import GROUP, chance, groups_of
from core.models.card import Card
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan
from core.runs.storage.records import TableRecord
from core.services.planning import DEFAULT_SHIFT
from pages.parts import shared
from pages.parts.tagging import NOT_PEOPLE

SHIFTS = {0.0: "none", 0.4: "slightly", DEFAULT_SHIFT: "clearly", 0.95: "strongly"}
COSTS = (0.02, 0.05, 0.1, 0.25, 0.5)
SURE = 0.95  # a certificate should be this likely to be granted


def choices(table: TableRecord, card: Card, epsilon: float) -> dict[str, Any]:
    """What `planning.make_plan` takes for tagged columns; nothing without tags."""
    groups = table.schema.sensitive
    if not groups:
        return {}
    st.subheader("Hidden distributions", anchor=False)
    st.markdown("  \n".join(f"**{g}**: {', '.join(columns)}" for g, columns in groups.items()))
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
    chosen: dict[str, Any] = {"shift": shift}
    if private:
        chosen["certificate"] = _certificate(table, epsilon, shift or DEFAULT_SHIFT)
    with st.expander("Level and attempts", icon=":material/rule:"):
        chosen["alpha"] = st.number_input(
            "α: how often a test may cry wolf",
            0.001,
            0.2,
            0.05,
            step=0.01,
            help="Chance that a test tells tables apart that follow one distribution.",
        )
        chosen["attempts"] = st.number_input(
            "Attempts",
            1,
            5,
            1,
            disabled=private and chosen["certificate"] is None,
            help="Begin anew until the check passes, at most so often. With differential privacy "
            "all attempts are paid for beforehand, because when to stop depends on the data.",
        )
    st.caption(f":material/info: {NOT_PEOPLE}")
    return chosen


def _certificate(table: TableRecord, epsilon: float, shift: float) -> float | None:
    """The ε of each group's certificate, or None."""
    groups = groups_of(table.training_n)
    if not groups:
        st.caption(
            f"A private certificate needs {GROUP} rows at least. You will see the inside check."
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
    costs = [cost for cost in COSTS if cost * len(table.schema.sensitive) < 0.8 * epsilon]
    if not costs:
        st.caption("ε is too small to pay for a certificate.")
        return None
    likely = {c: chance(groups, epsilon=c, alpha=0.05, rate=shift) for c in costs}
    enough = next((c for c in costs if likely[c] >= SURE), costs[-1])
    cost = st.select_slider("ε for each group's certificate", costs, value=enough)
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
    st.error(problem, icon=":material/visibility:")
    typed = st.text_input(
        "Confirm in words that the hidden distributions may become known",
        max_chars=300,
        key="confirm_shift",
        help="The ledger keeps your words, and every later certificate about these people repeats "
        "them.",
    )
    return bool(typed.strip()), typed


def words(plan: Plan) -> None:
    """One line on what the plan does for tagged columns."""
    if plan.protection is None:
        return
    tries = plan.budget.attempts
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
