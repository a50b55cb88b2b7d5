"""What people say of a run: comments pinned to a figure, verdicts, the pick among a table's runs.

Everything is a note with a name and a time; notes are added and never changed, so that who said
what, and when, can be read later. A note knows in which view it was written: what was written
inside may quote real data and is not shown outside. A rule a table carries says what a download
needs.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.message import Message, minute, plural
from core.quality.report.types import View
from core.runs.errors import RunStoreError
from core.runs.storage.database import NoteRow
from core.runs.storage.reviews.inside_views import SOMEBODY, record_view
from core.runs.storage.table_store import TableStore

MOST = 4_000  # characters of a comment
RELEASE_TERMS = ("organisation", "purpose", "recipient", "legal_basis", "review_date")
SIGNED = re.compile(r"(\S+@\S+) \((.*?)\)?")  # where people sign in: an address and a name


class Decision(StrEnum):
    """What a stakeholder says of a run."""

    APPROVE = "approve"
    CHANGES = "changes"


@dataclass(frozen=True)
class Comment:
    """A remark on a figure.

    Attributes:
      about: the figure's key, such as "pca" or "column:age"; "" for the whole run.
      author, time, text: who, when (UTC), what.
      settled_by: who marked it as dealt with, or "".
    """

    id: int
    about: str
    author: str
    time: datetime
    text: str
    settled_by: str = ""


@dataclass(frozen=True)
class ReviewVerdict:
    """One person's decision on a run, with a reason that may be empty, and where it was given."""

    author: str
    time: datetime
    decision: Decision
    text: str
    view: str


@dataclass(frozen=True)
class Rule:
    """What the steward asks of a table's reviews.

    Attributes:
      approvals: how many people must approve before a download, ≥ 0; none may ask for changes.
      alarm_approvals: the same while an attack works better on the table than on strangers.
      inside: whether reviewers see real data without noise, or what people outside may see.
    """

    approvals: int = 0
    inside: bool = False
    alarm_approvals: int = 1


@dataclass(frozen=True)
class ScorePick:
    """A choice made by noisy scores alone.

    Attributes:
      runs: how many were compared, ≥ 2.
      epsilon, delta: sums over all private releases about these people until then: what the scores
        and all runs among which was chosen cost together, at most.
    """

    runs: int
    epsilon: float
    delta: float


def comment(
    store: TableStore,
    *,
    table_id: str,
    run_id: str,
    about: str,
    author: str,
    text: str,
    view: View = "inside",
) -> None:
    """Pin a remark to a figure of a run, as seen inside or outside.

    Args:
      about: the figure's key, or "" for the whole run.
      text: at most `MOST` characters are kept.

    Raises:
      RunStoreError: no name or no text; nothing was kept.
    """
    if not text.strip():
        raise RunStoreError("The comment is empty. Nothing was kept.")
    _add(store, "comment", table_id, run_id, author, about, text.strip()[:MOST], view)
    _seen(store, table_id, run_id, author, view)


def settle(store: TableStore, *, table_id: str, run_id: str, comment_id: int, author: str) -> None:
    """Mark a comment as dealt with."""
    _add(store, "settled", table_id, run_id, author, str(comment_id), "")


def comments(store: TableStore, run_id: str, view: View = "inside") -> list[Comment]:
    """A run's comments, oldest first; outside only those that were written outside."""
    written = _notes(store, run_id, ("comment", "settled"))
    settled = {int(note.about): note.author for note in written if note.kind == "settled"}
    return [
        Comment(n.id, n.about, n.author, _when(n), n.text, settled.get(n.id, ""))
        for n in written
        if n.kind == "comment" and view in ("inside", n.view)
    ]


def decide(
    store: TableStore,
    *,
    table_id: str,
    run_id: str,
    author: str,
    decision: Decision | None,
    text: str = "",
    view: View = "inside",
) -> None:
    """Approve a run or ask for changes; a later verdict of the same person replaces this one.

    Args:
      decision: what; None where nothing was chosen.
      text: why; may be empty for an approval.

    Raises:
      RunStoreError: no choice, no name, or changes are asked for without saying which; nothing was
        kept.
    """
    if decision is None:
        raise RunStoreError("Choose whether you approve or request changes. Nothing was kept.")
    if decision is Decision.CHANGES and not text.strip():
        raise RunStoreError("Say what should change. Nothing was kept.")
    _add(store, "verdict", table_id, run_id, author, decision.value, text.strip()[:MOST], view)
    _seen(store, table_id, run_id, author, view)


def review_verdicts(store: TableStore, run_id: str, view: View = "inside") -> list[ReviewVerdict]:
    """Everyone's last verdict on a run, oldest first; outside without reasons written inside."""
    last: dict[str, ReviewVerdict] = {}
    for note in _notes(store, run_id, ("verdict",)):
        last.pop(_person(note.author), None)
        last.pop(_name_without_sign_in(note.author), None)
        text = note.text if view in ("inside", note.view) else ""
        last[_person(note.author)] = ReviewVerdict(
            note.author, _when(note), Decision(note.about), text, note.view
        )
    return list(last.values())


def set_rule(store: TableStore, *, table_id: str, author: str, rule: Rule) -> None:
    """Change what a table's reviews need; who did so and when is kept."""
    if min(rule.approvals, rule.alarm_approvals) < 0:
        raise RunStoreError("The number of approvals cannot be negative. Nothing was changed.")
    text = json.dumps(asdict(rule))
    _add(store, "rule", table_id, None, author, "", text)


def rule(store: TableStore, table_id: str) -> Rule:
    """The rule that holds for a table."""
    newest = _last(store, table_id, "rule")
    return Rule() if newest is None else Rule(**json.loads(newest.text))


def pin_questions(store: TableStore, *, table_id: str, author: str, questions: list[str]) -> None:
    """Keep the questions that matter for a table, as JSON; who said so and when is kept."""
    _add(store, "questions", table_id, None, author or SOMEBODY, "", json.dumps(questions))


def pinned_questions(store: TableStore, table_id: str) -> list[str]:
    """The questions that matter for a table, see `pin_questions`."""
    newest = _last(store, table_id, "questions")
    return [] if newest is None else list(json.loads(newest.text))


def set_release_terms(
    store: TableStore, *, table_id: str, run_id: str, author: str, terms: dict[str, str]
) -> None:
    """Keep what only people can say of a run's release, `RELEASE_TERMS`; others stay as they are.

    Who said so and when is kept.
    """
    said = {name: terms[name].strip()[:MOST] for name in RELEASE_TERMS if name in terms}
    text = json.dumps((release_terms(store, run_id) or {}) | said)
    _add(store, "release", table_id, run_id, author or SOMEBODY, "", text)


def release_terms(store: TableStore, run_id: str) -> dict[str, str] | None:
    """What was said of a run's release, with "author" and "time" of the last; None for nothing."""
    notes = _notes(store, run_id, ("release",))
    if not notes:
        return None
    who = {"author": called(notes[-1].author), "time": minute(_when(notes[-1]), " UTC")}
    terms: dict[str, str] = json.loads(notes[-1].text) | who
    return terms


def pick(
    store: TableStore, *, table_id: str, run_id: str, author: str, scores: ScorePick | None = None
) -> None:
    """Name the run of a table that shall be released; `scores` says that noisy scores chose it.

    Args:
      scores: what the noisy scores cost that chose it; None for a choice by eye.
    """
    text = "" if scores is None else json.dumps(asdict(scores))
    _add(store, "pick", table_id, run_id, author, "", text)


def picked_by_scores(store: TableStore, table_id: str) -> tuple[str, ScorePick] | None:
    """The id of the picked run and how, where noisy scores made the last pick; else None."""
    newest = _last(store, table_id, "pick")
    if newest is None or newest.run_id is None or not newest.text:
        return None
    return newest.run_id, ScorePick(**json.loads(newest.text))


def picked(store: TableStore, table_id: str) -> tuple[str, str] | None:
    """The id of the picked run and who picked it; None when nobody has, or it was deleted."""
    newest = _last(store, table_id, "pick")
    return None if newest is None or newest.run_id is None else (newest.run_id, newest.author)


def missing(store: TableStore, *, table_id: str, run_id: str, alarm: bool = False) -> str:
    """Why a download must wait, in a sentence; an empty one when nothing is missing.

    Args:
      alarm: whether an attack works better on the table than on strangers.
    """
    present = rule(store, table_id)
    alarmed = present.alarm_approvals if alarm else 0
    if not max(present.approvals, alarmed):
        return ""
    given = review_verdicts(store, run_id)
    against = [v.author for v in given if v.decision is Decision.CHANGES]
    if against:
        return Message("Changes were asked for by {against}.", against=", ".join(against))
    approvals = [v.view for v in given if v.decision is Decision.APPROVE]
    lacking = present.approvals - len(approvals)
    unseen = alarmed - approvals.count("inside")  # the outside view shows no alarm
    if max(lacking, unseen) <= 0:
        return ""
    if unseen >= lacking:
        return plural(
            unseen,
            "1 more person has to approve this run in its inside view on the Review page.",
            "{n} more people have to approve this run in its inside view on the Review page.",
        )
    return plural(
        lacking,
        "1 more person has to approve this run on the Review page.",
        "{n} more people have to approve this run on the Review page.",
    )


def _seen(store: TableStore, table_id: str, run_id: str, author: str, view: View) -> None:
    """Whoever writes in the inside view has it open."""
    if view == "inside":
        record_view(store, table_id=table_id, run_id=run_id, author=author)


def called(author: str) -> str:
    """The name of who signed a note, without the address.

    >>> called("ann@x.org (Ann)"), called("Ann")
    ('Ann', 'Ann')
    """
    signed = SIGNED.fullmatch(author)
    return signed[2] if signed else author


def _person(author: str) -> str:
    """Who signed a note: an address says so, since names are people's own to choose."""
    signed = SIGNED.fullmatch(author)
    return " ".join((signed[1] if signed else author).casefold().split())


def _name_without_sign_in(author: str) -> str:
    """How the same person signs where nobody signs in: by name alone, never by an address."""
    name = " ".join(called(author).casefold().split())
    return "" if "@" in name else name


def _add(
    store: TableStore,
    kind: str,
    table_id: str,
    run_id: str | None,
    author: str,
    about: str,
    text: str,
    view: View = "inside",
) -> None:
    name = " ".join(author.split())[:120]
    if not name:
        raise RunStoreError("Write your name first, so that others know who said it.")
    with Session(store.engine) as session, session.begin():
        session.add(
            NoteRow(
                table_id=table_id,
                run_id=run_id,
                time=time.time(),
                author=name,
                kind=kind,
                view=view,
                about=about,
                text=text,
            )
        )


def _notes(store: TableStore, run_id: str, kinds: tuple[str, ...]) -> list[NoteRow]:
    query = select(NoteRow).where(NoteRow.run_id == run_id, NoteRow.kind.in_(kinds))
    with Session(store.engine, expire_on_commit=False) as session:
        return list(session.scalars(query.order_by(NoteRow.id)))


def _last(store: TableStore, table_id: str, kind: str) -> NoteRow | None:
    query = select(NoteRow).where(NoteRow.table_id == table_id, NoteRow.kind == kind)
    with Session(store.engine, expire_on_commit=False) as session:
        return session.scalars(query.order_by(NoteRow.id.desc()).limit(1)).first()


def _when(note: NoteRow) -> datetime:
    return datetime.fromtimestamp(note.time, UTC)
