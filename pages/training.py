"""Training: watch a run live; pause, cancel, resume; learn what happened when it ended."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures import interactions
from core.models.card import Chart
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord
from core.services import reviews, runs
from pages.parts import guard, routes, shared, visible
from pages.parts.plain import plain

KEPT = {
    State.FAILED: "The real table, the ledger and any checkpoint are kept.",
    State.LOST: "The worker process ended without a word, as after a restart of the machine. What "
    "it had saved is kept.",
    State.CANCELLED: "You cancelled this run.",
    State.PAUSED: "Everything needed to go on is saved.",
}
ASKED = "ending"  # in the session: the run of which it is asked whether it shall end
FOLLOW = 2.0  # s between two looks at a run that another tab may pause, resume or end


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header("Training", "Watch a run. You may close this page; the run goes on.")
    run = shared.chosen_run()
    if run is None:
        shared.nothing_yet("No run has been started yet.", "Plan a run", "plan")
        return
    if run.state.live:
        with shared.plain_errors():
            shared.launcher().pump()
        _watch(run.id)
    else:
        _show(run)
        if not run.state.final:
            _follow(run.id, _standing(run))
    _others(run)


@st.fragment(run_every=1.0)
@shared.plain_errors()
def _watch(run_id: str) -> None:
    """The live part; leaves for a full rerun once the run has ended, so that polling stops."""
    run = shared.store().run(run_id)
    _show(run)
    if not run.state.live:
        st.rerun()


def _standing(run: RunRecord) -> tuple[State, int, str]:
    """What another tab can change of a run that stands still."""
    return run.state, run.attempt, run.message


@st.fragment(run_every=FOLLOW)
@shared.plain_errors()
def _follow(run_id: str, shown: tuple[State, int, str]) -> None:
    """Draw the page anew once the run is no longer as it is shown."""
    if _standing(shared.store().run(run_id)) != shown:
        st.rerun()


def _show(run: RunRecord) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        shared.STATE_BADGES[run.state].show()
        shared.privacy_badge(run)
        st.caption(
            f"{plain(run.title)} · {run.plan.n:,} real {run.plan.records} · "
            f"{run.rows:,} synthetic rows"
        )
    if run.state is State.RUNNING:
        _progress(run)
    _buttons(run)
    if run.state is not State.RUNNING:
        _ending(run)
    _charts(run)
    _stood_out(run)
    _preview(run)


def _progress(run: RunRecord) -> None:
    now = runs.progress(shared.store(), run.id)
    stage = f"{plain(now.title or 'Starting')}{_place(run, now)}"
    st.progress(now.fraction, text=f"{stage} · {now.fraction:.0%}{shared.time_left(now)}")
    _spent(run)
    device = shared.store().journal.latest(run.id, "device")
    use = {} if device is None else device.data
    gpu = use.get("gpu_percent")
    places = st.columns(4)
    places[0].metric("Time so far", shared.duration(now.elapsed_seconds))
    places[1].metric(
        "Speed", "—" if now.steps_per_second is None else f"{now.steps_per_second:,.0f} steps/s"
    )
    places[2].metric(
        "GPU" if gpu is not None else "Processor",
        f"{gpu if gpu is not None else use.get('cpu_percent', 0):.0f} %",
        help=f"Device: {use.get('gpu_name', use.get('device', 'processor'))}. 100 % is one core.",
    )
    places[3].metric(
        "Memory", f"{use.get('memory_mb', 0):,.0f} MB", help="Memory of the run's own process."
    )


def _place(run: RunRecord, now: runs.Progress) -> str:
    """Which stage of how many this is, where a model has several."""
    card = shared.card_of(run.model)
    phases = {phase.name for phase in run.plan.phases}
    every = () if card is None else card.stages
    stages = [stage.name for stage in every if not stage.private or stage.name in phases]
    if len(stages) < 2 or now.phase not in stages:
        return ""
    return f" (stage {stages.index(now.phase) + 1} of {len(stages)})"


def _spent(run: RunRecord) -> None:
    """ε so far against what the plan holds; all of it was debited at the start."""
    so_far = runs.epsilon_so_far(shared.store(), run.id)
    if so_far is None:
        return
    budget = run.plan.guarantee.epsilon
    st.caption(
        f":material/lock: ε released so far: **{min(so_far, budget):.2f}** of {budget:.2f}. "
        "The ledger was charged for all of it before the first row was read."
    )


def _buttons(run: RunRecord) -> None:
    store = shared.store()
    with st.container(horizontal=True), shared.plain_errors():
        if run.state is State.RUNNING and st.button("Pause", icon=":material/pause:"):
            _pause(run)
        if run.state in (State.PAUSED, State.LOST, State.FAILED):
            _resume(run)
        if run.state is State.DONE or store.artefacts(run.id).exists("report.json"):
            routes.button("Review", "review", primary=True, run=run.id)
        if run.state is State.DONE:
            routes.button("Download", "download", run=run.id)
        if not run.state.final:
            st.space("stretch")  # what cannot be taken back stands apart
            label = "Cancel" if run.state.live else "Give up"
            st.button(
                f"{label} …",
                type="tertiary",
                icon=":material/cancel:",
                on_click=_ask,
                args=(run.id,),
            )
    if not run.state.final and st.session_state.get(ASKED) == run.id:
        _really(run)


def _pause(run: RunRecord) -> None:
    runs.pause(shared.store(), run.id)
    st.toast("Pausing at the next safe point.")


def _ask(run_id: str | None) -> None:
    """Ask whether this run is to end, or nothing any more."""
    st.session_state[ASKED] = run_id


def _really(run: RunRecord) -> None:
    """What ending the run would lose, and the ways not to."""
    with st.container(border=True), shared.plain_errors():
        st.markdown(f"**End “{plain(run.title)}” for good?** {_loss(run)}")
        with st.container(horizontal=True):
            pausable = run.state.live and not shared.store().has_result(run.id)
            if pausable and st.button(
                "Pause instead", type="primary", icon=":material/pause:", key="pause_instead"
            ):
                _ask(None)
                _pause(run)
                st.rerun(scope="app")
            if st.button("End it for good", icon=":material/cancel:"):
                _ask(None)
                runs.cancel(shared.store(), run.id)
                st.toast("Ending the run. What was spent stays spent.")
                st.rerun(scope="app")
            st.button("Leave it as it is", on_click=_ask, args=(None,))


def _loss(run: RunRecord) -> str:
    """What is lost for good when a run ends now, in sentences."""
    if shared.store().has_result(run.id):
        return (
            "Its synthetic table is there and stays, and nothing more was to be spent. Only the "
            "comparison with the real table stops; Review can finish it later."
        )
    after = " A pause loses nothing: it goes on later from where it was." if run.state.live else ""
    if run.debit is None:
        return f"Nothing was spent yet, so nothing is lost but the time.{after}"
    if not run.private:
        return f"There will be no synthetic table, and it cannot be resumed.{after}"
    times = f", {run.attempt} times" if run.attempt > 1 else ""
    return (
        f"The ledger was charged **ε = {run.plan.guarantee.epsilon:.3g}** for it{times}. That "
        "stays spent, there will be no synthetic table for it, and it cannot be resumed. Another "
        f"run pays anew.{after}"
    )


def _resume(run: RunRecord) -> None:
    again = not run.resumable and run.debit is not None
    price = f"spends ε = {run.plan.budget.epsilon:g} once more" if run.private else "not private"
    label = f"Start again ({price})" if again else "Resume"
    if st.button(label, type="primary", icon=":material/play_arrow:"):
        runs.resume(shared.store(), shared.launcher(), run.id, spend_again=again)
        st.rerun(scope="app")


def _ending(run: RunRecord) -> None:
    """What happened, what was kept, what to do."""
    if run.state is State.QUEUED:
        ahead = [r for r in visible.runs(shared.store()) if r.state is State.RUNNING]
        wait = f" It waits for “{plain(ahead[0].title)}”." if ahead else ""
        st.info(f"This run is in the queue.{wait}", icon=":material/schedule:")
    elif run.state is State.DONE:
        took = shared.duration(sum(run.seconds.values()))
        st.success(f"The synthetic table is ready. It took {took}.", icon=":material/check:")
    elif run.state is State.CANCELLED:
        st.info(plain(run.message or KEPT[run.state]), icon=":material/cancel:")
    elif run.state in KEPT:
        cause = run.error or run.message
        way = "There is no checkpoint to go on from."
        if run.resumable and run.debit is None:
            way = "Nothing was spent yet. Resume starts it from the beginning."
        elif run.resumable:
            way = "Resume goes on from what was saved and spends nothing more."
        show = st.error if run.state in (State.FAILED, State.LOST) else st.info
        show(f"{plain(cause)} {KEPT[run.state]} {way}")


def _charts(run: RunRecord) -> None:
    """The charts of the model's card, each over its own steps; all metrics where it has none."""
    series = shared.store().journal.series(run.id)
    names = [c for c in series.columns if c not in ("seq", "time", "seconds", "step")]
    if series.empty or not names:
        return
    card = shared.card_of(run.model)
    shown = [c for c in (() if card is None else card.charts) if set(c.series) & set(names)]
    if not shown:
        shown = [Chart(title="Metrics", caption="", unit="value", series=tuple(names))]
    places = st.columns(len(shown)) if len(shown) == 2 else [st.container() for _ in shown]
    for place, chart in zip(places, shown, strict=True):
        drawn = [name for name in chart.series if name in names]
        with place:
            st.subheader(chart.title, anchor=False)
            st.caption(chart.caption)
            st.line_chart(
                series.dropna(subset=drawn, how="all").set_index("step")[drawn],
                x_label="training steps",
                y_label=chart.unit,
                height=260,
            )


def _stood_out(run: RunRecord) -> None:
    """What a private scan showed of columns that go together, where the model scans."""
    told = {"stood_out": reviews.stood_out(shared.store(), run.id)}
    if not told["stood_out"]:
        return
    opened = st.expander(
        interactions.FIGURE.title, icon=":material/join:", key="stood_out", on_change="rerun"
    )
    if opened.open:
        with opened:
            figure = interactions.interactions_figure(told)
            words = interactions.describe_interactions(told)
            st.plotly_chart(shared.inert(figure), key="interactions", alt=words)
            st.caption(plain(words))


def _preview(run: RunRecord) -> None:
    newest = shared.store().journal.latest(run.id, "preview")
    if newest is None:
        return
    st.subheader("Synthetic rows so far", anchor=False)
    st.caption("Made up by the generator as it stands; showing them costs no privacy.")
    st.dataframe(pd.DataFrame(newest.data["rows"]), hide_index=True)


def _others(run: RunRecord) -> None:
    others = [r for r in visible.runs(shared.store()) if r.id != run.id]
    if not others:
        return
    with st.expander(f"Other runs ({len(others)})", icon=":material/list:"):
        for other in others[:30]:
            with st.container(horizontal=True, vertical_alignment="center"):
                shared.STATE_BADGES[other.state].show()
                st.write(plain(shared.run_label(other)))
                if st.button("Open", key=f"other_{other.id}"):
                    st.query_params["run"] = other.id
                    st.rerun()


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
