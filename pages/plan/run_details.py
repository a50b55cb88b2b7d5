"""What Plan asks beside model and budget: rows, name, device, seed, δ and advanced settings."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.privacy.plan import default_delta
from core.runs.records import TableRecord
from core.runs.request import Device
from pages.plan import model_choice
from pages.shared.language import said, say, to_say

DEVICES: dict[Device, str] = {
    "auto": to_say("GPU if there is one, else processor"),
    "cpu": to_say("Processor"),
    "cuda": to_say("GPU"),
}


@dataclass(frozen=True)
class RunDetails:
    """How a run is made.

    Attributes:
      rows: synthetic records, ≥ 1.
      name: for people, may be empty.
      device: "auto", "cpu" or "cuda".
      seed: of data-free randomness, None for a drawn one.
      delta: in (0, 1/n).
      settings: of the model, by name, as far as they differ from its own defaults.
    """

    rows: int
    name: str
    device: Device
    seed: int | None
    delta: float
    settings: dict[str, model_choice.Value]


def choose(table: TableRecord, model: model_choice.ModelChoice) -> RunDetails:
    """Folded choices: rows, name, device, δ and the model's own settings."""
    with st.expander(say("Rows, name and device"), icon=":material/settings:"):
        rows = st.number_input(
            say("Synthetic rows"),
            1,
            10_000_000,
            table.training_n,
            help=say("More can be made later, for free."),
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
                "Fixes starting weights and draws, never the privacy noise: two runs with one seed "
                "still differ, because repeatable noise would reveal the data."
            ),
        )
    with st.expander(say("Advanced"), icon=":material/science:"):
        delta = st.number_input(
            say("δ: chance that the promise fails altogether"),
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
    return RunDetails(rows, name, device, seed, delta, settings)
