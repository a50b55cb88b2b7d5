"""What people say of a run: comments beside figures, review verdicts, what a download needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from core.figures.report_figure import report_figures
from core.quality.report.types import View
from core.runs.records import RunRecord
from core.services import discussion as notes
from core.services.discussion import SOMEBODY, Comment, Decision, Rule
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain
from pages.shared.widgets import Badge
from pages.shared.workspace_store import store

NAME = "my_name"  # of this session's person, where nobody signs in
TITLES = {
    "": to_say("the whole run"),
    "utility": to_say("predicting the target"),
    "exposure": to_say("exposure"),
}
VERDICT_BADGES = {
    Decision.APPROVE: Badge(to_say("Approved"), ":material/thumb_up:", "green"),
    Decision.CHANGES: Badge(to_say("Changes requested"), ":material/edit:", "orange"),
}


def title(about: str) -> str:
    """A figure's name for people.

    >>> title("column:age"), title("pca")
    ('age', 'two principal axes')
    """
    titles = TITLES | {figure.id: figure.name for figure in report_figures()}
    return said(titles[about]) if about in titles else about.removeprefix("column:")


def named(author: str) -> str:
    """Who is noted somewhere, as Markdown shows the name."""
    return plain(said(author) if author == SOMEBODY else author)


@dataclass(frozen=True)
class RunComments:
    """A run as one page shows it, with its comments, which are read once for all figures."""

    run: RunRecord
    view: View
    comments: tuple[Comment, ...]

    @classmethod
    def about(cls, run: RunRecord, view: View) -> RunComments:
        """What is said of a run, as far as this view may show it."""
        return cls(run, view, tuple(notes.comments(store(), run.id, view)))


def comment_button(talk: RunComments, about: str) -> None:
    """The comments on one figure, and the button to add one."""
    comments = [comment for comment in talk.comments if comment.about == about]
    for comment in comments:
        if not comment.settled_by:
            st.caption(f":material/chat_bubble: **{named(comment.author)}**: {plain(comment.text)}")
    label = say("Comment ({n})", n=len(comments)) if comments else say("Comment")
    if st.button(label, key=f"pin_{about}", icon=":material/add_comment:", type="tertiary"):
        st.dialog(say("Comment"))(_comment_dialog)(talk.run, about, talk.view)


@shared.plain_errors()
def _comment_dialog(run: RunRecord, about: str, view: View) -> None:
    visible.still(run.id, "steward", "reviewer")
    st.markdown(say("On **{what}**", what=plain(title(about))))
    with st.form("comment_form", border=False):
        name = name_field("comment")
        text = st.text_area(say("What do you see?"), max_chars=2_000)
        sent = st.form_submit_button(say("Save comment"), type="primary")
    if sent:
        with signed(name):
            notes.comment(
                store(),
                table_id=run.table_id,
                run_id=run.id,
                about=about,
                author=name,
                text=text,
                view=view,
            )


def name_field(purpose: str) -> str:
    """The person's name: from sign-in where there is one, else as they write it."""
    known = guard.signature()
    if known:
        st.caption(say("As {name}", name=plain(known)))
        return known
    typed: str = st.text_input(
        say("Your name"), st.session_state.get(NAME, ""), max_chars=120, key=f"name_{purpose}"
    )
    return typed


def signed_name() -> str:
    """The person's name as far as it is known without asking; "" where it is not."""
    return guard.signature() or str(st.session_state.get(NAME, ""))


@contextmanager
def signed(name: str) -> Iterator[None]:
    """A change made under a name, which the session then keeps; see `shared.change`."""
    with shared.change():
        yield
        st.session_state[NAME] = name


def discussion(talk: RunComments) -> None:
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
            say(
                "A verdict is recorded under an e-mail address, and your sign-in does not provide "
                "a verified one."
            )
        )
        return
    # of another run, or after a verdict, nothing is chosen yet
    fresh = f"{run.id}_{len(notes.review_verdicts(store(), run.id))}"
    with st.form("verdict_form", clear_on_submit=False):
        name = name_field("verdict")
        if not guard.configured():
            st.caption(say("Sign-in is not set up, so this name is not verified."))
        decision = st.radio(
            say("May this table be released?"),
            list(Decision),
            index=None,
            key=keyed(f"decision_{fresh}"),
            format_func=lambda d: (
                say("Approve") if d is Decision.APPROVE else say("Request changes")
            ),
            horizontal=True,
        )
        text = st.text_area(say("Why, or what should change"), max_chars=2_000)
        sent = st.form_submit_button(say("Submit verdict"))
    if sent:
        with signed(name):
            notes.decide(
                store(),
                table_id=run.table_id,
                run_id=run.id,
                author=name,
                decision=decision,
                text=text,
                view=view,
            )


def _verdicts(run: RunRecord, view: View) -> None:
    st.subheader(say("Verdicts"), anchor=False)
    verdicts = notes.review_verdicts(store(), run.id, view)
    if not verdicts:
        st.caption(say("No verdicts yet."))
    for verdict in verdicts:
        VERDICT_BADGES[verdict.decision].show()
        st.markdown(f"**{named(verdict.author)}** :gray[{shared.clock(verdict.time)}]")
        st.text(verdict.text)
    waits = notes.waits_for(store(), run, view)
    if waits:
        st.caption(say(":material/block: Download blocked: {reason}", reason=plain(said(waits))))


def _inside_views(run: RunRecord) -> None:
    """Who has seen real data of this run, and when first."""
    viewers = [
        f"{named(view.author)} ({shared.clock(view.time)})" for view in notes.looks(store(), run)
    ]
    if viewers:
        st.caption(
            say(
                ":material/visibility: Real data first seen by: {viewers}.",
                viewers=", ".join(viewers),
            )
        )


def _rule(run: RunRecord) -> None:
    present = notes.rule(store(), run.table_id)
    with st.expander(say("Review rules for this table"), icon=":material/rule:"):
        with st.form("rule_form", border=False):
            name = name_field("rule")
            approvals = st.number_input(
                say("Approvals needed before download"),
                0,
                20,
                present.approvals,
                help=say(
                    "If this is above 0, a single request for changes also blocks the download."
                ),
            )
            alarm_approvals = st.number_input(
                say("Approvals needed if an attack succeeds"),
                0,
                20,
                present.alarm_approvals,
                help=say(
                    "Applies when an attack works better on the table's people than on strangers. "
                    "The larger of the two numbers counts."
                ),
            )
            inside = st.toggle(
                say("Reviewers may see real data (inside view)"),
                present.inside,
                help=say(
                    "Applies only if sign-in is set up. Otherwise reviewers see the outside view."
                ),
            )
            sent = st.form_submit_button(say("Save rules"))
        if sent:
            with signed(name):
                rule = Rule(int(approvals), inside, int(alarm_approvals))
                notes.set_rule(store(), table_id=run.table_id, author=name, rule=rule)


def _comments(talk: RunComments) -> None:
    st.subheader(say("Comments"), anchor=False)
    if not talk.comments:
        st.caption(say("No comments yet. You can comment on every figure."))
    for comment in talk.comments:
        _comment(talk.run, comment)
    comment_button(talk, "")


def _link(run: RunRecord, about: str) -> str:
    """A figure's name, as a link that opens the figure."""
    name, column = plain(title(about)), about.removeprefix("column:")
    if column != about:  # by its number: names are for no address
        if column not in run.schema.names:
            return name
        about = f"column:{run.schema.names.index(column)}"
    return f"[{name}](review?{urlencode({'run': run.id, 'figure': about})})" if about else name


def _comment(run: RunRecord, comment: Comment) -> None:
    with st.container(border=True):
        st.markdown(
            say(
                "**{name}** on **{what}** :gray[{time}]",
                name=named(comment.author),
                what=_link(run, comment.about),
                time=shared.clock(comment.time),
            )
        )
        st.text(comment.text)
        if comment.settled_by:
            st.caption(say(":material/check: Resolved by {name}", name=named(comment.settled_by)))
        elif st.button(say("Resolve"), key=f"settle_{comment.id}", icon=":material/check:"):
            notes.settle(
                store(),
                table_id=run.table_id,
                run_id=run.id,
                comment_id=comment.id,
                author=signed_name() or SOMEBODY,
            )
            st.rerun()
