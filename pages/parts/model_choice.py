"""Models: which one is to be trained, and whether it is boosted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from core.models.card import Card, Setting
from core.models.registry import cards

FIRST = "scan_focus"  # the model to try first, unless another is advised
Value = float | int | bool | str


@dataclass(frozen=True)
class ModelChoice:
    """A model and what was chosen beside it.

    Attributes:
      card: of the model to plan.
      settings: that follow from the choice, by name.
      more: settings to offer among the advanced ones.
    """

    card: Card
    settings: Mapping[str, Value] = field(default_factory=dict)
    more: tuple[Setting, ...] = ()


def choose(first: str = FIRST) -> ModelChoice:
    """The model cards, one chosen; a model that can be boosted has a switch for it.

    Args:
      first: id of the model that stands first and is chosen when nothing is.
    """
    st.subheader("Model", anchor=False)
    known = {card.id: card for card in sorted(cards(), key=lambda card: card.id != first)}
    picked = st.pills(
        "Model",
        list(known),
        default=first,
        format_func=lambda key: known[key].name,
        label_visibility="collapsed",
        key="model",
    )
    card = known[picked or first]
    booster = next((other for other in known.values() if card.id in other.boosts), None)
    with st.container(border=True):
        st.markdown(f"**{card.name}** — {card.summary}")
        st.markdown(f":material/thumb_up: {card.good_at}  \n:material/thumb_down: {card.weak_at}")
        named = {s.name: setting(card, s) for s in card.settings if s.choices}
        boosted = booster is not None and st.toggle(
            "Boost: mix all generators it goes through, not just the last",
            help=f"{booster.name}. {booster.summary}",
            key=f"boost_{card.id}",
        )
        with st.popover("Published figures and soundness", icon=":material/menu_book:"):
            _facts(booster if booster and boosted else card)
    numbers = tuple(s for s in card.settings if not s.choices)
    if booster is None or not boosted:
        return ModelChoice(card, settings=named, more=numbers)
    known_names = {s.name for s in numbers}
    own = tuple(s for s in booster.settings if not s.choices and s.name not in known_names)
    return ModelChoice(booster, settings={"base": card.id}, more=(*numbers, *own))


def _facts(card: Card) -> None:
    for what, figure in card.published:
        st.markdown(f"- {what}: **{figure}**")
    st.caption(f"Source: {card.source}. These are the paper's figures, not ours.")
    st.markdown(f"**What we do differently.** {card.soundness}")


def setting(card: Card, declared: Setting) -> Value:
    """One setting: named choices, a switch or a number."""
    key = f"setting_{card.id}_{declared.name}"
    if declared.choices:
        words = dict(declared.choices)
        picked = st.segmented_control(
            declared.label,
            list(words),
            default=str(declared.default),
            format_func=words.__getitem__,
            help=declared.help,
            key=key,
        )
        return picked or declared.default
    if isinstance(declared.default, bool):
        return st.toggle(declared.label, declared.default, help=declared.help, key=key)
    if declared.default == 0 and isinstance(declared.default, int):
        return _number_or_automatic(declared, key)
    kind = int if isinstance(declared.default, int) else float
    chosen: float | int = st.number_input(
        declared.label,
        min_value=None if declared.low is None else kind(declared.low),
        max_value=None if declared.high is None else kind(declared.high),
        value=kind(declared.default),
        help=declared.help,
        format=None if kind is int else "%.4g",
        key=key,
    )
    return chosen


def _number_or_automatic(declared: Setting, key: str) -> int:
    """A count that the model finds by itself where nobody gives one, which it calls 0."""
    chosen = st.number_input(
        declared.label,
        min_value=0,
        max_value=None if declared.high is None else int(declared.high),
        value=None,
        step=1,
        placeholder="automatic",
        help=declared.help.replace("0: ", "Automatic: "),
        key=key,
    )
    return int(chosen or 0)
