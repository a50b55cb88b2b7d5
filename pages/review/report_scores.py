"""Numbers of a report: the headline scores, all of them, boosting, utility, attacks, columns."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.export.findings import boosting_words, findings
from core.figures.column import column_figure, describe_column, interval_words
from core.figures.groups import group_table, groups_figure
from core.schema.coverage import fates as fates_of
from core.schema.schema import Schema
from pages.shared import glossary
from pages.shared import widgets as shared
from pages.shared.language import number, said, say, to_say
from pages.shared.plain import plain

HEADLINES = ("tvd_1way", "tvd_2way", "wscore_pca", "tstr_auroc", "tstr_r2", "prediction_gap")
CARDS = {
    "kept": (":material/check_circle:", "green", to_say("Preserved")),
    "lost": (":material/error:", "orange", to_say("Lost")),
    "counted": (":material/join:", "blue", to_say("Measured")),
    "hidden": (":material/visibility_off:", "blue", to_say("Hidden on purpose")),
    "safe": (":material/shield_person:", "green", to_say("People")),
    "edge": (":material/person_search:", "orange", to_say("People")),
    "works": (":material/person_alert:", "orange", to_say("People")),
    "exposed": (":material/person_alert:", "red", to_say("People")),
    "unknown": (":material/help:", "gray", to_say("People")),
    "unseen": (":material/help:", "gray", to_say("Hidden by noise")),
}


def summary(report: dict[str, Any]) -> None:
    """What was kept, what was lost, who is exposed: a sentence each."""
    sentences = findings(report)
    if not sentences:
        return
    with st.container(border=True):
        for finding in sentences:
            icon, colour, word = CARDS[finding.kind]
            st.markdown(f":{colour}-badge[{icon} {said(word)}] {plain(said(finding.text))}")


def scores(report: dict[str, Any]) -> None:
    """All scores as a table, those that matter most first."""
    if not report["scores"]:
        return
    scores = sorted(report["scores"], key=lambda score: score["key"] not in HEADLINES)
    boosted = any(s.get("before") is not None for s in report["scores"])
    measured_in_units = any(s["unit"] for s in scores)
    rows = [
        {
            to_say("Score"): said(glossary.title(s)),
            to_say("Value"): s["value"],
            "±": s["half_width"] or s["spread"],
            to_say("Real data"): s["ceiling"],
            **({to_say("Unit"): said(s["unit"])} if measured_in_units else {}),
            to_say("Better"): closer(s["goal"]),
            to_say("What it is"): f"{said(s['meaning'])} {said(s['note'])}".strip(),
            to_say("Range"): number(f"{s['low']:g} {say('to').lower()} {s['high']:g}"),
            to_say("Source"): said(s["source"]),
        }
        for s in scores
    ]
    for row, score in zip(rows, scores, strict=True) if boosted else ():
        selected = score.get("before") is not None and score["value"] is not None
        row[to_say("Before selection")] = score.get("before")
        row[to_say("Effect")] = said(boosting_words(score)) if selected else ""
    shared.number_table(rows, ("Value", "±", "Real data", "Before selection"), ".4g")
    st.caption(
        say(
            "Real data: the same score for another sample of real rows, the best that is "
            "possible. ±: half of a 95% bootstrap interval, or the spread over repetitions."
        )
    )


def fates(schema: Schema) -> None:
    """Columns that did not come through whole, in one table to sort."""
    heads = to_say("Column"), to_say("What became of it"), to_say("Share of rows"), "±"
    rows = [(name, said(fate), *share) for name, fate, *share in fates_of(schema)]
    shared.number_table([dict(zip(heads, row, strict=True)) for row in rows], heads[2:], ".2%")


def closer(goal: str) -> str:
    """Which way a score is better, "higher" or "lower", in words."""
    return say("higher is closer") if goal == "higher" else say("lower is closer")


def utility(report: dict[str, Any]) -> None:
    """Models trained on each table, tested on the same real rows."""
    if not report["utility"]:
        return
    st.markdown(
        say(
            "**Predicting “{target}”**: the same model trained on each table and tested on the "
            "same real rows.",
            target=plain(report["target"]),
        )
    )
    rows = [
        {
            to_say("Model"): said(row["model"]),
            to_say("Measure"): said(row["metric"]),
            to_say("Trained on real"): row["real"],
            to_say("Trained on synthetic"): row["synthetic"],
            to_say("Guessing"): row["baseline"],
        }
        for row in report["utility"]
    ]
    shared.number_table(rows, ("Trained on real", "Trained on synthetic", "Guessing"), ".3f")


def yardstick(report: dict[str, Any]) -> None:
    """NIST's score of the whole table, and rows that contradict themselves."""
    st.markdown(say("**As close as a real subsample**"))
    by_name = {one["group"]: one for one in report["yardsticks"]}
    chosen = by_name.get(None, report["yardsticks"][0])
    st.markdown(
        say(
            "NIST's k-marginal score is {score:.0f} of 1000 points: as close as a random "
            "{share:.1%} of the real rows. As many rows drawn from the real table score "
            "{real:.0f}.",
            score=chosen["score"],
            share=chosen["as_close_as"],
            real=chosen["real"],
        )
    )
    for score in report["scores"]:
        if score["key"] == "inconsistent_rows":
            share, note = number(f"{score['value']:.2%}"), plain(said(score["note"]))
            st.markdown(f"**{said(score['title'])}**: {share}. {note}")


def groups(report: dict[str, Any]) -> None:
    """All headline figures within the groups of one or two columns, the worst groups first."""
    if not report["groupings"]:
        st.caption(
            say("Shown in the inside view only.")
            if report["view"] == "outside"
            else say("Not compared yet, or no column has groups of enough rows.")
        )
        return
    known = {frozenset(one["columns"]): one for one in report["groupings"]}
    names = list(dict.fromkeys(name for one in report["groupings"] for name in one["columns"]))
    with st.container(horizontal=True):
        first = st.selectbox(say("Groups of"), names)
        beside = [name for name in names if name != first and frozenset({first, name}) in known]
        second = st.selectbox(say("and of"), beside, None, placeholder=say("(no second column)"))
    chosen = known.get(frozenset({first, second or first}))
    if chosen is None:  # only groups of two columns were asked for
        st.caption(say("Choose a second column."))
        return
    words = " ".join(said(one) for one in chosen["sentences"])
    st.markdown(plain(words))
    if (drawn := groups_figure(chosen)) is not None:
        shared.picture(drawn, key="groups", alt=words)
    rows = [{h: said(cell) for h, cell in row.items()} for row in group_table(chosen)]
    shared.number_table(rows, (), "")
    if chosen["unseen"]:
        n = chosen["unseen"]
        st.caption(say("Groups not shown, too small or beyond the largest: {n}.", n=n))
    told = say(
        "Distances are measured within the group, on the left for another sample of real rows. "
        "Prediction: {score} of the same model trained on either table and tested on the group's "
        "real rows. Cases found: how many of the group's real cases are among the rows that the "
        "model ranks highest, as many as there are cases.",
        score=chosen["score"],
    )
    st.caption(say("Each figure: real → synthetic."), help=told)


def histories(report: dict[str, Any]) -> None:
    """How far synthetic histories lie from real ones, beside the best and the worst there is."""
    rows = [
        {
            to_say("Score"): said(s["title"]),
            to_say("Distance"): s["value"],
            to_say("Two halves of the real people"): s["ceiling"],
            to_say("Events dealt to people at random"): s["dealt"],
        }
        for s in report["scores"]
        if s.get("dealt") is not None
    ]
    shared.number_table(rows, list(rows[0])[1:] if rows else (), ".3f")
    if len(files := [plain(one["file"]) for one in report["histories"]]) > 1:
        st.caption(say("Each distance is the average over {files}.", files=", ".join(files)))


def column(report: dict[str, Any], name: str, *, key: str) -> None:
    """The picture of one column."""
    words = said(describe_column(report, name))
    shared.picture(column_figure(report, name), key=key, alt=words)
    for told in interval_words(report, name):
        st.caption(plain(said(told)))
