"""Who a row is of: the unit that ε protects, and what is public of how rows belong together."""

from __future__ import annotations

import streamlit as st

from core.figures.rows_per_person import row_limit_figure, row_limit_words
from core.runs.records import TableRecord
from core.schema.column import Kind
from core.schema.person import MOST_ROWS, History, Person
from core.services import declarations
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import linking

ANSWERS = {
    "row": to_say("No, every row is a different person"),
    "key": to_say("Yes, and one or more columns identify the person"),
    "unknown": to_say("Yes, but no column identifies the person"),
    "linked": to_say("Yes, and another table has one row for each person"),
}
USUAL_ROWS = 5
UNKEPT = "open_person"  # in the session: the table whose answer is not kept yet
UNANSWERED = to_say(
    "You said that a person can have several rows, but that answer is not complete. Complete it, "
    "or answer that every row is a different person. Until then nothing can be planned, because ε "
    "would not protect what you said."
)


def answered(table: TableRecord) -> bool:
    """Whether what is answered to the question on Tables is what is kept of the table."""
    return st.session_state.get(UNKEPT) != table.id


def render(table: TableRecord, bring_in: linking.BringIn) -> None:
    """The question and what follows from the answer; until it is kept, nothing is planned.

    Args:
      bring_in: see `linking.propose`.
    """
    st.session_state.pop(UNKEPT, None)
    if table.schema.linked:
        linking.settings(table, bring_in)
        return
    person, several = table.schema.person, bool(linking.others(table))
    now = "row" if person is None else "key" if person.grouped else "unknown"
    answer = st.radio(
        say("**Can a person have several rows?**"),
        [key for key in ANSWERS if key != "linked" or several],
        index=list(ANSWERS).index(now),
        format_func=lambda key: said(ANSWERS[key]),
        help=say(
            "ε protects one person. If someone has five rows and each row counts as a person, "
            "their privacy loss can be five times the stated ε."
        ),
        key=keyed(f"unit_{table.id}_{now}"),
    )
    if answer == "row":
        if person is not None:
            with shared.change():
                declarations.change_person(store(), table, None)
        st.caption(
            say("Each row is protected separately. The certificate says: one row, one person.")
        )
        return
    if answer == "linked":
        st.session_state[UNKEPT] = table.id
        linking.choose(table, bring_in)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        chosen = _grouped(table) if answer == "key" else _unknown(table)
    with right:
        _picture(table, chosen, grouped=answer == "key")
    if chosen is None or chosen != person:
        st.session_state[UNKEPT] = table.id
    if chosen is not None and chosen != person:
        with shared.change():
            declarations.change_person(store(), table, chosen)


def _most(table: TableRecord, person: Person | None, help: str) -> int:
    return int(
        st.number_input(
            say("Maximum rows per person"),
            min_value=1,
            max_value=MOST_ROWS,
            value=USUAL_ROWS if person is None else person.rows,
            help=help,
            key=f"most_{table.id}",
        )
    )


def _grouped(table: TableRecord) -> Person | None:
    """The declaration of a table with a key; None while no key is chosen."""
    person = table.schema.person if table.schema.person and table.schema.person.grouped else None
    schema = table.schema
    likely = [c.name for c in schema.columns if c.kind is Kind.IDENTIFIER]
    names = [*likely, *(name for name in schema.names if name not in likely)]
    columns = st.multiselect(
        say("Columns that identify the person"),
        names,
        default=list(person.columns) if person else [],
        key=f"key_{table.id}",
        placeholder=say("Choose"),
        help=say(
            "Such as a patient number. In the synthetic table they contain new, made-up keys. Rows "
            "without a key count together as one person."
        ),
    )
    most = _most(
        table,
        person,
        say(
            "Additional rows of a person are left out of training; which ones depends only on that "
            "person's own rows. The number is public. It needs no extra noise, because each person "
            "counts once."
        ),
    )
    rest = [c.name for c in schema.columns if c.modelled and c.name not in columns]
    constant = st.multiselect(
        say("Columns that are the same in all rows of a person"),
        rest,
        default=[name for name in person.constant if name in rest] if person else [],
        key=f"constant_{table.id}",
        placeholder=say("Choose"),
        help=say(
            "Such as sex or year of birth. They stay the same for each synthetic person, too."
        ),
    )
    if not columns:
        st.caption(say("Choose at least one column."))
        return None
    _find_constants(table, columns, rest)
    order, history = _order(table, person, [name for name in rest if name not in constant])
    counter = linking.counter_of(table, order, f"counter_{table.id}_{order}")
    return Person(
        columns=tuple(columns),
        rows=most,
        constant=tuple(constant),
        order=order,
        history=history,
        counter=None if counter in (*columns, *constant) else counter,
    )


def _find_constants(table: TableRecord, columns: list[str], rest: list[str]) -> None:
    """A button that adds the columns that never differ within a person."""
    key = f"constant_{table.id}"

    def find() -> None:
        chosen = st.session_state.get(key, [])
        found = declarations.constant_columns(store(), table, columns)
        st.session_state[key] = [name for name in rest if name in (*chosen, *found)]

    st.button(
        say("Find these columns in the rows"),
        icon=":material/search:",
        type="tertiary",
        on_click=find,
        key=f"find_{table.id}",
        help=say("Keep only those that are the same by definition, whoever is in the table."),
    )


def _order(
    table: TableRecord, person: Person | None, names: list[str]
) -> tuple[str | None, History | None]:
    """What sorts the rows of a person, proposed once, and whether their sequence is learned."""
    columns = [table.schema[name] for name in names]
    dates = (column.name for column in columns if column.kind is Kind.DATETIME)
    first = next(dates, None) if person is None else person.order
    order = linking.order_of(columns, first, f"order_{table.id}")
    if order is None:
        return None, None
    learned = person is None or person.order != order or person.history is not None
    follows = linking.follows(f"follow_{table.id}_{order}", first=learned)
    return order, History() if follows else None


def _unknown(table: TableRecord) -> Person:
    """The declaration of a table in which nobody can tell."""
    person = table.schema.person
    most = _most(
        table,
        None if person is None or person.grouped else person,
        say(
            "Nobody can check this number; the certificate relies on your word. Everything is "
            "protected as if one person had this many rows, so more rows mean more noise."
        ),
    )
    return Person(rows=most)


def _picture(table: TableRecord, person: Person | None, *, grouped: bool) -> None:
    """What a limit keeps and costs; from what the steward declares, never from the rows."""
    mean = st.number_input(
        say("Average number of rows per person, as publicly known"),
        min_value=1.0,
        value=2.0,
        step=0.5,
        key=f"mean_{table.id}",
        help=say(
            "Used for this figure only. Nothing was counted in your table, because the maximum you "
            "choose is public."
        ),
    )
    most = USUAL_ROWS if person is None else person.rows
    words = said(row_limit_words(mean, most, grouped=grouped))
    shared.picture(
        row_limit_figure(mean, most, grouped=grouped), key=f"limit_{table.id}", alt=words
    )
    st.caption(plain(words))
