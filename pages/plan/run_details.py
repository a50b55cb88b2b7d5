"""What Plan asks beside model and budget: rows, name, device, seed, δ and advanced settings."""

from __future__ import annotations

import math
import shlex
from typing import Any

import streamlit as st

from core.inference.measured import PAYABLE
from core.inference.questions import question_words, words
from core.privacy.plan import default_delta
from core.runs.records import TableRecord
from core.runs.request import PAY_SHARE
from core.services.inference import agreement
from pages.plan import model_choice
from pages.shared.language import said, say, to_say
from pages.shared.workspace_store import store

DEVICES = {
    "auto": to_say("GPU if available, otherwise processor"),
    "cpu": to_say("Processor"),
    "cuda": to_say("GPU"),
}


def choose(table: TableRecord, model: model_choice.ModelChoice, epsilon: float) -> dict[str, Any]:
    """Fields of a RunRequest: paid questions, rows, name, device, seed, δ, the model's settings."""
    pay = _paid(table, epsilon)
    left, right = st.columns(2, gap="large")
    with left:
        rows = st.number_input(
            say("Synthetic people") if table.schema.walked else say("Synthetic rows"),
            1,
            10_000_000,
            table.training_n,
            help=say("You can generate more later at no cost."),
        )
        name = st.text_input(say("Name of this run (optional)"), max_chars=80)
        devices = {value: said(label) for value, label in DEVICES.items()}
        device = st.radio(say("Device"), list(devices), format_func=devices.__getitem__)
        seed = st.number_input(
            say("Seed (optional)"),
            min_value=0,
            value=None,
            step=1,
            help=say(
                "Fixes starting weights and random draws, never the privacy noise. Two runs with "
                "the same seed still differ, because repeatable noise would reveal the data."
            ),
        )
    with right:
        delta = st.number_input(
            say("δ: probability that the guarantee does not hold"),
            min_value=1e-12,
            max_value=1.0 / table.training_n * 0.999,
            value=default_delta(table.training_n),
            format="%.1e",
            help=say(
                "Must be below 1/n. The default is the smaller of one in a million and 1/(10 n)."
            ),
        )
        settings = dict(model.settings)
        for setting in model.more:
            value = model_choice.setting(model.card, setting)
            if value != setting.default:  # a model may know a better default for some plans
                settings[setting.name] = value
    return {
        "pay": pay,
        "rows": rows,
        "name": name,
        "device": device,
        "seed": seed,
        "delta": delta,
        "settings": settings,
    }


def _paid(table: TableRecord, epsilon: float) -> tuple[str, ...]:
    """The pinned questions whose real figures this run pays for, in words of the command `ask`."""
    pinned = agreement.pinned(store(), table.id) if math.isfinite(epsilon) else ()
    if not pinned:
        return ()
    chosen = st.multiselect(
        say("For readers outside: measure questions on the real rows, with noise"),
        [question for question in pinned if question.statistic in PAYABLE],
        format_func=lambda question: said(words(question)),
        placeholder=say("Choose"),
        key=f"pay_{table.id}",
    )
    st.caption(
        say(
            "Each spends {share:.0%} of the budget. Anyone may then see it and its real figure, "
            "with noise. Only counts, shares, means and differences can be measured.",
            share=PAY_SHARE,
        )
    )
    return tuple(shlex.join(question_words(question)) for question in chosen)
