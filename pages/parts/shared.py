"""Widgets and small services that several pages use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from core.figures.stages import stages_figure, stages_text
from core.models.card import Card
from core.models.registry import cards
from core.privacy.ledger.ledger import LedgerError
from core.privacy.plan import Plan
from core.runs.execution.local_launcher import LocalLauncher
from core.runs.storage.errors import NotFoundError, RunStoreError
from core.runs.storage.events import State
from core.runs.storage.records import RunRecord, TableRecord
from core.runs.storage.store import RunStore
from core.runs.storage.workspace import Workspace
from core.services import runs as run_service
from core.table.io.read import TableReadError
from core.table.schema import SchemaError
from pages.parts import routes

T = TypeVar("T")

STATE_BADGES = {
    State.QUEUED: ("Waiting", ":material/schedule:", "gray"),
    State.RUNNING: ("Running", ":material/autorenew:", "blue"),
    State.PAUSED: ("Paused", ":material/pause:", "orange"),
    State.DONE: ("Done", ":material/check:", "green"),
    State.FAILED: ("Failed", ":material/error:", "red"),
    State.CANCELLED: ("Cancelled", ":material/cancel:", "gray"),
    State.LOST: ("Lost", ":material/cloud_off:", "red"),
}


@st.cache_resource
def _store(home: str) -> RunStore:
    return run_service.open_store()


def store() -> RunStore:
    """The workspace's run store; holds no rows, so it may be shared by sessions."""
    return _store(str(Workspace.default().home))


def launcher() -> LocalLauncher:
    """Starts workers on this machine, one at a time."""
    return LocalLauncher(store())


@contextmanager
def plain_errors() -> Iterator[None]:
    """Show the product's own refusals as one plain sentence; anything else is a fault."""
    try:
        yield
    except (TableReadError, SchemaError, RunStoreError, LedgerError) as error:
        st.error(str(error), icon=":material/error:")


def header(title: str, text: str) -> None:
    """A page's title and one sentence on what it is for."""
    st.title(title, anchor=False)
    st.caption(text)


def nothing_yet(text: str, button: str, target: str) -> None:
    """An empty page: what is missing, and the way to it."""
    with st.container(border=True):
        st.write(text)
        if st.button(button, type="primary", icon=routes.ROUTES[target][1]):
            routes.go(target)


def badge(state: State) -> None:
    """A run's state."""
    label, icon, color = STATE_BADGES[state]
    st.badge(label, icon=icon, color=color)


def privacy_badge(run: RunRecord) -> None:
    """What a run claims, or that it claims nothing."""
    if not run.private:
        st.badge("No differential privacy", icon=":material/warning:", color="red")
        return
    claim = run.guarantee or run.plan.guarantee
    st.badge(
        f"ε = {claim.epsilon:.3g}, δ = {claim.delta:.0e}", icon=":material/lock:", color="green"
    )


def chosen_table() -> TableRecord | None:
    """The table in the address, or None; an address of a deleted table says so."""
    wanted = st.query_params.get("table")
    if wanted is None:
        return None
    try:
        return store().table(wanted)
    except NotFoundError as error:
        st.warning(f"{error} The address may be old.")
        return None


def chosen_run(*, states: tuple[State, ...] | None = None) -> RunRecord | None:
    """The run in the address, else one picked from a list; None when there is nothing to pick.

    Args:
      states: only runs in these states are offered in the list.
    """
    runs = [run for run in store().runs() if states is None or run.state in states]
    wanted = st.query_params.get("run")
    known = {run.id: run for run in store().runs()}
    if wanted is not None and wanted not in known:
        st.warning("There is no run with that address any more. It may have been deleted.")
        wanted = None
    if wanted is not None and wanted not in {run.id for run in runs}:
        runs = [known[wanted], *runs]
    if not runs:
        return None
    by_id = {run.id: run for run in runs}
    order = list(by_id)
    labels = told_apart({key: run_label(run) for key, run in by_id.items()})
    picked = st.selectbox(
        "Run",
        order,
        index=order.index(wanted) if wanted is not None else 0,
        format_func=labels.__getitem__,
        help="Every run has a link of its own: the address of this page.",
        label_visibility="collapsed" if len(order) == 1 else "visible",
    )
    if st.query_params.get("run") != picked:
        st.query_params["run"] = picked
    return by_id[picked]


def told_apart(labels: dict[str, str]) -> dict[str, str]:
    """The labels by id, equal ones numbered: a list cannot tell two options of one label apart.

    >>> told_apart({"a": "visits", "b": "visits", "c": "other"})
    {'a': 'visits', 'b': 'visits (2)', 'c': 'other'}
    """
    out: dict[str, str] = {}
    for key, label in labels.items():
        number, taken = 1, set(out.values())
        unique = label
        while unique in taken:
            number += 1
            unique = f"{label} ({number})"
        out[key] = unique
    return out


def run_label(run: RunRecord) -> str:
    """A run in one line."""
    epsilon = "no privacy" if not run.private else f"ε {run.plan.budget.epsilon:g}"
    when = run.created.astimezone().strftime("%d %b %H:%M")
    return f"{run.title} · {epsilon} · {STATE_BADGES[run.state][0].lower()} · {when}"


def card_of(model: str) -> Card | None:
    """A model's card; None when this version does not know the model."""
    return {card.id: card for card in cards()}.get(model)


def stages(plan: Plan, *, key: str) -> None:
    """The picture of a plan's stages from the real to the synthetic table."""
    card = card_of(plan.model)
    if card is None or not card.stages:
        return
    dumped = [stage.model_dump() for stage in card.stages], plan.model_dump(mode="json")
    st.plotly_chart(
        stages_figure(*dumped),
        config={"displayModeBar": False},
        key=key,
        alt=stages_text(*dumped),
    )


def paged(items: Sequence[T], size: int = 9) -> Sequence[T]:
    """The items of the page a person chose; all of them when they fit on one."""
    starts = range(0, len(items), size)
    if len(starts) < 2:
        return items
    start = st.pills(
        "Columns",
        list(starts),
        default=0,
        format_func=lambda i: f"{i + 1}–{min(i + size, len(items))}",
    )
    return items[start or 0 : (start or 0) + size]


def duration(seconds: float | None) -> str:
    """Seconds as people say them.

    >>> duration(75)
    '1 min 15 s'
    """
    if seconds is None:
        return "—"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
