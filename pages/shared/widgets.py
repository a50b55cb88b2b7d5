"""Widgets and small services that several pages use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, Literal, NoReturn, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.figures.stages import stages_figure, stages_text
from core.message import from_json
from core.models.card import Card
from core.models.registry import cards
from core.privacy.plan import Plan
from core.runs.accounts import spending
from core.runs.errors import NotFoundError
from core.runs.events import State
from core.runs.execution.launching.launcher import Launcher
from core.runs.execution.launching.launchers import configured_launcher
from core.runs.records import RunRecord, TableRecord
from core.schema.rounding_up import round_up
from core.schema.rules.gaps import free_name
from core.services.inference import replicas
from pages.server import routes
from pages.server.faults import plain_errors as plain_errors
from pages.shared import language, visible
from pages.shared.language import number, said, say, to_say
from pages.shared.pictures import drawn as drawn
from pages.shared.pictures import picture as picture
from pages.shared.plain import plain
from pages.shared.workspace_store import store as store

T = TypeVar("T")
WHOLE = 12  # rows of a table that does not scroll


@dataclass(frozen=True)
class Badge:
    """A word with an icon, on a colour."""

    label: str
    icon: str
    color: Literal["blue", "gray", "green", "orange", "red"]

    def show(self) -> None:
        """Draw it here."""
        st.badge(said(self.label), icon=self.icon, color=self.color)


STATE_BADGES = {
    State.QUEUED: Badge(to_say("Waiting"), ":material/schedule:", "gray"),
    State.RUNNING: Badge(to_say("Running"), ":material/autorenew:", "blue"),
    State.PAUSED: Badge(to_say("Paused"), ":material/pause:", "orange"),
    State.DONE: Badge(to_say("Done"), ":material/check:", "green"),
    State.FAILED: Badge(to_say("Failed"), ":material/error:", "red"),
    State.CANCELLED: Badge(to_say("Cancelled"), ":material/cancel:", "gray"),
    State.LOST: Badge(to_say("Lost"), ":material/cloud_off:", "red"),
}
NOT_PRIVATE = Badge(to_say("No differential privacy"), ":material/warning:", "red")


def launcher() -> Launcher:
    """Starts workers on this machine, one at a time, or on the cluster that is configured."""
    return configured_launcher(store())


@contextmanager
def change() -> Iterator[None]:
    """A change of what is stored, then the page anew; a refusal shows as in `plain_errors`."""
    with plain_errors():
        yield
        st.rerun()


def header(title: str, text: str) -> None:
    """A page's title and one sentence on what it is for; both are shown as they stand."""
    st.title(plain(title), anchor=False)
    st.caption(plain(text))


def empty_page(text: str, button: str, target: str) -> None:
    """An empty page: what is missing, and the way to it; both are shown as they stand."""
    with st.container(border=True):
        st.write(text)
        routes.button(button, target, primary=True)


def action_bar() -> DeltaGenerator:
    """A bar for the page's main button, in sight however long the page is; the page's last part."""
    return st.container(key="action_bar", horizontal=True, vertical_alignment="center")


def privacy_badge(run: RunRecord) -> None:
    """What a run claims, or that it claims nothing."""
    if not run.private:
        NOT_PRIVATE.show()
        return
    claim = spending.claim_of(run)
    claimed = say(
        "ε = {epsilon:.4g}, δ = {delta:.3g}",
        epsilon=round_up(claim.epsilon, ".4g"),
        delta=round_up(claim.delta, ".3g"),
    )
    st.badge(claimed, icon=":material/lock:", color="green")


def chosen_table() -> TableRecord | None:
    """The table in the address, or None; where that table is gone, the page says so and ends."""
    wanted = st.query_params.get("table")
    if wanted is None:
        return None
    try:
        return visible.table(wanted)
    except NotFoundError as error:
        unknown_address(f"{plain(said(error))} {say('The address may be outdated.')}", "tables")


def picked_table() -> TableRecord | None:
    """A table from a list, the newest first; None where there is none."""
    tables = visible.tables()
    if not tables:
        return None
    by_id = {table.id: table for table in tables}
    labels = unique_labels({table.id: table.name for table in tables})
    picked = st.selectbox(say("Table"), list(by_id), format_func=labels.__getitem__)
    return by_id[picked]


def unknown_address(text: str, target: str) -> NoReturn:
    """The end of a page whose address names what is not there: nothing else is shown instead."""
    st.warning(text, icon=":material/link_off:")
    routes.button(say("Show what is available"), target, primary=True)
    st.stop()


def finished_run(missing: str) -> RunRecord | None:
    """`chosen_run` among finished ones; where there is none, `missing` as it stands."""
    run = chosen_run(offered=is_finished)
    if run is None:
        empty_page(missing, say("Go to Training"), "training")
    return run


def is_finished(run: RunRecord) -> bool:
    """Whether a run's table is ready, also while its error bars are worked out."""
    return run.state is State.DONE or replicas.under_way(store(), run.id)


def unfinished(run: RunRecord) -> None:
    """Say that there is no table of a run, or not yet, and lead to where it is watched."""
    st.info(say("This run has no synthetic table ({state}).", state=state_word(run.state)))
    routes.button(say("Go to Training"), "training", run=run.id)


def chosen_run(*, offered: Callable[[RunRecord], bool] | None = None) -> RunRecord | None:
    """The run in the address, else one picked from a list; None when there is nothing to pick.

    An address of a run that is not there ends the page: another run must not stand in for it.

    Args:
      offered: says which runs are offered in the list.
    """
    known = {run.id: run for run in visible.runs()}
    by_id = {key: run for key, run in known.items() if offered is None or offered(run)}
    wanted = st.query_params.get("run")
    if wanted is not None and wanted not in known:
        unknown_address(
            say(
                "There is no run at this address. It may have been deleted, or it is not shared "
                "with you."
            ),
            "training",
        )
    if wanted is not None and wanted not in by_id:
        by_id = {wanted: known[wanted], **by_id}
    if not by_id:
        return None
    order = list(by_id)
    labels = unique_labels({key: run_label(run) for key, run in by_id.items()})
    picked = st.selectbox(
        say("Run"),
        order,
        index=order.index(wanted) if wanted is not None else 0,
        format_func=labels.__getitem__,
        help=say("Each run has its own link: the address of this page."),
        label_visibility="collapsed" if len(order) == 1 else "visible",
    )
    if wanted != picked:
        st.query_params["run"] = picked
        if wanted is not None:
            st.rerun()  # the box begins at what the address names: else its next change was lost
    return by_id[picked]


def unique_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels by id, equal ones numbered: a list cannot tell two options of one label apart.

    >>> unique_labels({"a": "visits", "b": "visits", "c": "other"})
    {'a': 'visits', 'b': 'visits 2', 'c': 'other'}
    """
    unique: dict[str, str] = {}
    for key, label in labels.items():
        unique[key] = free_name(label, unique.values())
    return unique


def run_title(run: RunRecord) -> str:
    """A run's name, or its table and model when it has none."""
    return run.name or say("{table} by {model}", table=run.table_name, model=model_name(run.model))


def state_word(state: State) -> str:
    """A state within a sentence."""
    return said(STATE_BADGES[state].label).lower()


def run_label(run: RunRecord) -> str:
    """A run in one line."""
    claim = spending.claim_of(run)
    epsilon = number(f"ε {spending.epsilon_text(claim)}") if run.private else say("no privacy")
    when = clock(run.created, year=False)
    return f"{run_title(run)} · {epsilon} · {state_word(run.state)} · {when}"


def spending_sentences(account_id: str) -> str:
    """What was paid for and released about people until now, as sentences to be shown."""
    entries = store().ledger.entries(account_id)
    about = [run for run in store().runs() if run.account_id == account_id]
    spent = spending.account_spending(entries, about)
    return " ".join(plain(said(sentence)) for sentence in spent.sentences)


def confirmed(problem: str, asked: str, about: str, *, icon: str) -> tuple[bool, str]:
    """Show why the ledger refuses; whether words were written against it, and the words.

    Args:
      asked: the label of the field, in the language of whoever is here.
      about: what kind of words about whom, for the field's key.
    """
    st.error(plain(said(problem)), icon=icon)
    typed = st.text_input(
        asked,
        max_chars=300,
        # words about these people and this reason say nothing of others
        key=f"confirm_{about}_{abs(hash(problem))}",
        help=say(
            "The ledger keeps your reason, and every later certificate about these people repeats "
            "it."
        ),
    )
    return bool(typed.strip()), typed


def time_zone() -> str:
    """The name of the browser's time zone; UTC where it names none that is known here."""
    try:
        return ZoneInfo(st.context.timezone or "UTC").key
    except (ZoneInfoNotFoundError, ValueError):
        return "UTC"


def clock(moment: datetime, *, year: bool = True) -> str:
    """A moment in the browser's time zone, as the language writes it, with or without its year."""
    day, gap = ("%d.%m.", "") if language.code() == "de" else ("%d %b", " ")
    form = f"{day}{gap}%Y %H:%M" if year else f"{day} %H:%M"
    return moment.astimezone(ZoneInfo(time_zone())).strftime(form)


def card_of(model: str) -> Card | None:
    """A model's card; None when this version does not know the model."""
    return {card.id: card for card in cards()}.get(model)


def model_name(model: str) -> str:
    """What people call a model; its id when this version does not know it."""
    card = card_of(model)
    return model if card is None else card.name


def stages(plan: Plan) -> None:
    """The picture of a plan's stages from the real to the synthetic table."""
    card = card_of(plan.model)
    if card is None or not card.stages:
        return
    dumped = [stage.model_dump() for stage in card.stages], from_json(plan.model_dump(mode="json"))
    picture(stages_figure(*dumped), key="stages", alt=said(stages_text(*dumped)))


def tiles(
    items: Sequence[T], columns: int = 3, *, border: bool = False
) -> Iterator[tuple[DeltaGenerator, T]]:
    """Each item with its tile in a grid that fills row by row.

    Args:
      columns: of the grid, ≥ 1.
    """
    grid = st.grid(columns, min_column_width=320, border=border)
    for item in items:
        yield grid.cell(), item


def paged(items: Sequence[T], size: int = 9) -> Sequence[T]:
    """The items of the page a person chose; all of them when they fit on one."""
    starts = range(0, len(items), size)
    if len(starts) < 2:
        return items
    start = st.pills(
        say("Columns"),
        list(starts),
        default=0,
        format_func=lambda i: "–".join(dict.fromkeys(map(str, (i + 1, min(i + size, len(items)))))),
    )
    return items[start or 0 : (start or 0) + size]


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(75)
    '1 min 15 s'
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rough_duration(low: float, high: float) -> str:
    """A range of seconds as people say them, in tens of seconds, then in minutes.

    >>> rough_duration(7, 80), rough_duration(50, 190), rough_duration(130, 4000)
    ('10 s – 2 min', '50 s – 4 min', '2 min – 1 h 7 min')
    """
    ends = [
        duration(max(10, 10 * round(x / 10)) if x < 56 else 60 * up(x / 60))
        for x, up in ((low, round), (high, ceil))
    ]
    return " – ".join(dict.fromkeys(end.replace(" 0 s", "") for end in ends))


def time_left(seconds: float | None) -> str:
    """The end of a progress bar's text; "" while nobody can tell."""
    return "" if seconds is None else say(" · about {time} left", time=duration(seconds))


def without_empty(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what is said of none of them.

    >>> without_empty([{"a": 1, "b": ""}, {"a": None, "b": None}])
    [{'a': 1}, {'a': None}]
    """
    return [
        {name: one[name] for name in one if any(row[name] not in (None, "") for row in rows)}
        for one in rows
    ]


def number_table(rows: Sequence[dict[str, Any]], numeric: Sequence[str], form: str) -> None:
    """Rows as a table, some columns of it in one number format; its headings are said."""
    rows = without_empty(rows)
    if not rows:
        return
    names = list(rows[0])
    long = [name for name in names if any(len(str(row[name])) > 90 for row in rows)]
    config = {
        name: st.column_config.NumberColumn(said(name), width=90 if len(name) < 3 else None)
        if name in numeric
        else st.column_config.Column(said(name), width="large" if name in long else None)
        for name in names
    }
    figures = [name for name in numeric if name in names]
    high: Literal["content", "auto"] = "content" if len(rows) <= WHOLE else "auto"
    tall = 92 if long else None  # sentences break into lines and are not cut
    look: dict[str, Any] = {"hide_index": True, "placeholder": "—", "row_height": tall}
    st.dataframe(marked(rows, figures, form), column_config=config, height=high, **look)


def marked(rows: Sequence[dict[str, Any]], figures: Any, form: str) -> Any:
    """Rows whose `figures` have a decimal comma where one is used; Streamlit's forms know none."""
    shown: Any = dict.fromkeys(figures, lambda x: number(format(x, form)))
    return pd.DataFrame(rows).style.format(shown, na_rep="—")
