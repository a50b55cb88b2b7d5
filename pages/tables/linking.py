"""Two tables of the same people: what links them, what that leaves out, and one table of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from core.importing.raw_table import Progress
from core.runs.records import TableRecord
from core.schema.column import Column, Kind
from core.schema.person import DEFAULT_ROWS, MOST_ROWS
from core.services import declarations
from core.services.linking import stored
from core.services.linking.files import LinkFacts
from core.services.linking.stored import Link
from core.services.linking.unlinking import foreign_keys
from pages.server import guard
from pages.shared import visible
from pages.shared import widgets as shared
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

BringIn = Callable[[str, Callable[[Progress], TableRecord]], None]
MOST = to_say(
    "Public, so choose it by what you know about such tables. Rows beyond it are left out of "
    "training; which ones depends only on that person's own rows. It needs no extra noise, because "
    "each person counts once."
)
FOLLOW = to_say(
    "Such as which treatment comes after which, and how long it takes. Turn this off to hide "
    "distributions or to train a model that does not learn it."
)


def others(table: TableRecord) -> list[TableRecord]:
    """Tables that this one could be linked with, the newest first: two linked ones cannot be."""
    return [
        one
        for one in visible.tables()
        if one.id != table.id and not (table.schema.linked and one.schema.linked)
    ]


def propose(table: TableRecord, bring_in: BringIn) -> None:
    """Offer the link that the values suggest, until the table or its people are declared.

    Args:
      bring_in: keeps a table, with its progress shown, and opens it.
    """
    if table.schema.person is not None or store().attested(table.id):
        return
    tables = others(table)
    key = f"proposed_link_{table.id}"
    seen = [one.id for one in tables]
    if key not in st.session_state or st.session_state[key][0] != seen:  # read once a table
        st.session_state[key] = (seen, stored.proposed_link(store(), table, tables))
    link: Link | None = st.session_state[key][1]
    if link is None:
        return
    by_id = {one.id: one for one in (table, *tables)}
    words = to_say(
        ":material/link: **The rows of {child} belong to the people in {parent}.** Link both "
        "tables to get synthetic files whose keys match."
    )
    person = by_id[link.parent].schema.person
    if by_id[link.parent].schema.linked and person is not None and link.key not in person.columns:
        words = to_say(
            ":material/link: **The rows of {child} belong to rows of {parent}.** Link both tables "
            "to get synthetic files whose keys match."
        )
    names = {"child": by_id[link.child].name, "parent": by_id[link.parent].name}
    with st.container(border=True):
        st.markdown(say(words, **{key: plain(name) for key, name in names.items()}))
        choose(table, bring_in, link)


def choose(table: TableRecord, bring_in: BringIn, link: Link | None = None) -> None:
    """The link as proposed, or of this table with any other, and the button that makes it."""
    by_id = {one.id: one for one in (table, *others(table))}
    first = link or _likely(table)
    prefix = f"{'proposed' if link else 'link'}_{table.id}"
    left, middle, right = st.columns(3, gap="medium")
    with left:
        words = say("Table with one row per person")
        parent, key = _side(words, by_id, first.parent, first.key, f"{prefix}_parent")
    with middle:
        words = say("Table with their rows")
        child, child_key = _side(words, by_id, first.child, first.child_key, f"{prefix}_child")
    if parent.id == child.id or child.schema.linked:
        st.caption(say("Choose two different tables."))
        return
    with right:
        columns = [c for c in child.schema.columns if c.name != child_key]
        order = order_of(columns, stored.in_time(child), f"{prefix}_order_{child.id}")
        person = parent.schema.person if parent.schema.linked else None
        most = most_of(DEFAULT_ROWS if person is None else person.rows, f"{prefix}_most")
    chosen = Link(parent.id, child.id, key, child_key, order)
    with shared.plain_errors():
        _notes(_facts(parent, child, chosen), most)
        look: Literal["primary", "secondary"] = "primary" if link else "secondary"
        words, key = say("Link these tables"), f"{prefix}_go"
        if st.button(words, icon=":material/link:", type=look, key=key):

            def take(progress: Progress) -> TableRecord:
                both, owner = (parent, child), guard.address()
                return stored.link_tables(
                    store(), *both, chosen, most=most, owner=owner, progress=progress
                )

            names = {"parent": plain(parent.name), "child": plain(child.name)}
            bring_in(say("Linking {parent} and {child} …", **names), take)


def _likely(table: TableRecord) -> Link:
    """Where nothing is proposed: this table's rows, and the newest other one that has keys."""
    if table.schema.linked:
        new = others(table)[0]
        if (link := stored.link_to_rows(store(), table, new)) is not None:
            return link
        key, who = table.schema.key_columns[0], stored.key_columns(new, unique=False)
        return Link(table.id, new.id, key, [*who, *new.columns][0], stored.in_time(new))
    keys = {one.id: stored.key_columns(one, unique=True) for one in others(table)}
    parent = next((own for own, names in keys.items() if names), next(iter(keys)))
    said_who = [*stored.key_columns(table, unique=False), *table.columns]
    return Link(parent, table.id, [*keys[parent], ""][0], said_who[0])


def _side(
    label: str, by_id: dict[str, TableRecord], first: str, first_key: str, key: str
) -> tuple[TableRecord, str]:
    """One of the two tables, and its column that says who."""
    labels = shared.unique_labels({own: one.name for own, one in by_id.items()})
    at = list(by_id).index(first)
    table = by_id[st.selectbox(label, list(by_id), at, labels.__getitem__, key=key)]
    at = table.columns.index(first_key) if first_key in table.columns else 0
    words = say("Column that says who")
    return table, st.selectbox(words, table.columns, at, key=f"{key}_{table.id}")


def order_of(columns: Sequence[Column], first: str | None, key: str) -> str | None:
    """The one of these columns that sorts the rows of a person, or none."""
    sorting = [c for c in columns if c.modelled and (c.kind.numeric or c.kind is Kind.ORDERED)]
    options = [None, *(column.name for column in sorting)]
    return st.selectbox(
        say("In which order do the rows of a person come?"),
        options,
        index=options.index(first) if first in options else 0,
        format_func=lambda name: say("no order") if name is None else name,
        key=keyed(key),
    )


def counter_of(table: TableRecord, order: str | None, key: str) -> str | None:
    """The column that counts a person's rows in their order, or none."""
    if (person := table.schema.person) is None or order is None:
        return None
    taken = {*person.columns, *person.constant, order, person.event}
    kinds = (Kind.INTEGER, Kind.NUMBER, Kind.ORDERED, Kind.IDENTIFIER)
    columns = [c.name for c in table.schema.columns if c.kind in kinds and c.name not in taken]
    options = [None, *columns]
    return st.selectbox(
        say("Which column counts the rows of a person: 1, 2, 3, …?"),
        options,
        index=options.index(person.counter) if person.counter in options else 0,
        format_func=lambda name: say("none") if name is None else name,
        key=keyed(key),
        help=say("It is not learned. The synthetic table counts the rows of each person anew."),
    )


def most_of(first: int, key: str) -> int:
    """How many rows of a person are used."""
    words, about = say("Maximum rows per person"), said(MOST)
    return int(st.number_input(words, 2, MOST_ROWS, max(2, first), key=key, help=about))


def follows(key: str, *, first: bool) -> bool:
    """Whether it is learned how the rows of a person depend on each other."""
    words = say("Learn how the rows of a person depend on each other")
    return st.toggle(words, first, key=f"{key}_{first}", help=said(FOLLOW))


def _facts(parent: TableRecord, child: TableRecord, link: Link) -> LinkFacts:
    """What linking leaves out, counted once a session for each pair of keys."""
    key = f"facts_{replace(link, order=None)!r}"
    if key not in st.session_state:
        with st.spinner(say("Comparing the keys of both tables …")):
            st.session_state[key] = stored.link_facts(store(), parent, child, link)
    facts: LinkFacts = st.session_state[key]
    return facts


def _notes(facts: LinkFacts, most: int) -> None:
    """What is used and what is left out, for the steward alone."""
    lines = " ".join(plain(said(note)) for note in facts.notes(most))
    st.caption(f":material/visibility_lock: {lines} {say('Only you see these counts.')}")


def unit(table: TableRecord) -> None:
    """One line on whom ε protects, where that is more than a row."""
    if (person := table.schema.person) is not None:
        st.caption(f":material/person: {plain(say('ε holds {unit!t}.', unit=person.words))}")


def settings(table: TableRecord, bring_in: BringIn) -> None:
    """Of a linked table: what a person is, what may be changed of it, and what to link besides.

    Args:
      bring_in: see `propose`.
    """
    person = table.schema.person
    assert person is not None and person.history is not None
    history = person.history
    links = foreign_keys(person, table.schema.names)
    owned = {child: link for child, link in links.items() if link.file != history.parent}
    st.markdown(
        say(
            "**One person is one row of {parent} with their rows of {child}**, linked by {key}. "
            "ε protects all of it together.",
            parent=plain(history.parent),
            child=plain(", ".join(name for name in person.child_names if name not in owned)),
            key=plain(person.columns[0]),
        )
        + "".join(
            " "
            + say(
                "Rows of {child} belong to rows of {owner}, linked by {key}.",
                child=plain(child),
                owner=plain(link.file),
                key=plain(link.key),
            )
            for child, link in owned.items()
        )
    )
    left, right = st.columns(2, gap="large")
    columns = [c for c in table.schema.columns if c.name in history.own_names]
    with left:
        order = order_of(columns, person.order, f"order_{table.id}_{person.order}")
        counter = counter_of(table, order, f"counter_{table.id}_{order}_{person.counter}")
        learned = follows(f"follow_{table.id}", first=history.learned)
    with right:
        most = most_of(person.rows, f"most_{table.id}_{person.rows}")
    if (facts := stored.facts_of(table)) is not None:
        _notes(facts, most)
    history = history.model_copy(update={"learned": learned})
    changes = {"order": order, "rows": most, "history": history, "counter": counter}
    new = person.model_copy(update=changes)
    if new != person:
        with shared.change():
            declarations.change_person(store(), table, new)
    if others(table) and not store().attested(table.id):
        with st.expander(say("Link one more table")):
            choose(table, bring_in)
