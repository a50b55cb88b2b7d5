"""SynthesisOptions: what `synth` and `synthesize` are asked about rows in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from core.runs.request import RunRequest, Texts


class RefusedError(ValueError):
    """What was asked cannot be done; one plain line that quotes no private value."""


class SynthesisOptions(BaseModel):
    """What is asked of a table in memory; docs/reference.md says what each option means.

    Attributes:
      declared: whether a schema was given, so that nothing is proposed from the rows.
      learn: columns whose domain the run learns although it was declared.
      references: whether domains that are public by a column's name are used before learning.
      learned_by: a run that learned what this one need not learn, see `saved_runs.earlier_run`.
      people: an account's name, "new", or None for the account whose rows these share.
      save: a new folder for the trained model and its certificate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    request: RunRequest
    table: str
    declared: bool
    declare_public: bool = False
    target: str | None = None
    rule: Texts = ()
    keep_out: float | None = None
    person: str | None = None
    rows_per_person: int | None = None
    order: str | None = None
    constant: str | None = None
    counter: str | None = None
    sensitive: Texts = ()
    learn: Texts = ()
    references: bool = False
    learned_by: str | Path | None = None
    people: str | None = None
    save: Path | None = None

    @property
    def declares_domains(self) -> bool:
        """Whether somebody says what columns hold, so that a run need not learn it all."""
        return self.declared or self.declare_public


def options_of(given: Mapping[str, Any], *, table: str, declared: bool) -> SynthesisOptions:
    """Options by their names on the command line, with _ for -; None counts as not given.

    Raises:
      RefusedError: there is no such option, or a value is of another type.
    """
    own = {name: value for name, value in given.items() if value is not None}
    words = {"confirm_shift": "shift_words", "confirm_unit": "unit_words"}
    asked = {field: own.pop(option) for option, field in words.items() if option in own}
    asked |= {name: own.pop(name) for name in RunRequest.model_fields.keys() & own.keys()}
    asked["without_privacy"] = "--without-privacy" if asked.get("without_privacy") else ""
    try:
        request = RunRequest(**asked)
        return SynthesisOptions(request=request, table=table, declared=declared, **own)
    except ValidationError as error:
        raise RefusedError(_plain(error)) from None


def _plain(error: ValidationError) -> str:
    """What is wrong with an option, in one line."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]).replace("_", "-")
    if first["type"] == "extra_forbidden":
        return f"there is no option --{name}"
    return f"--{name}: {first['msg'].lower()}, not {first['input']!r}"


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs; values are numbers, true, false or a name.

    >>> settings_of(["steps=500", "rate=0.1", "fast=true", "base=ppem"])
    {'steps': 500, 'rate': 0.1, 'fast': True, 'base': 'ppem'}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        try:
            value = json.loads(text.lower())
        except json.JSONDecodeError:
            value = text if text.isidentifier() else None
        if not name or not equals or not isinstance(value, bool | int | float | str):
            raise RefusedError(
                f"--settings takes NAME=NUMBER, NAME=true or NAME=WORD, not '{pair}'"
            )
        settings[name] = value
    return settings
