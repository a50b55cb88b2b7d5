"""Training: watch a run live; pause, cancel, resume; learn what happened when it ended."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures import interactions
from core.runs.accounts import spending
from core.runs.accounts.account import charges, unpaid_again
from core.runs.events import WAITS_FOR_SLOT, State
from core.runs.records import RunRecord
from core.schema.rounding_up import round_up
from core.services import reviews, runs
from core.services.estimates.run_progress import training_charts, whole_progress
from pages.review import report_view
from pages.server import guard, routes
from pages.shared import lines, visible
from pages.shared import widgets as shared
from pages.shared.language import number, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

KEPT = {
    State.FAILED: to_say("The real table, the ledger and any checkpoint are kept."),
    State.LOST: to_say("Everything it had saved is kept."),
    State.CANCELLED: to_say("You cancelled this run."),
    State.PAUSED: to_say("Everything needed to resume is saved."),
}
ASKED = "ending"  # in the session: the run of which it is asked whether it shall end
FOLLOW = 2.0  # s between two looks at a run that another tab may pause, resume or end


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header(say("Training"), say("Watch a run. You can close this page; the run continues."))
    run = shared.chosen_run()
    if run is None:
        shared.empty_page(say("There are no runs yet."), say("Plan a run"), "plan")
        return
    if run.state.live:
        with shared.plain_errors():
            shared.launcher().pump()
        _watch(run.id)
    else:
        _show(run)
        if not run.state.final:
            _follow(run.id, _state_shown(run))


@st.fragment(run_every=1.0)
@shared.plain_errors()
def _watch(run_id: str) -> None:
    """The live part; leaves for a full rerun once the run has ended, so that polling stops."""
    run = visible.still(run_id, "steward")
    _show(run)
    if not run.state.live:
        st.rerun()


def _state_shown(run: RunRecord) -> tuple[State, int, str]:
    """What another tab can change of a run that stands still."""
    return run.state, run.attempt, run.message


@st.fragment(run_every=FOLLOW)
@shared.plain_errors()
def _follow(run_id: str, shown: tuple[State, int, str]) -> None:
    """Draw the page anew once the run is no longer as it is shown."""
    if _state_shown(visible.still(run_id, "steward")) != shown:
        st.rerun()


def _show(run: RunRecord) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        shared.STATE_BADGES[run.state].show()
        shared.privacy_badge(run)
        words = to_say("{n:,} real {records!t} · {rows:,} synthetic rows")
        if run.schema.walked:
            words = to_say("{n:,} real {records!t} · {rows:,} synthetic people")
        rows = say(
            words,
            n=run.plan.n,
            records=run.plan.records,
            rows=run.rows,
        )
        st.caption(f"{plain(shared.run_title(run))} · {rows}")
    if run.state is State.RUNNING:
        _progress(run)
    _buttons(run)
    if run.state is not State.RUNNING:
        _ending(run)
    _charts(run)
    _significant_sets(run)
    _preview(run)


def _progress(run: RunRecord) -> None:
    now = runs.progress(store(), run.id)
    title = said(now.title) if now.title else say("Starting")
    whole, left = whole_progress(store(), run, now)
    # training that goes on because it is not close enough yet has more steps to do, not fewer done
    key = f"progress_{run.id}_{run.attempt}_{now.phase == runs.REPLICAS}"
    whole = st.session_state[key] = max(whole, st.session_state.get(key, 0.0))
    done = number(f"{whole:.0%}")
    st.progress(whole, text=f"{plain(title)} · {done}{shared.time_left(left)}")
    _spent(run)
    device = store().journal.latest(run.id, "device")
    use = {} if device is None else device.data
    gpu = use.get("gpu_percent")
    columns = st.columns(4)
    speed = now.steps_per_second
    columns[0].metric(say("Elapsed"), shared.duration(now.elapsed_seconds))
    columns[1].metric(
        say("Speed"), "—" if speed is None else say("{speed:,.0f} steps/s", speed=speed)
    )
    columns[2].metric(
        say("GPU") if gpu is not None else say("Processor"),
        number(f"{gpu if gpu is not None else use.get('cpu_percent', 0):.0f}%"),
        help=say(
            "Device: {device}. 100% is one core.",
            device=use.get("gpu_name", use.get("device", say("processor"))),
        ),
    )
    columns[3].metric(
        say("Memory"),
        number(f"{use.get('memory_mb', 0):,.0f} MB"),
        help=say("Memory used by the run's own process."),
    )


def _spent(run: RunRecord) -> None:
    """What the ledger was charged, and ε so far against what the plan holds."""
    words = _spending_sentence(run)
    so_far = runs.epsilon_so_far(store(), run.id)
    if so_far is not None:
        budget = run.plan.guarantee.epsilon
        so_far_words = say(
            "ε released so far: **{so_far:.2f}** of {budget:.2f}.",
            so_far=round_up(min(so_far, budget), ".2f"),
            budget=round_up(budget, ".2f"),
        )
        words = f"{so_far_words} {words}"
    st.caption(f":material/lock: {words}")


def _spending_sentence(run: RunRecord) -> str:
    """What the ledger holds of a run, in a sentence."""
    entries = store().ledger.entries(run.account_id)
    return plain(said(spending.run_spending(entries, run).sentence))


def _buttons(run: RunRecord) -> None:
    with st.container(horizontal=True), shared.plain_errors():
        if run.state is State.RUNNING and st.button(say("Pause"), icon=":material/pause:"):
            _pause(run)
        if run.state in (State.PAUSED, State.LOST, State.FAILED):
            _resume(run)
        if run.state is State.DONE or store().artefacts(run.id).exists("report.json"):
            routes.button(say("Review"), "review", primary=True, run=run.id)
        if run.state is State.DONE:
            routes.button(say("Download"), "download", run=run.id)
        if not run.state.final:
            st.space("stretch")  # what cannot be taken back stands apart
            st.button(
                say("Cancel …") if run.state.live else say("Give up …"),
                type="tertiary",
                icon=":material/cancel:",
                on_click=_ask,
                args=(run.id,),
            )
    if not run.state.final and st.session_state.get(ASKED) == run.id:
        _confirm_ending(run)


def _pause(run: RunRecord) -> None:
    _ask(None)
    runs.pause(store(), run.id, shared.launcher())
    st.toast(say("The run will pause at the next safe point."))


def _ask(run_id: str | None) -> None:
    """Ask whether this run is to end, or nothing any more."""
    st.session_state[ASKED] = run_id


def _confirm_ending(run: RunRecord) -> None:
    """What ending the run would lose, and the ways not to."""
    with st.container(border=True), shared.plain_errors():
        title = plain(shared.run_title(run))
        st.markdown(f"**{say('End “{run}” permanently?', run=title)}** {_loss(run)}")
        with st.container(horizontal=True):
            pausable = run.state.live and not store().has_result(run.id)
            if pausable and st.button(
                say("Pause instead"),
                type="primary",
                icon=":material/pause:",
                key=f"pause_instead_{run.id}",
            ):
                _pause(run)
                st.rerun(scope="app")
            end = say("End permanently")
            if st.button(end, icon=":material/cancel:", key=f"end_{run.id}"):
                _ask(None)
                runs.cancel(store(), run.id, shared.launcher())
                st.toast(say("The run is ending. What was spent stays spent."))
                st.rerun(scope="app")
            st.button(say("Keep it"), on_click=_ask, args=(None,))


def _loss(run: RunRecord) -> str:
    """What is lost for good when a run ends now, in sentences."""
    if store().has_result(run.id):
        return say(
            "The synthetic table is finished and stays, and nothing more will be spent. Only the "
            "comparison with the real table stops; you can finish it later on the Review page."
        )
    charged = _spending_sentence(run)
    if not charges(store(), run):
        loss = charged
        if run.state is not State.RUNNING:
            loss = f"{charged} {say('Only time is lost.')}"
    else:
        loss = say(
            "This stays spent, there will be no synthetic table, and the run cannot be resumed. "
            "Another run has to be paid for again."
        )
        loss = f"{charged} {loss}"
    after = say("If you pause instead, nothing is lost: the run can be resumed later.")
    return f"{loss} {after}" if run.state.live else loss


def _resume(run: RunRecord) -> None:
    again = not run.resumable and run.debit is not None
    again = again or unpaid_again(store(), run)
    price = say("not private")
    if run.private:
        price = say(
            "spends ε = {epsilon:.4g} again",
            epsilon=round_up(run.plan.guarantee.epsilon, ".4g"),
        )
    label = say("Start again ({price})", price=price) if again else say("Resume")
    if st.button(label, type="primary", icon=":material/play_arrow:"):
        runs.resume(store(), shared.launcher(), run.id, spend_again=again)
        st.rerun(scope="app")


def _ending(run: RunRecord) -> None:
    """What happened, what was kept, what to do."""
    if run.state is State.QUEUED:
        st.info(_queued(run), icon=":material/schedule:")
    elif run.state is State.DONE:
        own = [took for name, took in run.seconds.items() if name != runs.REPLICAS]
        took = shared.duration(sum(own))
        ready = say("The synthetic table is ready. It took {time}.", time=took)
        st.success(ready, icon=":material/check:")
        report_view.disputed(run)
    elif run.state is State.CANCELLED:
        st.info(plain(said(run.message or KEPT[run.state])), icon=":material/cancel:")
    elif run.state in KEPT:
        cause = run.error or run.message
        show = st.error if run.state in (State.FAILED, State.LOST) else st.info
        show(f"{plain(said(cause))} {said(KEPT[run.state])} {_how_to_resume(run, cause)}")


def _queued(run: RunRecord) -> str:
    """What a run waits for."""
    if run.message not in ("", WAITS_FOR_SLOT):
        return said(run.message)
    ahead = [r for r in visible.runs() if r.state is State.RUNNING]
    queued = say("This run is in the queue.")
    if not ahead:
        return queued
    first = plain(shared.run_title(ahead[0]))
    return f"{queued} {say('It is waiting for “{run}”.', run=first)}"


def _how_to_resume(run: RunRecord, cause: str) -> str:
    """How a run that stands still can go on, unless its cause said so already."""
    if not run.resumable:
        return say("There is no checkpoint to resume from.")
    restarts = shared.launcher().restarts if run.state is State.LOST else 0
    if restarts:
        return say(
            "The cluster will resume it on another machine within minutes, up to {n} times. After "
            "that, you can resume it yourself.",
            n=restarts,
        )
    if unpaid_again(store(), run):
        return say("There is no checkpoint to resume from.")
    if not charges(store(), run):
        return f"{_spending_sentence(run)} {say('Resume starts it from the beginning.')}"
    if "spends nothing more" in cause or run.debit is None:
        return ""
    return say("Resume continues from what was saved and spends nothing more.")


def _charts(run: RunRecord) -> None:
    """The charts of the model's card, each over its own steps; all metrics where it has none."""
    charts = training_charts(store(), run)
    columns = st.columns(2) if len(charts) == 2 else [st.container() for _ in charts]
    for column, (chart, curves) in zip(columns, charts, strict=True):
        with column:
            st.subheader(said(chart.title), anchor=False)
            st.caption(said(chart.caption))
            lines.draw(
                curves.rename(columns=said),
                x_title=say("training steps"),
                y_title=said(chart.unit),
            )


def _significant_sets(run: RunRecord) -> None:
    """What a private scan showed of columns that depend on each other, where the model scans."""
    found = {"significant_sets": reviews.significant_sets(store(), run.id)}
    if not found["significant_sets"]:
        return
    opened = st.expander(
        said(interactions.FIGURE.title),
        icon=":material/join:",
        key="significant_sets",
        on_change="rerun",
    )
    if opened.open:
        with opened:
            figure = interactions.interactions_figure(found) or {}
            words = said(interactions.describe_interactions(found))
            shared.picture(figure, key="interactions", alt=words)
            st.caption(plain(words))


def _preview(run: RunRecord) -> None:
    newest = store().journal.latest(run.id, "preview")
    if newest is None:
        return
    if run.state is State.DONE:
        st.subheader(say("Some of the synthetic rows"), anchor=False)
    else:
        st.subheader(say("Synthetic rows so far"), anchor=False)
        st.caption(say("Generated by the model as it is now. Showing them costs no privacy."))
    st.dataframe(pd.DataFrame(newest.data["rows"]), hide_index=True, placeholder="")
