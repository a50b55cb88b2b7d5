"""What people say of a run, what a table's reviews need, and who has looked at real data."""

from __future__ import annotations

from core.quality.report.types import View
from core.runs.records import RunRecord
from core.runs.storage.reviews import inside_views
from core.runs.storage.reviews.inside_views import SOMEBODY, InsideView
from core.runs.storage.reviews.notes import (
    Comment,
    Decision,
    ReviewVerdict,
    Rule,
    called,
    comment,
    comments,
    decide,
    missing,
    pick,
    picked,
    release_terms,
    review_verdicts,
    rule,
    set_release_terms,
    set_rule,
    settle,
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
    "release_terms",
    "review_verdicts",
    "rule",
    "seen_runs",
    "set_release_terms",
    "set_rule",
    "settle",
    "waits_for",
]


def waits_for(store: RunStore, run: RunRecord, view: View) -> str:
    """Why a run's download must wait for people, in a sentence; "" where it need not.

    Whether an alarm stands is known from real rows, so outside only the plain rule is told.
    """
    if view == "inside":
        return reviews.waits_for(store, run)
    return missing(store, table_id=run.table_id, run_id=run.id)


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
