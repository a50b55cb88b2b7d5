"""What people say of a run: comments beside figures, review verdicts, what a download needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st

from core.figures.report_figure import report_figures
from core.quality.report.types import View
from core.runs.records import RunRecord
from core.runs.storage.reviews import notes
from core.runs.storage.reviews.inside_views import SOMEBODY, recorded_views
from core.runs.storage.reviews.notes import Comment, Decision, Rule
from core.services import reviews
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.widgets import Badge

NAME = "my_name"  # of this session's person, where nobody signs in
TITLES = {
    "": to_say("the whole run"),
    "utility": to_say("learning the target"),
    "exposure": to_say("exposure"),
}
VERDICT_BADGES = {
    Decision.APPROVE: Badge(to_say("Approved"), ":material/thumb_up:", "green"),
    Decision.CHANGES: Badge(to_say("Changes requested"), ":material/edit:", "orange"),
}


def title(about: str) -> str:
    """A figure's name for people.

    >>> title("column:age"), title("pca")
    ('age', 'two main axes')
    """
    titles = TITLES | {figure.id: figure.name for figure in report_figures()}
    return said(titles[about]) if about in titles else about.removeprefix("column:")


def named(author: str) -> str:
    """Who is noted somewhere, as Markdown shows the name."""
    return plain(said(author) if author == SOMEBODY else author)


@dataclass(frozen=True)
class Talk:
    """A run as one page shows it, with its comments, which are read once for all figures."""

    run: RunRecord
    view: View
    comments: tuple[Comment, ...]

    @classmethod
    def about(cls, run: RunRecord, view: View) -> Talk:
        """What is said of a run, as far as this view may show it."""
        return cls(run, view, tuple(notes.comments(shared.store(), run.id, view)))


def pin(talk: Talk, about: str) -> None:
    """The comments on one figure, and the button to add one."""
    comments = [comment for comment in talk.comments if comment.about == about]
    for comment in comments:
        if not comment.settled_by:
            st.caption(f":material/chat_bubble: **{named(comment.author)}**: {plain(comment.text)}")
    label = say("Comment ({n})", n=len(comments)) if comments else say("Comment")
    if st.button(label, key=f"pin_{about}", icon=":material/add_comment:", type="tertiary"):
        st.dialog(say("Comment"))(_ask)(talk.run, about, talk.view)


@shared.plain_errors()
def _ask(run: RunRecord, about: str, view: View) -> None:
    visible.still(shared.store(), run.id, "steward", "reviewer")
    st.markdown(say("On **{what}**", what=plain(title(about))))
    with st.form("comment_form", border=False):
        name = who("comment")
        text = st.text_area(say("What do you see?"), max_chars=2_000)
        sent = st.form_submit_button(say("Keep this comment"), type="primary")
    if sent:
        with signed(name):
            notes.comment(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                about=about,
                author=name,
                text=text,
                view=view,
            )


def who(place: str) -> str:
    """The person's name: from sign-in where there is one, else as they write it."""
    known = guard.signature()
    if known:
        st.caption(say("As {name}", name=plain(known)))
        return known
    typed: str = st.text_input(
        say("Your name"), st.session_state.get(NAME, ""), max_chars=120, key=f"name_{place}"
    )
    return typed


def known_name() -> str:
    """The person's name as far as it is known without asking; "" where it is not."""
    return guard.signature() or str(st.session_state.get(NAME, ""))


@contextmanager
def signed(name: str) -> Iterator[None]:
    """A change made under a name, which the session then keeps; see `shared.change`."""
    with shared.change():
        yield
        st.session_state[NAME] = name


def discussion(talk: Talk) -> None:
    """Verdicts, every comment, and the steward's rule."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        _decide(talk.run, talk.view)
        _comments(talk)
    with right:
        _verdicts(talk.run, talk.view)
        if guard.steward():
            _inside_views(talk.run)
            _rule(talk.run)


def _decide(run: RunRecord, view: View) -> None:
    """The form for a verdict: nothing is chosen beforehand, and sign-in says who gives it."""
    st.subheader(say("Your verdict"), anchor=False)
    if guard.configured() and not guard.address():
        st.caption(
            say("A verdict counts by e-mail address, and your sign-in does not vouch for one.")
        )
        return
    # of another run, or after a verdict, nothing is chosen yet
    fresh = f"{run.id}_{len(notes.review_verdicts(shared.store(), run.id))}"
    with st.form("verdict_form", clear_on_submit=False):
        name = who("verdict")
        if not guard.configured():
            st.caption(
                say("Nobody signs in here, so nothing checks the name. It is kept as written.")
            )
        decision = st.radio(
            say("May this table be released?"),
            list(Decision),
            index=None,
            key=f"decision_{fresh}",
            format_func=lambda d: (
                say("Approve") if d is Decision.APPROVE else say("Request changes")
            ),
            horizontal=True,
        )
        text = st.text_area(say("Why, or what should change"), max_chars=2_000)
        sent = st.form_submit_button(say("Give this verdict"))
    if sent:
        with signed(name):
            notes.decide(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                author=name,
                decision=decision,
                text=text,
                view=view,
            )


def _verdicts(run: RunRecord, view: View) -> None:
    st.subheader(say("Verdicts"), anchor=False)
    verdicts = notes.review_verdicts(shared.store(), run.id, view)
    if not verdicts:
        st.caption(say("Nobody has given one yet."))
    for verdict in verdicts:
        VERDICT_BADGES[verdict.decision].show()
        st.markdown(f"**{named(verdict.author)}** :gray[{shared.clock(verdict.time)}]")
        st.text(verdict.text)
    # whether an alarm stands is known from real rows, so outside only the plain rule is told
    waits = (
        reviews.waits_for(shared.store(), run)
        if view == "inside"
        else notes.missing(shared.store(), table_id=run.table_id, run_id=run.id)
    )
    if waits:
        st.caption(say(":material/block: Download waits: {reason}", reason=plain(said(waits))))


def _inside_views(run: RunRecord) -> None:
    """Who had real data of this run in sight, and when first."""
    viewers = [
        f"{named(view.author)} ({shared.clock(view.time)})"
        for view in recorded_views(shared.store(), run.account_id)
        if view.run_id == run.id
    ]
    if viewers:
        st.caption(
            say(
                ":material/visibility: Real data was in sight first of: {viewers}.",
                viewers=", ".join(viewers),
            )
        )


def _rule(run: RunRecord) -> None:
    present = notes.rule(shared.store(), run.table_id)
    with st.expander(say("What this table's reviews need"), icon=":material/rule:"):
        with st.form("rule_form", border=False):
            name = who("rule")
            approvals = st.number_input(
                say("Approvals before a download"),
                0,
                20,
                present.approvals,
                help=say("With any number above 0, a single request for changes also blocks it."),
            )
            alarm_approvals = st.number_input(
                say("Approvals while an attack works better than on strangers"),
                0,
                20,
                present.alarm_approvals,
                help=say("The larger of the two numbers holds then."),
            )
            inside = st.toggle(
                say("Reviewers work inside: they may see real data"),
                present.inside,
                help=say("Matters where sign-in is set up. Otherwise they see the outside view."),
            )
            sent = st.form_submit_button(say("Keep this rule"))
        if sent:
            with signed(name):
                rule = Rule(int(approvals), inside, int(alarm_approvals))
                notes.set_rule(shared.store(), table_id=run.table_id, author=name, rule=rule)


def _comments(talk: Talk) -> None:
    st.subheader(say("Comments"), anchor=False)
    if not talk.comments:
        st.caption(say("None yet. Every figure has a button to comment on it."))
    for comment in talk.comments:
        _comment(talk.run, comment)
    pin(talk, "")


def _comment(run: RunRecord, comment: Comment) -> None:
    with st.container(border=True):
        st.markdown(
            say(
                "**{name}** on **{what}** :gray[{time}]",
                name=named(comment.author),
                what=plain(title(comment.about)),
                time=shared.clock(comment.time),
            )
        )
        st.text(comment.text)
        if comment.settled_by:
            st.caption(say(":material/check: Settled by {name}", name=named(comment.settled_by)))
        elif st.button(say("Settled"), key=f"settle_{comment.id}", icon=":material/check:"):
            notes.settle(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                comment_id=comment.id,
                author=known_name() or SOMEBODY,
            )
            st.rerun()
