"""Inside or outside: what may be seen of a run, by whom, and how it is taken along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.export.page_html import page
from core.message import minute
from core.quality.report.types import View
from core.quality.verdict import Use, verdict
from core.runs.records import RunRecord
from core.schema.coverage import coverage
from core.services import discussion as notes
from core.services import export, limits, reviews
from core.services.inference import agreement, paid_figures
from pages.review import discussion
from pages.shared import downloads, visible
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, spoken, to_say
from pages.shared.plain import plain
from pages.shared.widgets import Badge
from pages.shared.workspace_store import store

WORDS: dict[View, str] = {
    "inside": to_say("Inside: with real data"),
    "outside": to_say("Outside: safe to share"),
}
# a colour and a word for each group of uses
USES: dict[Use, tuple[str, str]] = {
    "fit": ("green", to_say("Fit for")),
    "care": ("orange", to_say("With care")),
    "unfit": ("red", to_say("Not for")),
    "unmeasured": ("gray", to_say("Not measured yet")),
}
NOT_OUTSIDE = to_say("Not measured for this view")
LIMITS = to_say(
    "Fit: at most 5% of rows lie elsewhere beyond what another sample of real rows would show "
    "(with care: 10%), at least nine in ten strong relationships are kept (with care: half), "
    "models learn at least 90% of what real rows teach (with care: 70%), and fewer than 1% of "
    "rows contradict themselves (with care: 10%)."
)
STAMPS: dict[View, Badge] = {
    "inside": Badge(
        to_say("Inside view: contains real data, do not share"), ":material/lock:", "red"
    ),
    "outside": Badge(to_say("Outside view: safe to share"), ":material/public:", "green"),
}


def choose(run: RunRecord) -> View:
    """The view in the address, as far as this person may have it; stops where there is none.

    What was made without differential privacy may quote anyone, so it has no outside.
    """
    inside = visible.may_look_inside(run.table_id)
    if not run.private:
        if inside:
            return "inside"
        st.error(said(visible.NO_OUTSIDE), icon=":material/block:")
        st.stop()
    return switch([run], parameter="view") if inside else "outside"


def switch(runs: Sequence[RunRecord], *, parameter: str) -> View:
    """What somebody who may look inside wants to see of these runs, kept in the address.

    Runs that can be compared by noisy scores are shown from outside first: a look inside is
    recorded, and certificates tell of it.

    Args:
      parameter: its name in the address; a choice made for one run does not open several.
    """
    comparable = any(reviews.comparable(store(), run) for run in runs)
    first: View = "outside" if comparable else "inside"
    wanted = st.query_params.get(parameter)
    picked = st.segmented_control(
        say("View"),
        list(WORDS),
        default=wanted if wanted in WORDS else first,
        format_func=lambda view: said(WORDS[view]),
        required=True,
        key=keyed(f"{parameter}_choice"),
        help=say(
            "The inside view shows real data without noise. If you choose among runs after looking "
            "at it, the certificate says so. The outside view shows nothing of the real table, or "
            "only what the plan paid for."
        ),
    )
    view: View = "outside" if picked == "outside" else "inside"
    if view != first:
        st.query_params[parameter] = view
    elif wanted is not None:
        del st.query_params[parameter]
    return view


def opened(run: RunRecord, view: View) -> dict[str, Any] | None:
    """The run's report as this person now sees it; an inside view that is shown is recorded."""
    report = reviews.report(store(), run.id, view)
    if report is not None and view == "inside":
        notes.look(store(), run, author=discussion.signed_name())
    return report


def verdict_card(run: RunRecord, report: dict[str, Any]) -> None:
    """What the table is fit for and what not, a line each, with the limits behind it on hover."""
    hidden = limits.hidden_columns(run)
    found = verdict(report, run.schema, private=run.private, hidden=hidden)
    lines = []
    for use, words in found.uses.items():
        if words:
            color, label = USES[use]
            if use == "unmeasured" and report["view"] == "outside":
                label = NOT_OUTSIDE
            uses = plain("; ".join(said(word) for word in words))
            lines.append(f":{color}-badge[{said(label)}] {uses}")
    color = "orange" if coverage(run.schema).dropped else "green"
    kept = plain(said(report["coverage"][0])) if report["coverage"] else ""
    lines += [f":{color}-badge[{say('Columns')}] {kept}"] if kept else []
    color = "green" if run.private and not found.exposed else "red"
    lines.append(f":{color}-badge[{say('People')}] {plain(said(found.people))}")
    if told := _agreement(run, report):
        lines.append(f":blue-badge[{say('Your questions')}] {plain(said(told))}")
    with st.container(border=True):
        st.markdown("  \n".join(lines), help=said(LIMITS))


def _agreement(run: RunRecord, report: dict[str, Any]) -> str:
    """How far pinned questions agree, as far as they were compared or, outside, paid for."""
    return agreement.summary(_conclusions(run, report["view"])) or ""


def _conclusions(run: RunRecord, view: View) -> list[dict[str, Any]]:
    told = agreement.compared if view == "inside" else paid_figures.measured
    return told(store(), run) or []


def selection_note(run: RunRecord) -> None:
    """What the run's certificate says of the choice among runs, if anything."""
    words = reviews.selection_words(store(), run)
    if words:
        words = plain(said(words))
        st.caption(say(":material/rule: The certificate says: {words}", words=words))


def disputed(run: RunRecord) -> None:
    """A warning where two accountants disagree on the run's ε."""
    words = reviews.disputed(store(), run.id)
    if words:
        st.warning(plain(said(words)), icon=":material/balance:")


def share_report(run: RunRecord, report: dict[str, Any], view: View) -> None:
    """A link for reviewers, and the report as one file."""
    with st.popover(say("Share"), icon=":material/share:"):
        base = str(st.context.url or "").split("?")[0]
        st.markdown(
            say("**Review link** (outside view)")
            if run.private
            else say("**Review link** (inside view)")
        )
        tail = "&view=outside" if run.private else ""
        st.code(f"{base}?run={run.id}{tail}", language=None)
        st.caption(
            say(
                "Anyone who can open this server can follow the link. Reviewers are limited to the "
                "outside view only if sign-in is set up."
            )
        )
        if not report["complete"]:
            st.caption(say("You can export the report once the comparison is complete."))
            return
        downloads.offer(
            say("Inside report (HTML)") if view == "inside" else say("Outside report (HTML)"),
            lambda: _file(run, report, view),
            table_id=run.table_id,
            role="reviewer",
            inside=view == "inside",
            file_name=export.file_name(run, f"review-{view}.html"),
            mime="text/html",
            icon=":material/html:",
            help=say("Opens in any browser, also offline. It states who may see it."),
        )


def _file(run: RunRecord, report: dict[str, Any], view: View) -> str:
    certificate = reviews.privacy_certificate(store(), run.id) or {}
    claim = " ".join(
        f"{certificate[key]}".removesuffix(".") + "."
        for key in ("claim", "selection")
        if certificate.get(key)
    )
    remarks = [
        _remark(comment, discussion.title(comment.about), comment.text)
        for comment in notes.comments(store(), run.id, view)
    ]
    remarks += [
        _remark(verdict, say("verdict"), f"{said(verdict.decision.value)}. {verdict.text}")
        for verdict in notes.review_verdicts(store(), run.id, view)
    ]
    return page(
        report,
        shared.run_title(run),
        claim=claim,
        remarks=remarks,
        limits=limits.limits(store(), run),
        hidden=limits.hidden_columns(run),
        language=spoken(),
        conclusions=_conclusions(run, view),
    )


def _remark(note: notes.Comment | notes.ReviewVerdict, about: str, text: str) -> dict[str, str]:
    time = said(minute(note.time, " UTC"))
    return {"author": notes.called(note.author), "time": time, "about": about, "text": text}


def limits_note(run: RunRecord) -> None:
    """What people outside must not take for real."""
    lines = "\n".join(f"- {plain(said(line))}" for line in limits.limits(store(), run))
    if lines:
        title = say("**What is not realistic in this table**")
        st.info(f"{title}\n{lines}", icon=":material/visibility_off:")
