"""Review: real against synthetic, by eye and by number, and what people say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.histories import choices, history_columns
from core.figures.report_figure import ReportFigure, report_figures
from core.quality.report.types import View
from core.runs.events import State
from core.runs.records import RunRecord
from core.services import limits, reviews, runs
from pages.review import (
    discussion,
    exposure,
    lmdp_results,
    my_analysis,
    report_scores,
    report_view,
    run_comparison,
)
from pages.review.discussion import RunComments
from pages.server import guard, routes
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import declared_rules

SIDE = 5  # columns of rows that stand side by side
FIRST = 6  # pictures of columns at a time: a browser takes longest for drawing them
ONE, SEVERAL = to_say("One run"), to_say("Compare runs")
TABS = {
    "columns": to_say(":material/bar_chart: Columns"),
    "pairs": to_say(":material/grid_on: Pairs"),
    "plane": to_say(":material/scatter_plot: The whole table"),
    "predictions": to_say(":material/online_prediction: Predictions"),
    "groups": to_say(":material/groups: Groups"),
    "histories": to_say(":material/timeline: Histories"),
    "findings": to_say(":material/checklist: Findings and scores"),
    "exposure": to_say(":material/person_search: Exposure"),
    "analysis": to_say(":material/push_pin: My analysis"),
    "discussion": to_say(":material/forum: Discussion"),
}
AS_IN_TABLE, WORST_FIRST = to_say("as in the table"), to_say("largest difference first")


def render() -> None:
    """The page."""
    guard.require("reviewer", "steward")
    head = st.container(horizontal=True, vertical_alignment="center")
    head.title(say("Review"), anchor=False)
    bar = st.container(horizontal=True, vertical_alignment="bottom", key="review_bar")
    with bar:
        run = shared.finished_run(say("No run has finished yet, so there is nothing to review."))
        if run is None:
            return
        mode = st.segmented_control(
            say("Show"),
            [ONE, SEVERAL],
            default=SEVERAL if st.query_params.get("runs") else ONE,
            format_func=said,
            required=True,
            key=keyed("mode"),
        )
    if mode == SEVERAL:
        run_comparison.render(run)
        return
    if "runs" in st.query_params:
        del st.query_params["runs"]
    with bar:
        view = report_view.choose(run)
    _one(run, view, head)


def _one(run: RunRecord, view: View, head: DeltaGenerator) -> None:
    """Everything about one run; the buttons stand beside the title."""
    report = report_view.opened(run, view)
    if report is None:
        _waiting(run)
        return
    with head:
        st.space("stretch")
        report_view.share_report(run, report, view)
        if guard.steward():
            routes.button(say("Download"), "download", primary=True, run=run.id)
    _head(run, report, view)
    if not report["complete"]:
        if run.state.live:
            _refresh(run.id, len(report["scores"]))
        else:
            reason = plain(said(run.message))
            st.warning(
                say("The comparison is not complete. {reason}", reason=reason),
                icon=":material/warning:",
            )
            _again(run)
    report_view.verdict_card(run, report)
    if view == "inside":
        lmdp_results.render(run, report)
    _tabs(run, report, view)


def _tabs(run: RunRecord, report: dict[str, Any], view: View) -> None:
    """The parts of the comparison; only the open one is made, since drawing takes the time."""
    talk = RunComments.about(run, view)
    wanted = st.query_params.get("figure", "")  # a link to one figure opens its tab
    names = {figure.id: figure.tab for figure in report_figures()}
    usual = "columns" if wanted or view == "inside" else "findings"
    first = said(TABS[names.get(wanted, usual)])
    shown = [name for name in TABS if name != "histories" or report.get("histories")]
    labels = [said(TABS[name]) for name in shown]
    tabs = st.tabs(labels, default=first, key="tab", bind="query-params")
    parts: dict[str, Callable[[], None]] = {
        "columns": lambda: _columns(talk, report, wanted),
        "predictions": lambda: _predictions(talk, report),
        "groups": lambda: report_scores.groups(report),
        "histories": lambda: _histories(talk, report),
        "findings": lambda: _findings(run, report, view),
        "exposure": lambda: _exposure(talk, report),
        "analysis": lambda: my_analysis.tab(run, report),
        "discussion": lambda: discussion.discussion(talk),
    }
    for name, tab in zip(shown, tabs, strict=True):
        if not tab.open:
            continue
        with tab:
            if name in parts:
                parts[name]()
            else:
                _figures(talk, report, name)


def _findings(run: RunRecord, report: dict[str, Any], view: View) -> None:
    """What the verdict rests on, and how the table was made."""
    report_scores.summary(report)
    report_scores.fates(run.schema)
    if view == "outside":
        report_view.limits_note(run)
    for note in report["notes"]:
        st.caption(f":material/info: {plain(said(note))}")
    declared_rules.render_broken(run, report)
    report_scores.scores(report)
    made = st.expander(
        say("How this table was made"),
        icon=":material/account_tree:",
        key="made",
        on_change="rerun",
    )
    if made.open:
        with made:
            shared.stages(run.plan)


def _exposure(talk: RunComments, report: dict[str, Any]) -> None:
    exposure.tab(talk.run, report)
    if talk.view == "inside":
        discussion.comment_button(talk, "exposure")


def _waiting(run: RunRecord) -> None:
    if run.state is State.RUNNING and store().has_result(run.id):
        st.info(say("The comparison is running. The first figures appear in a few seconds."))
        _refresh(run.id, -1)
        return
    if run.state is not State.DONE:
        shared.unfinished(run)
        return
    st.info(say("This run has not been compared with the real table yet."))
    _again(run)


@st.fragment(run_every=1.5)
@shared.plain_errors()
def _refresh(run_id: str, known: int) -> None:
    """How far the comparison is; the page is drawn again when it has new parts."""
    visible.still(run_id, "steward", "reviewer")
    report = reviews.report(store(), run_id)
    if report is not None and (report["complete"] or len(report["scores"]) != known):
        st.rerun()
    now = runs.progress(store(), run_id)
    text = say(
        "Still comparing{time_left}. More figures will appear automatically.",
        time_left=shared.time_left(now.eta_seconds),
    )
    st.progress(now.fraction, text)


def _again(run: RunRecord) -> None:
    """A way for stewards to have a stopped comparison after all; it spends nothing."""
    if not guard.steward():
        st.caption(say("A steward can finish the comparison."))
        return
    if st.button(say("Finish the comparison"), icon=":material/restart_alt:"):
        with shared.change():
            runs.compare_again(store(), shared.launcher(), run.id)


def _head(run: RunRecord, report: dict[str, Any], view: View) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        report_view.STAMPS[view].show()
        shared.privacy_badge(run)
        real, synthetic = report["rows_real"], report["rows_synthetic"]
        rows = (
            say("{real:,} real and {n:,} synthetic rows", real=real, n=synthetic)
            if view == "inside"
            else say("{n:,} synthetic rows", n=synthetic)
        )
        st.caption(rows, width="content")
    report_view.selection_note(run)
    report_view.disputed(run)


def _columns(talk: RunComments, report: dict[str, Any], figure: str) -> None:
    """Each column's picture, the worst first; that of the figure in a link before all others."""
    number, every = figure.removeprefix("column:"), talk.run.schema.names
    wanted = every[int(number)] if number.isdigit() and int(number) < len(every) else ""
    pictures = report["columns"]
    if not pictures:
        st.caption(say("Not compared yet."))
        return
    names = list(pictures)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if all(picture["tvd"] is not None for picture in pictures.values()):
            order = st.segmented_control(
                say("Order"), [WORST_FIRST, AS_IN_TABLE], default=WORST_FIRST, format_func=said
            )
            if order == WORST_FIRST:
                names.sort(key=lambda name: -pictures[name]["tvd"])
        names.sort(key=lambda name: name != wanted)
        shown = shared.paged(names, FIRST)  # its buttons stand above the pictures
    hidden = limits.hidden_columns(talk.run)
    for tile, name in shared.tiles(shown, border=True):
        with tile:
            tvd = pictures[name]["tvd"]
            words = [f"**{plain(name)}**"]
            if tvd is not None:
                words.append(say(":gray[distance {distance:.3f}]", distance=tvd))
            if name in hidden:
                words.append(say(":blue-badge[hidden on purpose]"))
            st.markdown(" ".join(words))
            report_scores.column(report, name, key=f"column_{name}")
            discussion.comment_button(talk, f"column:{name}")


def _predictions(talk: RunComments, report: dict[str, Any]) -> None:
    """Every column learnt from the others; those that cannot be are shown by their shares."""
    _figures(talk, report, "predictions")
    report_scores.utility(report)
    if report["utility"]:
        discussion.comment_button(talk, "utility")
    dropped = [plain(p["column"]) for p in report["dimension_prediction"] if not p["predictable"]]
    if dropped:
        words = say("Real rows cannot predict these either: {columns}.", columns=", ".join(dropped))
        st.caption(words)


def _histories(talk: RunComments, report: dict[str, Any]) -> None:
    """How events of people follow on one another; of several columns or files one is chosen."""

    def name(choice: tuple[int, int]) -> str:
        one = report["histories"][choice[0]]
        column = plain(one["states"][choice[1]]["column"]) if one["states"] else ""
        return " · ".join(filter(None, (plain(one["file"]), column)))

    found = choices(report)
    if len(found) > 1:
        chosen = st.selectbox(say("Events of"), found, format_func=name)
        report = report | {"history": chosen}
    report_scores.histories(report)
    pictures = {said(title): one for title, one in history_columns(report).items()}
    for tile, title in shared.tiles(list(pictures), border=True):
        with tile:
            st.markdown(f"**{title}**")
            report_scores.column({"columns": pictures}, title, key=f"history_{title}")
    _figures(talk, report, "histories")


def _rows(talk: RunComments) -> None:
    """The first rows of both tables side by side, in the columns that somebody picks."""
    if talk.view == "outside" or not guard.steward():  # reviewers see figures, not real rows
        return
    newest = store().journal.latest(talk.run.id, "preview")
    if newest is None:
        return
    synthetic = pd.DataFrame(newest.data["rows"])
    real = pd.DataFrame(visible.table(talk.run.table_id).profile["preview"]).head(len(synthetic))
    names = [name for name in synthetic if name in real]
    picked = st.multiselect(
        say("Rows side by side, in these columns"), names, names[:SIDE], placeholder=say("Choose")
    )
    for place, title, rows in zip(
        st.columns(2), (say("real"), say("synthetic")), (real, synthetic), strict=True
    ):
        place.caption(title)
        place.dataframe(rows[picked], hide_index=True, placeholder="")


def _figures(talk: RunComments, report: dict[str, Any], tab: str) -> None:
    """The figures of one tab."""
    if tab == "plane":
        _rows(talk)
    if tab == "plane" and report["yardsticks"]:
        report_scores.yardstick(report)
    for declared in report_figures():
        if declared.tab == tab:
            _figure(talk, declared, report)


def _figure(talk: RunComments, declared: ReportFigure, report: dict[str, Any]) -> None:
    figure = declared.drawn(report)
    if figure is None:
        if not declared.headed:
            st.caption(
                say("Shown in the inside view only.")
                if report["view"] == "outside"
                else say("Not compared yet, or nothing to compare.")
            )
        return
    if declared.headed:
        st.markdown(f"**{said(declared.title)}**")
    words = said(declared.describe(report))
    shared.picture(figure, key=declared.id, alt=words)
    st.caption(plain(words))
    discussion.comment_button(talk, declared.id)
