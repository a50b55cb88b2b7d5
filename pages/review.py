"""Review: real against synthetic, by eye and by number."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import figures
from core.runs import service
from core.runs.events import State
from core.runs.records import RunRecord
from pages.parts import guard, routes, shared, verdicts

NOTHING = 0.001  # of a score: below this boosting made no difference


def render() -> None:
    """The page."""
    guard.require("reviewer")
    shared.header("Review", "Is the synthetic table close enough, and where does it differ?")
    run = shared.chosen_run(states=(State.DONE,))
    if run is None:
        shared.nothing_yet("There is no finished run to review yet.", "Watch training", "training")
        return
    report = service.report(shared.store(), run.id)
    if report is None:
        _waiting(run)
        return
    _head(run, report)
    if not report["complete"]:
        _refresh(run.id, len(report["scores"]))
    with st.expander("How this table was made", icon=":material/account_tree:"):
        shared.stages(run.plan, key="stages")
    verdicts.render(run, report)
    _scores(report)
    _boosting(report)
    columns, pairs, plane, predict, exposure = st.tabs(
        [
            ":material/bar_chart: Columns",
            ":material/grid_on: Pairs",
            ":material/scatter_plot: The whole table",
            ":material/online_prediction: Predictions",
            ":material/person_search: Exposure",
        ]
    )
    with columns:
        _columns(report)
    with pairs:
        _figure(figures.pairs_figure, report, "pairs", bool(report["pairs"]))
        if report.get("associations"):
            st.markdown("**How strongly columns belong together**, in each table")
            _figure(figures.association_figure, report, "associations", True)
    with plane:
        _figure(figures.pca_figure, report, "pca", bool(report["pca"]))
        _figure(
            figures.probability_figure,
            report,
            "probability",
            bool(report["dimension_probability"]),
        )
    with predict:
        _figure(
            figures.prediction_figure, report, "prediction", bool(report["dimension_prediction"])
        )
        _utility(report)
    with exposure:
        _exposure(report)


def _exposure(report: dict[str, Any]) -> None:
    """What simple attackers reach, beside what they reach without the people's data."""
    found = report.get("attacks")
    if not found:
        st.caption(
            "Not tested. It takes real rows that the synthesizer never saw, to tell what the "
            "release gives away from what is true of anyone."
        )
        return
    worst = [attack for attack in found if attack["exposed"]]
    if worst:
        st.error(
            f"{len(worst)} of {len(found)} attacks work better on people of the table than on "
            "strangers. Someone may be exposed.",
            icon=":material/person_alert:",
        )
    else:
        st.success(
            f"None of {len(found)} attacks works better on people of the table than on strangers, "
            "beyond chance. This shows no leak; only ε proves there is none to find.",
            icon=":material/shield_person:",
        )
    st.dataframe(
        [
            {
                "Attack": attack["title"],
                "On the table": attack["value"],
                "Baseline": attack["baseline"],
                "±": attack["half_width"],
                "Unit": attack["unit"],
                "Verdict": "works" if attack["exposed"] else "no better than without",
                "What it is": attack["meaning"],
            }
            for attack in found
        ],
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in ("On the table", "Baseline", "±")
        },
    )
    st.caption(
        f"{found[0]['records']:,} rows a side. Baseline: the same attack on people who were not "
        "in the table, or a coin. ±: 95 % interval of the difference."
    )


def _waiting(run: RunRecord) -> None:
    if run.state is not State.DONE:
        st.info(
            f"This run is {shared.STATE_BADGES[run.state][0].lower()}. "
            "There is something to review once it is done."
        )
        if st.button("Watch training", icon=":material/monitoring:"):
            routes.go("training", run=run.id)
        return
    st.info("The comparison is being made. It shows here in a few seconds.")
    _refresh(run.id, -1)


@st.fragment(run_every=2.0)
def _refresh(run_id: str, known: int) -> None:
    """Look for new parts of the report; rerun the page when there are some."""
    report = service.report(shared.store(), run_id)
    if report is not None and (report["complete"] or len(report["scores"]) != known):
        st.rerun()
    st.caption(":material/hourglass_top: Still comparing; more figures will appear by themselves.")


def _head(run: RunRecord, report: dict[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Inside view: shows real data, do not share", icon=":material/lock:", color="red")
        shared.privacy_badge(run)
        st.caption(
            f"{run.title} · {report['rows_real']:,} real rows against "
            f"{report['rows_synthetic']:,} synthetic rows"
        )
        if st.button("Download", type="primary", icon=":material/download:"):
            routes.go("download", run=run.id)
    for note in report["notes"]:
        st.caption(f":material/info: {note}")


def _scores(report: dict[str, Any]) -> None:
    """Every score with its unit, direction and meaning."""
    scores = report["scores"]
    for start in range(0, len(scores), 4):
        for place, score in zip(st.columns(4), scores[start : start + 4], strict=False):
            with place:
                _score(score)


def _boosting(report: dict[str, Any]) -> None:
    """What boosting changed: every score that was measured before and after it."""
    scores = report["scores"]
    rows = [s for s in scores if s.get("before") is not None and s["value"] is not None]
    if not rows:
        return
    with st.expander("Before and after boosting", icon=":material/compare_arrows:", expanded=True):
        st.dataframe(
            [
                {
                    "Score": row["title"],
                    "Before": row["before"],
                    "After": row["value"],
                    "Real data": row["ceiling"],
                    "Better": f"{row['goal']} is closer",
                    "Boosting": _verdict(row),
                }
                for row in rows
            ],
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="%.3f")
                for name in ("Before", "After", "Real data")
            },
        )
        st.caption(
            "Before: the last generator of the same training. The rows of this table are fresh "
            "draws of all kept generators, each kept with its chance; none is a repeat."
        )


def _verdict(score: dict[str, Any]) -> str:
    gain = (score["value"] - score["before"]) * (1 if score["goal"] == "higher" else -1)
    if abs(gain) < NOTHING:
        return "no difference"
    return "closer to real" if gain > 0 else "further away"


def _score(score: dict[str, Any]) -> None:
    value = score["value"]
    real = "" if score["ceiling"] is None else f" · real data {score['ceiling']:.3f}"
    unit = f" {score['unit']}" if score["unit"] else ""
    st.metric(
        score["title"],
        "—" if value is None else f"{value:.3f}{unit}",
        delta=f"{score['goal']} is closer{real}",
        delta_color="off",
        delta_arrow="off",
        help=f"{score['meaning']} Range {score['low']:g} to {score['high']:g}. {score['note']} "
        f"Source: {score['source']}",
        border=True,
    )


def _columns(report: dict[str, Any]) -> None:
    names = list(report["columns"])
    if not names:
        st.caption("Not compared yet.")
        return
    order = st.segmented_control(
        "Order", ["as in the table", "worst first"], default="as in the table"
    )
    if order == "worst first":
        names.sort(key=lambda name: -report["columns"][name]["tvd"])
    shown = shared.paged(names)  # its buttons stand above the pictures
    places = st.columns(3)
    for place, name in enumerate(shown):
        with places[place % 3], st.container(border=True):
            st.markdown(f"**{name}** :gray[distance {report['columns'][name]['tvd']:.3f}]")
            st.plotly_chart(
                figures.column_figure(report, name),
                key=f"column_{name}",
                alt=figures.describe("column", report, name),
                config={"displayModeBar": False},
            )


def _figure(draw: Any, report: dict[str, Any], kind: str, ready: bool) -> None:
    figure = draw(report) if ready else None
    if figure is None:
        st.caption("Not compared yet, or nothing to compare.")
        return
    words = figures.describe(kind, report)
    st.plotly_chart(figure, key=kind, alt=words)
    st.caption(words)


def _utility(report: dict[str, Any]) -> None:
    if not report["utility"]:
        return
    st.markdown(
        f"**Predicting “{report['target']}”**: the same model trained on each table, tested on the "
        "same real rows."
    )
    st.dataframe(
        report["utility"],
        hide_index=True,
        column_config={
            "model": "Model",
            "metric": "Measure",
            "real": st.column_config.NumberColumn("Trained on real", format="%.3f"),
            "synthetic": st.column_config.NumberColumn("Trained on synthetic", format="%.3f"),
            "baseline": st.column_config.NumberColumn("Guessing", format="%.3f"),
        },
    )


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
