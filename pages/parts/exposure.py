"""Is anyone exposed? What attacks reached: on Review in full, on Download as an alarm.

Attacks compare with real rows without noise, so who is shown their result has looked inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.export.findings import STANDINGS, standing, would_not_show
from core.runs.storage.inside_views import record_view, viewed_runs
from core.runs.storage.records import RunRecord
from core.services import reviews
from pages.parts import glossary, guard, report_scores, review_discussion, routes, shared
from pages.parts.language import said, say, spoken, to_say

NEXT = to_say(
    "**What to do.** Train again with a lower ε on Plan: each person then leaves less of a trace. "
    "Or see whether it was chance: keep a larger share of rows out on Tables and train again, so "
    "that the attacks are tried on fresh rows; a leak shows again, chance seldom does. Either "
    "spends ε anew."
)
Attacks = Sequence[dict[str, Any]]


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
            "±": attack["half_width"],
            to_say("Unit"): said(glossary.PLAIN_UNITS.get(attack["unit"], attack["unit"])),
            to_say("Verdict"): said(STANDINGS[standing(attack)]),
            to_say("What it is"): said(attack["meaning"]),
        }
        for attack in tried
    ]
    report_scores.numbers(rows, ("On the table", "Baseline", "±"), "%.3f")
    st.caption(
        say(
            "{n:,} rows a side. Baseline: the same attack on people who were not in the table, or "
            "a coin. ±: 99 % interval of the difference, so that several attacks together rarely "
            "cry wolf. At the edge of chance: between a 95 % and a 99.9 % interval.",
            n=tried[0]["records"],
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
    known = run.id in viewed_runs(shared.store(), run.people)
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
    """One sentence, and what to do where it is not good."""
    working = [one for one in tried if standing(one) == "works"]
    edge = [one for one in tried if standing(one) == "edge"]
    if working:
        alarm = say(
            "{n} of {all} attacks work better on people of the table than on strangers. Someone "
            "may be exposed.",
            n=len(working),
            all=len(tried),
        )
        st.error(f"{alarm}  \n{said(NEXT)}", icon=":material/person_alert:")
    elif edge:
        doubt = say(
            "{n} of {all} attacks are at the edge of chance: a little better on people of the "
            "table than on strangers, which may be chance or a small leak.",
            n=len(edge),
            all=len(tried),
        )
        st.warning(f"{doubt}  \n{said(NEXT)}", icon=":material/person_search:")
    else:
        none = say(
            "None of {n} attacks works better on people of the table than on strangers, beyond "
            "chance. This shows no leak; only ε proves there is none to find.",
            n=len(tried),
        )
        st.success(f"{none} {would_not_show(tried, spoken())}", icon=":material/shield_person:")
    if (working or edge) and guard.steward():
        with st.container(horizontal=True):
            routes.button(say("Plan another run"), "plan", table=run.table_id)
            routes.button(say("Keep more rows out"), "tables", table=run.table_id)
