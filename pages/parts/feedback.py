"""What people say of a run: comments beside figures, verdicts, and what a download needs."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.figures.report_figure import report_figures
from core.quality.report.types import View
from core.runs.storage import notes
from core.runs.storage.errors import RunStoreError
from core.runs.storage.inside_views import recorded_views
from core.runs.storage.notes import Comment, Decision, Rule
from core.runs.storage.records import RunRecord
from pages.parts import guard, shared

TITLES = {"": "the whole run", "utility": "learning the target", "exposure": "exposure"}


def title(about: str) -> str:
    """A figure's name for people.

    >>> title("column:age"), title("pca")
    ('age', 'two main axes')
    """
    titles = TITLES | {figure.id: figure.name for figure in report_figures()}
    return titles.get(about, about.removeprefix("column:"))


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
    found = [c for c in talk.comments if c.about == about]
    for one in found:
        if not one.settled_by:
            st.caption(f":material/chat_bubble: **{one.author}**: {one.text}")
    words = f"Comment ({len(found)})" if found else "Comment"
    if st.button(words, key=f"pin_{about}", icon=":material/add_comment:", type="tertiary"):
        _ask(talk.run, about, talk.view)


@st.dialog("Comment")
def _ask(run: RunRecord, about: str, view: View) -> None:
    st.markdown(f"On **{title(about)}**")
    with st.form("comment_form", border=False):
        name = who("comment")
        text = st.text_area("What do you see?", max_chars=2_000)
        sent = st.form_submit_button("Keep this comment", type="primary")
    if sent:
        try:
            notes.comment(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                about=about,
                author=name,
                text=text,
                view=view,
            )
        except RunStoreError as error:
            st.error(str(error))
        else:
            st.session_state["my_name"] = name
            st.rerun()


def who(place: str) -> str:
    """The person's name: from sign-in where there is one, else as they write it."""
    known = guard.person()
    if known:
        st.caption(f"As {known}")
        return known
    return st.text_input(
        "Your name", st.session_state.get("my_name", ""), max_chars=120, key=f"name_{place}"
    )


def discussion(talk: Talk) -> None:
    """Verdicts, every comment, and the steward's rule."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        _decide(talk.run, talk.view)
        _comments(talk)
    with right:
        _verdicts(talk.run, talk.view)
        if guard.steward():
            _looks(talk.run)
            _rule(talk.run)


def _decide(run: RunRecord, view: View) -> None:
    st.subheader("Your verdict", anchor=False)
    with st.form("verdict_form", clear_on_submit=False):
        name = who("verdict")
        decision = st.radio(
            "May this table be released?",
            list(Decision),
            format_func=lambda d: "Approve" if d is Decision.APPROVE else "Request changes",
            horizontal=True,
        )
        text = st.text_area("Why, or what should change", max_chars=2_000)
        sent = st.form_submit_button("Give this verdict", type="primary")
    if sent:
        with shared.plain_errors():
            notes.decide(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                author=name,
                decision=decision,
                text=text,
                view=view,
            )
            st.session_state["my_name"] = name
            st.rerun()


def _verdicts(run: RunRecord, view: View) -> None:
    st.subheader("Verdicts", anchor=False)
    given = notes.review_verdicts(shared.store(), run.id, view)
    if not given:
        st.caption("Nobody has given one yet.")
    for one in given:
        good = one.decision is Decision.APPROVE
        st.badge(
            "Approved" if good else "Changes requested",
            icon=":material/thumb_up:" if good else ":material/edit:",
            color="green" if good else "orange",
        )
        st.markdown(f"**{one.author}** :gray[{one.time.astimezone():%d %b %Y %H:%M}]  \n{one.text}")
    waits = notes.missing(shared.store(), table_id=run.table_id, run_id=run.id)
    if waits:
        st.caption(f":material/block: Download waits: {waits}")


def _looks(run: RunRecord) -> None:
    """Who had real data of this run in sight, and when first."""
    seen = [one for one in recorded_views(shared.store(), run.people) if one.run_id == run.id]
    named = [
        f"{one.author} ({one.time.astimezone():%d %b %Y %H:%M})"
        if one.recorded
        else "perhaps somebody, before looks were recorded"
        for one in seen
    ]
    if named:
        st.caption(f":material/visibility: Real data was in sight first of: {', '.join(named)}.")


def _rule(run: RunRecord) -> None:
    now = notes.rule(shared.store(), run.table_id)
    with st.expander("What this table's reviews need", icon=":material/rule:"):
        with st.form("rule_form", border=False):
            name = who("rule")
            approvals = st.number_input(
                "Approvals before a download",
                0,
                20,
                now.approvals,
                help="With any number above 0, a single request for changes also blocks it.",
            )
            inside = st.toggle(
                "Reviewers work inside: they may see real data",
                now.inside,
                help="Matters where sign-in is set up. Otherwise they see the outside view.",
            )
            sent = st.form_submit_button("Keep this rule")
        if sent:
            with shared.plain_errors():
                new = Rule(approvals=int(approvals), inside=inside)
                notes.set_rule(shared.store(), table_id=run.table_id, author=name, rule=new)
                st.session_state["my_name"] = name
                st.rerun()


def _comments(talk: Talk) -> None:
    st.subheader("Comments", anchor=False)
    if not talk.comments:
        st.caption("None yet. Every figure has a button to comment on it.")
    for one in talk.comments:
        _comment(talk.run, one)
    pin(talk, "")


def _comment(run: RunRecord, one: Comment) -> None:
    with st.container(border=True):
        st.markdown(
            f"**{one.author}** on **{title(one.about)}** "
            f":gray[{one.time.astimezone():%d %b %Y %H:%M}]"
        )
        st.text(one.text)
        if one.settled_by:
            st.caption(f":material/check: Settled by {one.settled_by}")
        elif st.button("Settled", key=f"settle_{one.id}", icon=":material/check:"):
            name = guard.person() or st.session_state.get("my_name", "") or "somebody here"
            notes.settle(
                shared.store(),
                table_id=run.table_id,
                run_id=run.id,
                comment_id=one.id,
                author=name,
            )
            st.rerun()
