"""Review: real against synthetic, by eye and by number, and what people say of it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.figures.column import column_figure, describe_column
from core.figures.report_figure import ReportFigure, report_figures
from core.quality.report.types import View
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord
from core.services import reviews, runs
from pages.parts import comparing, feedback, guard, routes, scores, shared, verdicts, viewing
from pages.parts.feedback import Talk

ONE, SEVERAL = "One run", "Compare runs"


def render() -> None:
    """The page."""
    guard.require("reviewer")
    shared.header("Review", "Is the synthetic table close enough, and where does it differ?")
    run = shared.chosen_run(states=(State.DONE,))
    if run is None:
        shared.nothing_yet("There is no finished run to review yet.", "Watch training", "training")
        return
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    with bar:
        mode = st.segmented_control(
            "Look at",
            [ONE, SEVERAL],
            default=SEVERAL if st.query_params.get("runs") else ONE,
            required=True,
            key="mode",
        )
    if mode == SEVERAL:
        comparing.render(run)
        return
    if "runs" in st.query_params:
        del st.query_params["runs"]
    with bar:
        view = viewing.choose(run)
    _one(run, view)


def _one(run: RunRecord, view: View) -> None:
    """Everything about one run."""
    report = viewing.opened(run, view)
    if report is None:
        _waiting(run)
        return
    _head(run, report, view)
    if not report["complete"]:
        if run.state.live:
            _refresh(run.id, len(report["scores"]))
        else:
            st.warning(f"The comparison is not complete. {run.message}", icon=":material/warning:")
            _again(run)
    scores.summary(report)
    scores.scores(report)
    scores.boosting(report)
    if view == "inside":
        verdicts.render(run, report)
    with st.expander("How this table was made", icon=":material/account_tree:"):
        shared.stages(run.plan, key="stages")
    talk = feedback.Talk.about(run, view)
    said = len(talk.comments)
    names = [
        ":material/bar_chart: Columns",
        ":material/grid_on: Pairs",
        ":material/scatter_plot: The whole table",
        ":material/online_prediction: Predictions",
        ":material/person_search: Exposure",
        f":material/forum: Discussion{f' ({said})' if said else ''}",
    ]
    columns, pairs, plane, predict, exposure, discussion = st.tabs(names)
    with columns:
        _columns(talk, report)
    with pairs:
        _figures(talk, report, "pairs")
    with plane:
        _figures(talk, report, "plane")
    with predict:
        _predictions(talk, report)
    with exposure:
        if view == "outside":
            st.caption("Attacks compare with real rows, so their results stay inside.")
        else:
            scores.exposure(report)
            feedback.pin(talk, "exposure")
    with discussion:
        feedback.discussion(talk)


def _waiting(run: RunRecord) -> None:
    if run.state is State.RUNNING and shared.store().has_result(run.id):
        st.info("The comparison is being made. Its first figures show in a few seconds.")
        _refresh(run.id, -1)
        return
    if run.state is not State.DONE:
        st.info(
            f"This run is {shared.STATE_BADGES[run.state][0].lower()}. "
            "There is something to review once it is done."
        )
        if st.button("Watch training", icon=":material/monitoring:"):
            routes.go("training", run=run.id)
        return
    st.info("There is no comparison with the real table yet.")
    _again(run)


@st.fragment(run_every=1.5)
def _refresh(run_id: str, known: int) -> None:
    """How far the comparison is; the page is drawn again when it has new parts."""
    report = reviews.report(shared.store(), run_id)
    if report is not None and (report["complete"] or len(report["scores"]) != known):
        st.rerun()
    now = runs.progress(shared.store(), run_id)
    left = "" if now.eta_seconds is None else f" · about {shared.duration(now.eta_seconds)} left"
    st.progress(now.fraction, f"Still comparing{left}. More figures will appear by themselves.")


def _again(run: RunRecord) -> None:
    """A way to have a stopped comparison after all; it spends nothing."""
    if st.button("Finish the comparison", icon=":material/restart_alt:"):
        with shared.plain_errors():
            runs.compare_again(shared.store(), shared.launcher(), run.id)
            st.rerun()


def _head(run: RunRecord, report: dict[str, Any], view: View) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        viewing.stamp(view)
        shared.privacy_badge(run)
        against = f"{report['rows_real']:,} real rows against " if view == "inside" else ""
        st.caption(f"{run.title} · {against}{report['rows_synthetic']:,} synthetic rows")
        viewing.take_along(run, report, view)
        if st.button("Download", type="primary", icon=":material/download:"):
            routes.go("download", run=run.id)
    viewing.chosen_how(run)
    for note in report["notes"]:
        st.caption(f":material/info: {note}")


def _columns(talk: Talk, report: dict[str, Any]) -> None:
    names = list(report["columns"])
    if not names:
        st.caption("Not compared yet.")
        return
    pictures = report["columns"]
    measured = all(picture["tvd"] is not None for picture in pictures.values())
    if measured:
        order = st.segmented_control(
            "Order", ["as in the table", "worst first"], default="as in the table"
        )
        if order == "worst first":
            names.sort(key=lambda name: -pictures[name]["tvd"])
    shown = shared.paged(names)  # its buttons stand above the pictures
    places = st.columns(3)
    for place, name in enumerate(shown):
        with places[place % 3], st.container(border=True):
            tvd = pictures[name]["tvd"]
            distance = "" if tvd is None else f" :gray[distance {tvd:.3f}]"
            st.markdown(f"**{name}**{distance}")
            st.plotly_chart(
                column_figure(report, name),
                key=f"column_{name}",
                alt=describe_column(report, name),
                config={"displayModeBar": False},
            )
            feedback.pin(talk, f"column:{name}")


def _predictions(talk: Talk, report: dict[str, Any]) -> None:
    """Every column learnt from the others; those that cannot be are shown by their shares."""
    _figures(talk, report, "predictions")
    scores.utility(report)
    if report["utility"]:
        feedback.pin(talk, "utility")
    dropped = [p for p in report["dimension_prediction"] if not p["predictable"]]
    if not dropped:
        return
    with st.expander(
        f"{len(dropped)} columns that even real rows do not predict",
        icon=":material/filter_alt_off:",
    ):
        st.caption("They are left out of the gap. Their shares are all there is to compare.")
        places = st.columns(3)
        for place, point in enumerate(dropped):
            with places[place % 3]:
                st.markdown(f"**{point['column']}** :gray[{point['note']}]")
                st.plotly_chart(
                    column_figure(report, point["column"]),
                    key=f"dropped_{point['column']}",
                    alt=describe_column(report, point["column"]),
                    config={"displayModeBar": False},
                )


def _figures(talk: Talk, report: dict[str, Any], tab: str) -> None:
    """The figures of one tab."""
    for declared in report_figures():
        if declared.tab == tab:
            _figure(talk, declared, report)


def _figure(talk: Talk, declared: ReportFigure, report: dict[str, Any]) -> None:
    figure = declared.drawn(report)
    if figure is None:
        if not declared.headed:
            outside = report["view"] == "outside"
            st.caption("Stays inside." if outside else "Not compared yet, or nothing to compare.")
        return
    if declared.headed:
        st.markdown(f"**{declared.title}**")
    words = declared.describe(report)
    st.plotly_chart(figure, key=declared.id, alt=words)
    st.caption(words)
    feedback.pin(talk, declared.id)


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
