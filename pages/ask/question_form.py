"""A question, chosen by clicking."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import streamlit as st

from core.inference.questions import MODELS, MOST_LABELS, VALUES, Question, Statistic
from core.schema.column import DomainColumn, Kind
from core.schema.schema import Domain
from pages.shared import conditions
from pages.shared.language import keyed, said, say, to_say
from pages.shared.plain import plain

TITLES = {
    Statistic.SHARE: to_say("Share of rows with a value"),
    Statistic.COUNT: to_say("Number of rows"),
    Statistic.MEAN: to_say("Mean"),
    Statistic.QUANTILE: to_say("Median or another quantile"),
    Statistic.TABLE: to_say("Cross table"),
    Statistic.DIFFERENCE: to_say("Difference between two groups"),
    Statistic.LINEAR: to_say("Linear regression"),
    Statistic.LOGISTIC: to_say("Logistic regression"),
    Statistic.SURVIVAL: to_say("Survival curve (Kaplan–Meier)"),
}
OTHERS = {
    Statistic.TABLE: to_say("By"),
    Statistic.DIFFERENCE: to_say("Groups of"),
    Statistic.SURVIVAL: to_say("What ends the time"),
}


def choose(domain: Domain, *, key: str, hidden: Collection[str] = ()) -> Question:
    """What somebody asks; it may still lack something, which `check` says.

    Args:
      key: of the fields, which other forms on the page must not have.
      hidden: columns that nothing can be asked of.
    """
    columns = {column.name: column for column in domain.modelled if column.name not in hidden}
    numbers = [n for n, c in columns.items() if c.kind in (Kind.INTEGER, Kind.NUMBER)]
    short = [n for n, c in columns.items() if len(c.categories or ()) <= MOST_LABELS]
    lists = [name for name in short if columns[name].kind.listed]
    lists.sort(key=lambda name: name != domain.target)  # which most questions are about
    every = [*lists, *(name for name in columns if name not in lists)]
    statistic = _box(say("What do you want to know?"), list(TITLES), f"{key}_what", TITLES)
    field, asked = f"{key}_{statistic}", {"statistic": statistic}
    options = {
        **{Statistic.TABLE: lists, Statistic.LOGISTIC: lists, Statistic.SHARE: every},
        Statistic.DIFFERENCE: numbers + lists,
    }.get(statistic, numbers)
    if statistic is not Statistic.COUNT:
        column = asked["column"] = _box(say("Column"), options, f"{field}_column") or ""
        gap = statistic is Statistic.DIFFERENCE and column in lists
        if column and (gap or statistic in VALUES):
            asked["value"] = _value(columns[column], f"{field}_{column}")
    if statistic is Statistic.QUANTILE:
        level = st.slider(say("Quantile"), 1, 99, 50, format="%d %%", key=keyed(f"{field}_level"))
        asked["level"] = level / 100
    others = [name for name in (*lists, *numbers) if name != asked.get("column")]
    if statistic in MODELS:
        label, empty = say("Explained by"), say("Choose")
        asked["by"] = st.multiselect(label, others, key=keyed(f"{field}_by"), placeholder=empty)
    elif statistic in OTHERS:
        listed = [name for name in others if name in lists]
        if by := _box(said(OTHERS[statistic]), listed, f"{field}_by"):
            asked |= {"by": (by,)} | _of_other(statistic, columns[by], f"{field}_{by}")
    return Question.model_validate(asked | {"where": conditions.where(columns, key=key)})


def _box(label: str, options: list[Any], key: str, titles: Any = None, index: int = 0) -> Any:
    def named(option: Any) -> str:
        return plain(option) if titles is None else said(titles[option])

    return st.selectbox(label, options, index, format_func=named, key=keyed(key))


def _value(column: DomainColumn, key: str) -> str:
    """One value of a list, or a range, as a condition has it after its sign."""
    labels = list(column.categories or ())
    if column.kind.listed:  # of no and yes, mostly the second is meant
        return str(_box(say("Which value?"), labels, key, index=min(1, len(labels) - 1)))
    texts = conditions.condition(column, key=key)
    return texts[0].removeprefix(f"{column.name}=") if texts else ""


def _of_other(statistic: Statistic, column: DomainColumn, key: str) -> dict[str, Any]:
    """What is asked of the other column."""
    if statistic is Statistic.SURVIVAL:
        return {"value": _value(column, key)}
    groups = list(column.categories or ())
    if statistic is Statistic.TABLE or len(groups) < 2:
        return {}
    sides = zip(st.columns(2), (say("First"), say("Second")), (0, 1), strict=True)
    chosen = []
    for place, title, at in sides:
        with place:
            chosen.append(_box(title, groups, f"{key}_{at}", index=at))
    return {"groups": tuple(chosen)}
