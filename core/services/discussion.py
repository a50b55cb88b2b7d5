"""What people say of a run, what a table's reviews need, and who has looked at real data."""

from __future__ import annotations

from core.quality.report.types import View
from core.runs.records import RunRecord
from core.runs.storage.reviews import inside_views, notes
from core.runs.storage.reviews.inside_views import SOMEBODY, InsideView
from core.runs.storage.reviews.notes import (
    Comment,
    Decision,
    ReviewVerdict,
    Rule,
    called,
    picked,
    rule,
    set_rule,
)
from core.runs.storage.store import RunStore
from core.services import reviews

__all__ = [
    "SOMEBODY",
    "Comment",
    "Decision",
    "ReviewVerdict",
    "Rule",
    "called",
    "comment",
    "comments",
    "decide",
    "look",
    "looks",
    "pick",
    "picked",
    "rule",
    "seen_runs",
    "set_rule",
    "settle",
    "verdicts",
    "waits_for",
]


def comments(store: RunStore, run: RunRecord, view: View) -> tuple[Comment, ...]:
    """A run's comments, oldest first; outside only those that were written outside."""
    return tuple(notes.comments(store, run.id, view))


def comment(
    store: RunStore, run: RunRecord, *, about: str, author: str, text: str, view: View
) -> None:
    """Pin a comment to a figure, or to the whole run where `about` is empty.

    Raises:
      RunStoreError: no name or no text; nothing was saved.
    """
    notes.comment(
        store,
        table_id=run.table_id,
        run_id=run.id,
        about=about,
        author=author,
        text=text,
        view=view,
    )


def settle(store: RunStore, run: RunRecord, comment_id: int, *, author: str) -> None:
    """Mark a comment as dealt with."""
    notes.settle(store, table_id=run.table_id, run_id=run.id, comment_id=comment_id, author=author)


def verdicts(store: RunStore, run: RunRecord, view: View = "inside") -> list[ReviewVerdict]:
    """Everyone's last verdict on a run, oldest first; outside without reasons written inside."""
    return notes.review_verdicts(store, run.id, view)


def decide(
    store: RunStore,
    run: RunRecord,
    *,
    author: str,
    decision: Decision | None,
    text: str,
    view: View,
) -> None:
    """Approve a run or ask for changes; a later verdict of the same person replaces this one.

    Raises:
      RunStoreError: no choice, no name, or changes are asked for without saying which; nothing
        was saved.
    """
    notes.decide(
        store,
        table_id=run.table_id,
        run_id=run.id,
        author=author,
        decision=decision,
        text=text,
        view=view,
    )


def waits_for(store: RunStore, run: RunRecord, view: View) -> str:
    """Why a run's download must wait for people, in a sentence; "" where it need not.

    Whether an alarm stands is known from real rows, so outside only the plain rule is told.
    """
    if view == "inside":
        return reviews.waits_for(store, run)
    return notes.missing(store, table_id=run.table_id, run_id=run.id)


def pick(store: RunStore, run: RunRecord, *, author: str) -> None:
    """Name the run of its table that shall be released, chosen by eye."""
    notes.pick(store, table_id=run.table_id, run_id=run.id, author=author)


def look(store: RunStore, run: RunRecord, *, author: str) -> None:
    """Record that somebody has a run's inside view open; "" where the name is not known."""
    inside_views.record_view(store, table_id=run.table_id, run_id=run.id, author=author)


def looks(store: RunStore, run: RunRecord) -> list[InsideView]:
    """Each person's first look at a run's inside view, oldest first."""
    every = inside_views.recorded_views(store, run.account_id)
    return [view for view in every if view.run_id == run.id]


def seen_runs(store: RunStore, run: RunRecord) -> frozenset[str]:
    """Ids of the runs about this run's people whose inside view was open."""
    return inside_views.viewed_runs(store, run.account_id)
