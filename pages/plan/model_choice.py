"""Models: which one is to be trained, and whether it is boosted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from core.models.card import Card, Setting
from core.models.registry import cards, synthesizer
from core.services.estimates.forecast import Advice
from pages.shared.language import keyed, said, say

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


def choose(first: str) -> ModelChoice:
    """The model cards, `first` the first of them and chosen when nothing is; a switch to boost."""
    known = {card.id: card for card in sorted(cards(), key=lambda card: card.id != first)}
    place = st.expander(say("Model"), icon=":material/model_training:", key="models")
    with place:
        picked = st.pills(
            say("Model"),
            list(known),
            default=first,
            format_func=lambda key: known[key].name,
            label_visibility="collapsed",
            key="model",
        )
        card = known[picked or first]
        booster = next((other for other in known.values() if card.id in other.boosts), None)
        st.markdown(f"**{card.name}** — {said(card.summary)}")
        good, weak = said(card.good_at), said(card.weak_at)
        st.markdown(f":material/thumb_up: {good}  \n:material/thumb_down: {weak}")
        named = {s.name: setting(card, s) for s in card.settings if s.choices}
        boosted = booster is not None and st.toggle(
            say("Boosting: combine all generators from training, not just the last one"),
            help=f"{booster.name}. {said(booster.summary)}",
            key=f"boost_{card.id}",
        )
        with st.popover(say("Published results and soundness"), icon=":material/menu_book:"):
            _facts(booster if booster and boosted else card)
    numbers = tuple(s for s in card.settings if not s.choices)
    if booster is None or not boosted:
        return ModelChoice(card, settings=named, more=numbers)
    known_names = {s.name for s in numbers}
    own = tuple(s for s in booster.settings if not s.choices and s.name not in known_names)
    return ModelChoice(booster, settings={"base": card.id}, more=(*numbers, *own))


def advise(model: ModelChoice, advice: Advice, *, histories: bool) -> None:
    """The model that is planned, with why or, where another is advised, the press to take it.

    Args:
      histories: whether it is to be learned how a person's rows depend on each other.
    """
    words, own = said(advice.sentence), model.card.name
    if advice.model == model.settings.get("base", model.card.id):
        st.markdown(say("Model: **{model}**, recommended for this table.", model=own), help=words)
        return
    take = say("Take {model}, which is recommended", model=synthesizer(advice.model).card.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(say("Model: **{model}**.", model=own))
        choose, chosen = st.session_state.update, {"model": advice.model}
        st.button(take, icon=":material/recommend:", help=words, on_click=choose, args=(chosen,))
    if histories and not synthesizer(model.card.id).histories:
        lost = say(
            "{model} does not learn how the rows of a person depend on each other.", model=own
        )
        st.caption(f":material/warning: {lost}")


def _facts(card: Card) -> None:
    for what, figure in card.published:
        st.markdown(f"- {said(what)}: **{said(figure)}**")
    st.caption(
        say("Source: {source}. These are the paper's figures, not ours.", source=said(card.source))
    )
    st.markdown(f"**{say('What we do differently')}** {said(card.soundness)}")


def setting(card: Card, declared: Setting) -> Value:
    """One setting: named choices, a switch or a number."""
    key = keyed(f"setting_{card.id}_{declared.name}")
    label, meaning = said(declared.label), said(declared.help)
    if declared.choices:
        words = {value: said(label) for value, label in declared.choices}
        picked = st.segmented_control(
            label,
            list(words),
            default=str(declared.default),
            format_func=words.__getitem__,
            help=meaning,
            key=key,
        )
        return picked or declared.default
    if isinstance(declared.default, bool):
        return st.toggle(label, declared.default, help=meaning, key=key)
    if declared.default == 0 and isinstance(declared.default, int):
        return _number_or_automatic(declared, key)
    kind = int if isinstance(declared.default, int) else float
    chosen: float | int = st.number_input(
        label,
        min_value=None if declared.low is None else kind(declared.low),
        max_value=None if declared.high is None else kind(declared.high),
        value=kind(declared.default),
        help=meaning,
        format=None if kind is int else "%.4g",
        key=key,
    )
    return chosen


def _number_or_automatic(declared: Setting, key: str) -> int:
    """A count that the model finds by itself where nobody gives one, which it calls 0."""
    chosen = st.number_input(
        said(declared.label),
        min_value=0,
        max_value=None if declared.high is None else int(declared.high),
        value=None,
        step=1,
        placeholder=say("automatic"),
        help=said(declared.help).replace("0: ", f"{say('Automatic')}: "),
        key=key,
    )
    return int(chosen or 0)
