"""Runs side by side: a table to sort, a curve across ε, small multiples, and the pick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.figures.report_figure import report_figures
from core.figures.tradeoff import tradeoff_figure, tradeoff_words
from core.quality.metrics.noisy import words
from core.quality.report.types import View
from core.runs.accounts import spending
from core.runs.events import State
from core.runs.records import RunRecord
from core.services import discussion as notes
from core.services import reviews
from core.services.discussion import Decision
from core.services.reviews import Ranking
from pages.review import discussion, report_scores, report_view
from pages.server import guard
from pages.shared import glossary, visible
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

NOISY, BAND = to_say("↓ Noisy score"), to_say("± (noise)")
NOISY_MEANING = to_say(
    "Mean total variation distance of single columns and pairs, measured with noisy counts that a "
    "plan paid for and corrected for the noise. Lower is closer. Covered by ε."
)
LEARNING = ("tstr_auroc", "tstr_r2")  # scores that the curve shows first
FIRST = 4  # runs that are compared when none were named
Reports = Sequence[tuple[RunRecord, dict[str, Any]]]


def render(run: RunRecord) -> None:
    """Compare runs of the table that `run` was made from."""
    runs = [r for r in visible.runs(run.table_id) if r.state is State.DONE]
    view: View = "outside"
    if visible.may_look_inside(run.table_id):
        view = report_view.switch(runs, parameter="views")
    report_view.STAMPS[view].show()
    by_id = {r.id: r for r in runs}
    wanted = [i for i in st.query_params.get("runs", "").split(",") if i in by_id]
    labels = shared.unique_labels({key: shared.run_label(r) for key, r in by_id.items()})
    chosen = st.multiselect(
        say("Runs of {table}", table=plain(run.table_name)),
        list(by_id),
        default=wanted or list(by_id)[:FIRST],
        format_func=labels.__getitem__,
        placeholder=say("Choose"),
    )
    st.query_params["runs"] = ",".join(chosen)
    allowed = [i for i in chosen if view == "inside" or by_id[i].private]
    if len(allowed) < len(chosen):
        st.caption(f":material/block: {said(visible.NO_OUTSIDE)}")
    opened = [(by_id[i], report_view.opened(by_id[i], view)) for i in allowed]
    reports = [(run, report) for run, report in opened if report is not None]
    if len(reports) < 2:
        st.caption(
            say(
                "Choose at least two finished runs. Other runs of this table appear here when they "
                "are done."
            )
        )
    if not reports:
        return
    compared = [run for run, _ in reports]
    ranked = reviews.ranking(store(), compared)
    _table(reports, ranked)
    if len(reports) > 1:
        _curve(reports)
    _pictures(reports, labels)
    _pick(compared, labels)
    if ranked is not None:
        _pick_by_scores(compared, ranked, labels)


def _table(reports: Reports, ranked: Ranking | None) -> None:
    config: dict[str, Any] = {}
    rows = []
    for run, report in reports:
        decisions = [v.decision for v in notes.review_verdicts(store(), run.id)]
        row: dict[str, Any] = {
            to_say("Run"): shared.run_title(run),
            to_say("Model"): shared.model_name(run.model),
            "ε": _epsilon(run),
            to_say("Approvals"): decisions.count(Decision.APPROVE),
            to_say("Changes requested"): decisions.count(Decision.CHANGES),
        }
        if ranked is not None and run.id in ranked.scores:
            row[NOISY] = ranked.scores[run.id].value
            row[BAND] = ranked.scores[run.id].half_width
            config[NOISY] = _numbers(said(NOISY), said(NOISY_MEANING))
            config[BAND] = _numbers(said(BAND), say("Half of a 95% interval for the noise alone."))
        if report["attacks"]:
            row[to_say("Successful attacks")] = sum(a["exposed"] for a in report["attacks"])
        for score in report["scores"]:
            arrow = "↑" if score["goal"] == "higher" else "↓"
            name = f"{arrow} {score['title']}"
            config[name] = _numbers(f"{arrow} {said(score['title'])}", said(score["meaning"]))
            row[name] = score["value"]
        config = {name: said(name) for name in row} | config
        rows.append(row)
    figures = ["ε", *(name for name, own in config.items() if not isinstance(own, str))]
    table = shared.marked(rows, figures, ".4g")
    st.dataframe(table, hide_index=True, column_config=config, placeholder="—")
    st.caption(
        say("Click a heading to sort. ↑ higher is closer to the real table, ↓ lower is closer.")
    )


def _numbers(label: str, meaning: str) -> Any:
    return st.column_config.NumberColumn(label, help=meaning)


def _epsilon(run: RunRecord) -> float:
    """ε of the claim, inf where nothing is claimed."""
    return float(spending.epsilon_text(spending.claim_of(run)))


def _curve(reports: Reports) -> None:
    titles = {s["key"]: said(glossary.title(s)) for _, report in reports for s in report["scores"]}
    if not titles:
        return
    st.subheader(say("Quality against ε"), anchor=False)
    order = list(dict.fromkeys([*(key for key in LEARNING if key in titles), *titles]))
    key = st.selectbox(say("Score"), order, format_func=titles.__getitem__)
    scores = [
        (run, score)
        for run, report in reports
        for score in report["scores"]
        if score["key"] == key and score["value"] is not None
    ]
    if not scores:
        st.caption(say("None of these runs has this score."))
        return
    points = [
        {
            "title": shared.run_title(run),
            "model": shared.model_name(run.model),
            "epsilon": _epsilon(run),
            "value": score["value"],
            "ceiling": score["ceiling"],
        }
        for run, score in scores
    ]
    goal = scores[-1][1]["goal"]
    title = f"{titles[key]} ({report_scores.closer(goal)})"
    sentence = said(tradeoff_words(points, titles[key], goal))
    shared.picture(tradeoff_figure(points, title), key="tradeoff", alt=sentence)
    st.caption(say("{sentence} Dotted: the same score for real data.", sentence=plain(sentence)))


def _pictures(reports: Reports, labels: dict[str, str]) -> None:
    st.subheader(say("Side by side"), anchor=False)
    pictures = {str.__str__(figure.name): figure for figure in report_figures() if figure.compared}
    columns = {f"Column: {name}": name for name in reports[0][1]["columns"]}

    def named(what: str) -> str:
        if what in columns:
            return say("Column: {name}", name=columns[what])
        name = said(what)
        return name[:1].upper() + name[1:]

    what = st.selectbox(say("Picture"), [*pictures, *columns], format_func=named)
    for tile, (run, report) in shared.tiles(reports, min(3, len(reports))):
        with tile:
            st.markdown(f"**{plain(labels[run.id])}**")
            key = f"multiple_{run.id}"
            drawn = pictures[what].drawn(report) if what in pictures else None
            if drawn is not None:
                shared.picture(drawn, key=key, alt=said(pictures[what].describe(report)))
            elif columns.get(what) in report["columns"]:
                report_scores.column(report, columns[what], key=key)
            else:
                st.caption(say("Not compared."))


def _pick(runs: list[RunRecord], labels: dict[str, str]) -> None:
    st.subheader(say("Run to release"), anchor=False)
    table = runs[0].table_id
    picked = notes.picked(store(), table)
    if picked is not None and picked[0] in labels:
        st.success(
            say("{run}, picked by {name}.", run=plain(labels[picked[0]]), name=plain(picked[1])),
            icon=":material/trophy:",
        )
    if not guard.steward():
        return
    seen = notes.seen_runs(store(), runs[0])
    if len(seen) > 1:
        st.caption(
            say(
                ":material/visibility: The inside views of {n} runs about these people have been "
                "opened. Whichever run you release, its certificate will say that ε does not cover "
                "the choice.",
                n=len(seen),
            )
        )
    by_id = {run.id: run for run in runs}
    with st.form("pick_form"):
        chosen = st.radio(
            say("Pick a run"), list(by_id), format_func=lambda key: plain(labels[key])
        )
        name = discussion.name_field("pick")
        sent = st.form_submit_button(say("Pick this run"), icon=":material/trophy:")
    if sent and chosen is not None:
        with discussion.signed(name):
            notes.pick(store(), table_id=table, run_id=chosen, author=name)


def _pick_by_scores(runs: list[RunRecord], ranked: Ranking, labels: dict[str, str]) -> None:
    """The choice that needs no look at real data, with how sure it is."""
    st.markdown(say("**By noisy score**, without looking at real data"))
    st.markdown(
        say(
            "Best: {run}. Compared with the next one: {words!t}",
            run=plain(labels[ranked.best]),
            words=words(ranked.lead),
        )
    )
    looked = reviews.inside_view_words(store(), runs[0].account_id, run_id=ranked.best)
    if looked:
        st.caption(
            say(
                ":material/visibility: The inside views of other runs about these people were "
                "opened, so the certificate still says: {words}",
                words=plain(said(looked)),
            )
        )
    if not guard.steward():
        return
    with st.form("score_form"):
        name = discussion.name_field("score")
        sent = st.form_submit_button(
            say("Pick the run with the best noisy score"), icon=":material/casino:"
        )
    if sent:
        with discussion.signed(name):
            reviews.pick_by_scores(store(), runs, author=name)
