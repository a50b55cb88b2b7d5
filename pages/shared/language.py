"""The language of whoever is here: what the browser asks for, or what was chosen.

`say` is for texts that a page writes; `said` for texts that come from `core`, which are English.
The choice stands in the address (`?lang=de`), so a refresh and a link keep it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.language.catalogue import NAMES, Language, language

PARAMETER = "lang"
_CHOICE = "language"


def code() -> str:
    """The language's code, as in `NAMES`: chosen, else in the address, else the browser's."""
    wanted = st.session_state.get(_CHOICE) or st.query_params.get(PARAMETER)
    wanted = wanted or (st.context.locale or "").split("-")[0].lower()
    return wanted if wanted in NAMES else "en"


def spoken() -> Language:
    """The language of whoever is here."""
    return language(code())


def say(template: str, /, **values: Any) -> str:
    """A text of the page, in the language of whoever is here; see `Language.say`."""
    return spoken().say(template, **values)


def say_n(n: int, one: str, many: str, /, **values: Any) -> str:
    """`one` where n is 1, else `many`; both may hold `{n}` beside their own fields."""
    return spoken().say(one if n == 1 else many, n=n, **values)


def number(text: str) -> str:
    """A number as Python wrote it, with the marks of whoever is here."""
    return spoken().number(text)


def keyed(name: str) -> str:
    """The key of a choice whose options are said: the browser sends back the words it showed."""
    return name if code() == "en" else f"{name}_{code()}"


def to_say(label: str, /) -> str:
    """A label in a constant, as it is: marked for the catalogue, to be shown by `said`."""
    return label


def said(text: object) -> str:
    """A text of `core`, a message or English, in the language of whoever is here."""
    return spoken().render(str(text))


def choose() -> None:
    """The choice of language, in the bar at the top of every page; kept in the address."""
    own = code()
    if st.query_params.get(PARAMETER) == own:  # what a link asks for outlives its address
        st.session_state[_CHOICE] = own
    with st.container(key="language"):  # `style` puts it beside the menu
        picked = st.segmented_control(
            "Language / Sprache",
            list(NAMES),
            default=own,
            format_func=NAMES.__getitem__,
            key=f"{_CHOICE}_choice",
            label_visibility="collapsed",
        )
    if picked and picked != own:
        st.session_state[_CHOICE] = picked
        st.query_params[PARAMETER] = picked
        st.rerun()
    if _CHOICE in st.session_state and st.query_params.get(PARAMETER) != own:
        st.query_params[PARAMETER] = own
