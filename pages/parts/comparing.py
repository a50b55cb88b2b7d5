"""Runs side by side: a table to sort, a curve across ε, small multiples, and the pick."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from core.figures.column import column_figure, describe_column
from core.figures.report_figure import report_figures
from core.figures.tradeoff import tradeoff_figure, tradeoff_words
from core.quality.metrics.noisy import words
from core.quality.report.types import View
from core.runs.storage import notes
from core.runs.storage.events import State
from core.runs.storage.inside_views import viewed_runs
from core.runs.storage.notes import Decision
from core.runs.storage.records import RunRecord
from core.services import reviews
from core.services.reviews import Ranking
from pages.parts import feedback, guard, shared, viewing

NOISY, BAND = "↓ Noisy score", "± (noise)"
NOISY_MEANING = (
    "Mean total variation distance of single columns and pairs from noisy counts that a plan paid "
    "for, less what noise alone shows. Lower is closer. Covered by ε."
)
FIRST = 4  # runs that are compared when none were named


def render(run: RunRecord) -> None:
    """Compare runs of the table that `run` was made from."""
    runs = [r for r in shared.store().runs(run.table_id) if r.state is State.DONE]
    view: View = "outside"
    if viewing.may_look_inside(run.table_id):
        view = viewing.switch(runs, place="views")
    viewing.stamp(view)
    by_id = {r.id: r for r in runs}
    wanted = [i for i in st.query_params.get("runs", "").split(",") if i in by_id]
    labels = shared.told_apart({key: shared.run_label(r) for key, r in by_id.items()})
    chosen = st.multiselect(
        f"Runs of {run.table_name}",
        list(by_id),
        default=wanted or list(by_id)[:FIRST],
        format_func=labels.__getitem__,
    )
    st.query_params["runs"] = ",".join(chosen)
    allowed = [i for i in chosen if view == "inside" or by_id[i].private]
    if len(allowed) < len(chosen):
        st.caption(f":material/block: {viewing.NO_OUTSIDE}")
    found = [(by_id[i], viewing.opened(by_id[i], view)) for i in allowed]
    ready = [(one, report) for one, report in found if report is not None]
    if len(ready) < 2:
        st.caption("Choose two finished runs or more. Others of this table show here when done.")
    if not ready:
        return
    compared = [one for one, _ in ready]
    ranked = reviews.ranking(shared.store(), compared)
    _table(ready, ranked)
    _curve(ready)
    _pictures(ready, labels)
    _pick(compared, labels)
    if ranked is not None:
        _pick_by_scores(compared, ranked, labels)


def _table(found: list[tuple[RunRecord, dict[str, Any]]], ranked: Ranking | None) -> None:
    titles: dict[str, str] = {}
    rows = []
    for one, report in found:
        given = notes.review_verdicts(shared.store(), one.id)
        row: dict[str, Any] = {
            "Run": one.title,
            "Model": one.model,
            "ε": one.plan.budget.epsilon if one.private else math.inf,
            "Approved by": sum(v.decision is Decision.APPROVE for v in given),
            "Changes asked": sum(v.decision is Decision.CHANGES for v in given),
        }
        if ranked is not None and one.id in ranked.scores:
            row[NOISY], row[BAND] = (
                ranked.scores[one.id].value,
                ranked.scores[one.id].half_width,
            )
            titles |= {NOISY: NOISY_MEANING, BAND: "Half of a 95 % interval, of the noise alone."}
        if report["attacks"]:
            row["Attacks that work"] = sum(a["exposed"] for a in report["attacks"])
        for score in report["scores"]:
            arrow = "↑" if score["goal"] == "higher" else "↓"
            name = f"{arrow} {score['title']}"
            titles[name] = score["meaning"]
            row[name] = score["value"]
        rows.append(row)
    config = {
        name: st.column_config.NumberColumn(name, format="%.4g", help=meaning)
        for name, meaning in titles.items()
    }
    st.dataframe(rows, hide_index=True, column_config=config)
    st.caption("Click a heading to sort. ↑ higher is closer to the real table, ↓ lower is.")


def _curve(found: list[tuple[RunRecord, dict[str, Any]]]) -> None:
    titles = {s["key"]: s["title"] for _, report in found for s in report["scores"]}
    if not titles:
        return
    st.subheader("What ε bought", anchor=False)
    order = [k for k in ("tstr_auroc", "tstr_r2") if k in titles]
    order += [k for k in titles if k not in order]
    key = st.selectbox("Score", order, format_func=titles.__getitem__)
    points, goal = [], "higher"
    for one, report in found:
        score = next((s for s in report["scores"] if s["key"] == key), None)
        if score is None or score["value"] is None:
            continue
        goal = score["goal"]
        points.append(
            {
                "title": one.title,
                "model": one.model,
                "epsilon": one.plan.budget.epsilon if one.private else math.inf,
                "value": score["value"],
                "ceiling": score["ceiling"],
            }
        )
    if not points:
        st.caption("None of these runs has that score.")
        return
    title = f"{titles[key]} ({goal} is closer)"
    words = tradeoff_words(points, titles[key], goal)
    st.plotly_chart(tradeoff_figure(points, title), key="tradeoff", alt=words)
    st.caption(f"{words} Dotted: the same score of real data.")


def _pictures(found: list[tuple[RunRecord, dict[str, Any]]], labels: dict[str, str]) -> None:
    st.subheader("Side by side", anchor=False)
    columns = [f"Column: {name}" for name in found[0][1]["columns"]]
    pictures = {one.name.capitalize(): one for one in report_figures() if one.compared}
    what = st.selectbox("Picture", [*pictures, *columns])
    places = st.columns(min(3, len(found)))
    for i, (one, report) in enumerate(found):
        with places[i % len(places)]:
            st.markdown(f"**{labels[one.id]}**")
            if what in pictures:
                figure = pictures[what].drawn(report)
                words = pictures[what].describe(report) if figure is not None else ""
            else:
                name = what.removeprefix("Column: ")
                figure = None
                if name in report["columns"]:
                    figure = column_figure(report, name)
                    words = describe_column(report, name)
            if figure is None:
                st.caption("Not compared.")
                continue
            st.plotly_chart(
                figure, key=f"multiple_{one.id}", alt=words, config={"displayModeBar": False}
            )


def _pick(runs: list[RunRecord], labels: dict[str, str]) -> None:
    st.subheader("The one to release", anchor=False)
    table = runs[0].table_id
    now = notes.picked(shared.store(), table)
    if now is not None and now[0] in labels:
        st.success(f"{labels[now[0]]}, picked by {now[1]}.", icon=":material/trophy:")
    if not guard.steward():
        return
    seen = viewed_runs(shared.store(), runs[0].people)
    if len(seen) > 1:
        st.caption(
            f":material/visibility: Inside views of {len(seen)} runs about these people have been "
            "open. Whichever is released, its certificate says that the choice is not covered by ε."
        )
    by_id = {run.id: run for run in runs}
    with st.form("pick_form"):
        chosen = st.radio("Pick a run", list(by_id), format_func=labels.__getitem__)
        name = feedback.who("pick")
        sent = st.form_submit_button("Pick this run", icon=":material/trophy:")
    if sent and chosen is not None:
        with shared.plain_errors():
            notes.pick(shared.store(), table_id=table, run_id=chosen, author=name)
            st.session_state["my_name"] = name
            st.rerun()


def _pick_by_scores(runs: list[RunRecord], ranked: Ranking, labels: dict[str, str]) -> None:
    """The choice that needs no look at real data, with how sure it is."""
    store = shared.store()
    st.markdown("**By the noisy scores**, without looking at real data")
    st.markdown(f"Closest: {labels[ranked.best]}. Against the next one: {words(ranked.lead)}")
    looked = reviews.inside_view_words(store, runs[0].people, run_id=ranked.best)
    if looked:
        st.caption(
            ":material/visibility: Inside views of other runs about these people were open, so "
            f"its certificate says all the same: {looked}"
        )
    if not guard.steward():
        return
    with st.form("score_form"):
        name = feedback.who("score")
        sent = st.form_submit_button("Pick the best by the noisy score", icon=":material/casino:")
    if sent:
        with shared.plain_errors():
            reviews.pick_by_scores(store, runs, author=name)
            st.session_state["my_name"] = name
            st.rerun()
