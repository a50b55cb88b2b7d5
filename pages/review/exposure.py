"""Is anyone exposed? What attacks reached: on Review in full, on Download as an alarm.

Attacks compare with real rows without noise, so who is shown their result has looked inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.export.attack_sentences import STANDINGS, Grade, exposure, standing
from core.runs.records import RunRecord
from core.runs.storage.reviews.inside_views import record_view, viewed_runs
from core.services import reviews
from pages.review import discussion as review_discussion
from pages.review import report_scores
from pages.server import guard, routes
from pages.shared import glossary
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

NEXT = to_say(
    "**What to do.** Train again with a lower ε on Plan: each person then leaves less of a trace. "
    "Or see whether it was chance: keep a larger share of rows out on Tables and train again, so "
    "that the attacks are tried on more rows that nobody learnt from; a leak shows again, chance "
    "seldom does. Either spends ε anew."
)
Attacks = Sequence[dict[str, Any]]
BOXES: dict[Grade, tuple[Callable[..., Any], str]] = {
    "exposed": (st.error, ":material/person_alert:"),
    "works": (st.warning, ":material/person_alert:"),
    "edge": (st.info, ":material/person_search:"),
}


def tab(run: RunRecord, report: dict[str, Any]) -> None:
    """What simple attackers reach, beside what they reach without the people's data."""
    tried: Attacks = report.get("attacks") or ()
    if not tried:
        st.caption(
            say(
                "Not tested. It takes real rows that the synthesizer never saw, to tell what the "
                "release gives away from what is true of anyone."
            )
        )
        return
    _verdict(run, tried)
    rows = [
        {
            to_say("Attack"): said(attack["title"]),
            to_say("On the table"): attack["value"],
            to_say("Baseline"): attack["baseline"],
            to_say("Lead needed"): attack["lead_needed"],
            "p": attack["p"],
            to_say("Unit"): said(glossary.PLAIN_UNITS.get(attack["unit"], attack["unit"])),
            to_say("Verdict"): said(STANDINGS[standing(attack)]),
            to_say("What it is"): said(attack["meaning"]),
        }
        for attack in tried
    ]
    report_scores.numbers(rows, ("On the table", "Baseline", "Lead needed", "p"), "%.3f")
    st.caption(
        say(
            "Tried on {n:,} rows of the table and {strangers:,} rows that were kept out. Baseline: "
            "the same attack on the rows kept out, at equal shares of each value of the target, or "
            "a coin. Lead needed: how far above the baseline an attack must be for an alarm. p: "
            "how often a release without a leak shows so clear a lead by any of these attacks; the "
            "alarm is raised up to 0.01, and up to 0.05 is at the edge of chance.",
            n=max(attack["records"] for attack in tried),
            strangers=max(attack["strangers"] for attack in tried),
        )
    )


def seen(run: RunRecord) -> bool:
    """On Download: the alarm, if one stands; False while its result is not to be looked at yet.

    A run that may be chosen by noisy scores is looked at only on request, because the look is
    recorded and certificates tell of it.
    """
    tried = reviews.attacks(shared.store(), run.id)
    if not tried:
        return True
    known = run.id in viewed_runs(shared.store(), run.account_id)
    if not known and reviews.comparable(shared.store(), run):
        st.info(
            say(
                "Attacks were tried on this table. Their result comes from real rows, so a look at "
                "it is recorded. Look at it before you hand the table on."
            ),
            icon=":material/person_search:",
        )
        if not st.button(say("Show what attacks reached"), icon=":material/visibility:"):
            return False
    name = review_discussion.known_name()
    record_view(shared.store(), table_id=run.table_id, run_id=run.id, author=name)
    if reviews.alarming(shared.store(), run.id):
        _verdict(run, tried)
    return True


def _verdict(run: RunRecord, tried: Attacks) -> None:
    """What was found, by how much, and what to do where it is not good."""
    found = exposure(tried)
    text = plain(said(found.text))
    if found.grade == "safe":
        proof = say("This shows no leak; only ε proves there is none to find.")
        st.success(f"{text} {proof}", icon=":material/shield_person:")
        return
    if found.grade == "exposed":
        text = f"{text} {say('**People may be exposed.**')}"
    box, icon = BOXES[found.grade]
    box(f"{text}  \n{said(NEXT)}", icon=icon)
    if guard.steward():
        with st.container(horizontal=True):
            routes.button(say("Plan another run"), "plan", table=run.table_id)
            routes.button(say("Keep more rows out"), "tables", table=run.table_id)
