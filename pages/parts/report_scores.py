"""Numbers of a report: the headline scores, all of them, boosting, utility, attacks, columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.export.findings import boosting_words, findings
from core.figures.column import column_figure, describe_column
from pages.parts import glossary, shared
from pages.parts.plain import plain

HEADLINES = ("tvd_1way", "tvd_2way", "wscore_pca", "tstr_auroc", "tstr_r2", "prediction_gap")
MOST = 4  # cards in a row
CARDS = {
    "kept": (":material/check_circle:", "green", "Kept"),
    "lost": (":material/error:", "orange", "Lost"),
    "counted": (":material/join:", "blue", "Counted"),
    "hidden": (":material/visibility_off:", "blue", "Hidden on purpose"),
    "safe": (":material/shield_person:", "green", "People"),
    "edge": (":material/person_search:", "orange", "People"),
    "exposed": (":material/person_alert:", "red", "People"),
    "unknown": (":material/help:", "gray", "People"),
}


def summary(report: dict[str, Any]) -> None:
    """What was kept, what was lost, who is exposed: a sentence each."""
    sentences = findings(report)
    if not sentences:
        return
    with st.container(border=True):
        for finding in sentences:
            icon, colour, word = CARDS[finding.kind]
            st.markdown(f":{colour}-badge[{icon} {word}] {plain(finding.text)}")


def scores(report: dict[str, Any]) -> None:
    """The headline scores as cards, all scores as a table."""
    if not report["scores"]:
        return
    shown = sorted(report["scores"], key=lambda score: score["key"] not in HEADLINES)[:MOST]
    for place, score in shared.tiles(shown, len(shown)):
        with place:
            _score(score)
    with st.expander("All scores with their meaning", icon=":material/list:"):
        rows = [
            {
                "Score": s["title"],
                "Value": s["value"],
                "±": s["half_width"] or s["spread"],
                "Real data": s["ceiling"],
                "Unit": s["unit"],
                "Better": f"{s['goal']} is closer",
                "What it is": f"{s['meaning']} {s['note']}".strip(),
                "Range": f"{s['low']:g} to {s['high']:g}",
                "Source": s["source"],
            }
            for s in report["scores"]
        ]
        numbers(rows, ("Value", "±", "Real data"), "%.4g")
        st.caption(
            "Real data: the same score of real rows drawn anew, the best that can be hoped for. "
            "±: half of a 95 % interval by bootstrap, or the spread over repetitions."
        )


def boosting(report: dict[str, Any]) -> None:
    """What boosting changed: every score that was measured before and after it."""
    scores = report["scores"]
    boosted = [s for s in scores if s.get("before") is not None and s["value"] is not None]
    if not boosted:
        return
    with st.expander("Before and after boosting", icon=":material/compare_arrows:", expanded=True):
        rows = [
            {
                "Score": glossary.title(score),
                "Before": score["before"],
                "After": score["value"],
                "Real data": score["ceiling"],
                "Better": f"{score['goal']} is closer",
                "Boosting": boosting_words(score),
            }
            for score in boosted
        ]
        numbers(rows, ("Before", "After", "Real data"), "%.3f")
        st.caption(
            "Before: the last generator of the same training. The rows of this table are fresh "
            "draws of all kept generators, each kept with its chance; none is a repeat."
        )


def numbers(rows: Sequence[dict[str, Any]], numeric: Sequence[str], format: str) -> None:
    """Rows as a table, some columns of it in one number format."""
    config = {name: st.column_config.NumberColumn(format=format) for name in numeric}
    st.dataframe(rows, hide_index=True, column_config=config)


def _score(score: dict[str, Any]) -> None:
    value = score["value"]
    real = "" if score["ceiling"] is None else f" · real data {score['ceiling']:.3f}"
    unit = f" {score['unit']}" if score["unit"] else ""
    band = f" ± {score['half_width']:.3f}" if score.get("half_width") else ""
    st.metric(
        glossary.title(score),
        "—" if value is None else f"{value:.3f}{band}{unit}",
        delta=f"{score['goal']} is closer{real}",
        delta_color="off",
        delta_arrow="off",
        help=f"{score['title']}. {score['meaning']} Range {score['low']:g} to {score['high']:g}. "
        f"{plain(score['note'])} Source: {score['source']}",
        border=True,
    )


def utility(report: dict[str, Any]) -> None:
    """Models trained on each table, tested on the same real rows."""
    if not report["utility"]:
        return
    st.markdown(
        f"**Predicting “{plain(report['target'])}”**: the same model trained on each "
        "table, tested on the same real rows."
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


def column(report: dict[str, Any], name: str, *, key: str) -> None:
    """The picture of one column."""
    shared.picture(column_figure(report, name), key=key, alt=describe_column(report, name))
