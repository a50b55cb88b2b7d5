"""Is anyone exposed? What attacks reached: on Review in full, on Download as an alarm.

Attacks compare with real rows without noise, so who is shown their result has looked inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.export.attack_sentences import STANDINGS, Grade, exposure, standing
from core.export.guides import filled, guides
from core.figures.attack_bound import attack_figure
from core.inference.replicas import no_replicas
from core.message import Message
from core.runs.records import RunRecord
from core.services import discussion as notes
from core.services import reviews
from core.services.evidence.documents import best_attack_words, last_audit, of_run
from core.services.inference import replicas
from pages.ask import error_bars
from pages.review import discussion
from pages.server import guard, routes
from pages.shared import glossary
from pages.shared import widgets as shared
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
    """What any attacker could reach, and what simple ones did, beside the rows kept out."""
    tried: Attacks = report.get("attacks") or ()
    if run.private:
        _bound(run, tried)
    if report["view"] == "outside":
        st.caption(
            say("Attacks are measured on real rows, so their results are shown in the inside view.")
        )
        return
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
        }
        for attack in sorted(tried, key=lambda attack: attack["p"])
    ]
    shared.number_table(rows, ("Training rows", "Baseline", "Lead needed", "p"), ".3f")
    _refits(run, tried)
    with st.expander(
        say("What the attacks do, and how to read this table"), icon=":material/help:"
    ):
        st.markdown(
            say(
                "**Baseline**: the same attack on the rows kept out, with the same share of each "
                "target value, or a coin toss. **Lead needed**: how far above the baseline an "
                "attack must be to raise an alarm. **p**: how often any of these attacks shows "
                "such a lead when nothing leaks. The alarm is raised at 0.01 or below; up to 0.05 "
                "is borderline."
            )
        )
        for attack in tried:
            st.markdown(f"**{plain(said(attack['title']))}**: {plain(said(attack['meaning']))}")


def _refits(run: RunRecord, tried: Attacks) -> None:
    """The attack that fits the model again: how far it is, or the button that starts it."""
    if replicas.under_way(store(), run.id):
        error_bars.progress(run.id)
        return
    again = any(attack["key"] == "refitted" for attack in tried)
    person = run.schema.person
    possible = no_replicas(run.plan) is None and (person is None or not person.grouped)
    if again or not possible or not guard.steward():
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        minutes = st.number_input(
            say("Minutes for an attack that trains the model again"),
            1,
            240,
            10,
            width=320,
            help=say("At least four trainings are needed. Nothing is released or spent."),
        )
        if st.button(say("Attack by refitting"), icon=":material/person_search:"):
            with shared.change():
                replicas.start(store(), shared.launcher(), run.id, attack=float(minutes))


def _bound(run: RunRecord, tried: Attacks) -> None:
    """What no attack can exceed, whatever it knows; from the plan alone, so free to show."""
    bound = of_run(run)
    told = best_attack_words(bound)
    numbers, picture = st.columns([2, 3], gap="large")
    with numbers:
        st.markdown(say("**The best possible guess at who is in the real table**"))
        for words, name in (
            (say("Right guesses, from 50:50"), "right"),
            (say("Found when 1% of all others are wrongly accused"), "found_at_1_percent"),
            (say("Found when 10% of all others are wrongly accused"), "found_at_10_percent"),
        ):
            st.metric(words, said(Message("{x:.1%}", x=told[name])))
        st.caption(
            say(
                "This follows from the run's noise alone, whatever the attacker knows. Points are "
                "attacks on this table, grey where chance can explain them. At most 1 in 100 runs "
                "without a leak has a point that is not grey."
            )
        )
        audit = filled(
            {"audit.json": last_audit(store(), run.model)}, **guides()["question"]["audit"]
        )
        st.caption(
            f":material/policy: {said(audit.answer)}"
            if audit.answer
            else say(
                ":material/policy: The code of this model was not audited on this machine yet: "
                "`python -m core.cli audit --model {model} --epsilon {epsilon:g}`.",
                model=run.model,
                epsilon=run.plan.budget.epsilon,
            )
        )
    with picture:
        words = filled({"best-attack.json": told}, **guides()["question"]["best_attack"]).answer
        shared.picture(attack_figure(bound, tried), key="attack_bound", alt=said(words))


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
