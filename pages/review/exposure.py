"""Is anyone exposed? What attacks reached: on Review in full, on Download as an alarm.

Attacks compare with real rows without noise, so who is shown their result has looked inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.export.attack_sentences import STANDINGS, Grade, exposure, standing
from core.runs.records import RunRecord
from core.services import discussion as notes
from core.services import reviews
from pages.review import discussion, report_scores
from pages.server import guard, routes
from pages.shared import glossary
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

NEXT = to_say(
    "**What to do.** Train again with a lower ε on the Plan page, so that each person leaves less "
    "of a trace. Or find out whether it was chance: keep out more rows on the Tables page and "
    "train again. A real leak will show up again; chance rarely does. Both spend more ε."
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
                "Not tested. The test needs real rows that were kept out of training. You can keep "
                "rows out on the Tables page."
            )
        )
        return
    _verdict(run, tried)
    rows = [
        {
            to_say("Attack"): said(attack["title"]),
            to_say("Training rows"): attack["value"],
            to_say("Baseline"): attack["baseline"],
            to_say("Lead needed"): attack["lead_needed"],
            "p": attack["p"],
            to_say("Unit"): said(glossary.PLAIN_UNITS.get(attack["unit"], attack["unit"])),
            to_say("Verdict"): said(STANDINGS[standing(attack)]),
            to_say("What it is"): said(attack["meaning"]),
        }
        for attack in tried
    ]
    report_scores.numbers(rows, ("Training rows", "Baseline", "Lead needed", "p"), "%.3f")
    st.caption(
        say(
            "Tested on {n:,} rows of the table and {strangers:,} rows that were kept out. "
            "Baseline: the same attack on the rows kept out, with the same share of each target "
            "value, or a coin toss. Lead needed: how far above the baseline an attack must be to "
            "raise an alarm. p: how often any of these attacks shows such a lead when nothing "
            "leaks. The alarm is raised at 0.01 or below; up to 0.05 is borderline.",
            n=max(attack["records"] for attack in tried),
            strangers=max(attack["strangers"] for attack in tried),
        )
    )


def seen(run: RunRecord) -> bool:
    """On Download: the alarm, if one stands; False while its result is not to be looked at yet.

    A run that may be chosen by noisy scores is looked at only on request, because the look is
    recorded and certificates tell of it.
    """
    tried = reviews.attacks(store(), run.id)
    if not tried:
        return True
    known = run.id in notes.seen_runs(store(), run)
    if not known and reviews.comparable(store(), run):
        st.info(
            say(
                "This table was attacked as a test. The results come from real rows, so viewing "
                "them is recorded. Look at them before you pass the table on."
            ),
            icon=":material/person_search:",
        )
        if not st.button(say("Show the attack results"), icon=":material/visibility:"):
            return False
    notes.look(store(), run, author=discussion.signed_name())
    if reviews.alarming(store(), run.id):
        _verdict(run, tried)
    return True


def _verdict(run: RunRecord, tried: Attacks) -> None:
    """What was found, by how much, and what to do where it is not good."""
    found = exposure(tried)
    text = plain(said(found.text))
    if found.grade == "safe":
        proof = say("No leak was found, but only ε proves that there is none.")
        st.success(f"{text} {proof}", icon=":material/shield_person:")
        return
    if found.grade == "exposed":
        text = f"{text} {say('**People may be exposed.**')}"
    box, icon = BOXES[found.grade]
    box(f"{text}  \n{said(NEXT)}", icon=icon)
    if guard.steward():
        with st.container(horizontal=True):
            routes.button(say("Plan another run"), "plan", table=run.table_id)
            routes.button(say("Keep out more rows"), "tables", table=run.table_id)
