"""The registry: models by id, found by their folders."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any, TypeVar

from core.models.card import Card
from core.models.saved_model import SavedModel
from core.models.synthesizer import Synthesizer

NOT_A_MODEL = "steps"  # the folder of what several models use

_registry: dict[str, type[Synthesizer[Any]]] = {}
S = TypeVar("S", bound="type[Synthesizer[Any]]")


def register(model: S) -> S:
    """Class decorator: make a synthesizer known under its card's id (ValueError when taken)."""
    if model.card.id in _registry:
        raise ValueError(f"two models call themselves '{model.card.id}'")
    _registry[model.card.id] = model
    return model


def _discover() -> None:
    """Import `plan` of every model's folder; a folder with such a module is all a model needs."""
    package = importlib.import_module("core.models")
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg and module.name != NOT_A_MODEL:
            importlib.import_module(f"core.models.{module.name}.plan")


def cards() -> tuple[Card, ...]:
    """The cards of all registered models, sorted by id."""
    _discover()
    return tuple(_registry[key].card for key in sorted(_registry))


def synthesizer(model_id: str) -> Synthesizer[Any]:
    """A fresh synthesizer of that id; KeyError names the ids there are."""
    _discover()
    if model_id not in _registry:
        raise KeyError(
            f"no model is called '{model_id}'; there are: {', '.join(sorted(_registry))}"
        )
    return _registry[model_id]()


def load_fitted(model_id: str, folder: Path) -> SavedModel:
    """The saved model in `folder`."""
    return synthesizer(model_id).load(folder)
