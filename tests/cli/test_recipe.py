"""The code that is shown asks for the very same run: both forms are read back and compared."""

from __future__ import annotations

import math
import shlex
from typing import Any

import pytest

import core.api
from core.cli.common import synthesis_options
from core.cli.main import command_line
from core.cli.sample import shape_of
from core.models.registry import cards
from core.models.shaped_output import Shape
from core.proposing.propose import infer_schema
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.request import RunRequest
from core.services.linking.files import keys_of
from core.services.recipe import run_code, sample_code
from core.services.sample_tables import SAMPLE_TARGET, sample_table
from tests.histories import schema as histories_schema
from tests.histories import three_levels, two_files

FRAME = sample_table(400)
SCHEMA = infer_schema(FRAME).model_copy(update={"target": SAMPLE_TARGET})
HIDDEN = SCHEMA.model_copy(update={"sensitive": {"ages": ("age", "sex")}})
IDS = [card.id for card in cards()]
REQUESTS = {
    "plain": RunRequest(model="pearl", epsilon=1.0, delta=1e-6),
    "odd numbers": RunRequest(model="pearl", epsilon=0.1 + 0.2, delta=3.1e-7),
    "settings": RunRequest(
        model="pearl", epsilon=2.0, delta=1e-6, settings={"steps": 70, "learning_rate": 1e-05}
    ),
    "of all sorts": RunRequest(
        model="pgb", epsilon=2.0, delta=1e-6, settings={"base": "ppem", "steps": 9}
    ),
    "bought": RunRequest(model="pearl", epsilon=2.0, delta=1e-6, review=0.1, score=0.05),
    "hidden": RunRequest(
        model="pearl", epsilon=2.0, delta=1e-6, alpha=0.02, shift=0.5, certificate=0.25, attempts=3
    ),
    "without privacy": RunRequest(model="pearl", epsilon=math.inf, delta=1e-6),
}
RUN = {"rows": 77, "seed": 3, "device": "cpu", "shift_words": "it's so"}


def from_command(command: str) -> Any:
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["python", "-m", "core.cli"]
    return command_line().parse_args(words[3:])


def from_python(
    python: str, monkeypatch: pytest.MonkeyPatch, *, file: str, escaped: bool = False
) -> tuple[tuple[Any, ...], dict]:
    """How the one function that the code calls is called; its table is written once."""
    calls: list[tuple[tuple[Any, ...], dict]] = []
    written: list[tuple[str, bool]] = []

    class Result:
        def write(self, out: str, *, escape_formulas: bool = False) -> None:
            """Nothing is written."""
            written.append((out, escape_formulas))

    def called(*args: Any, **options: Any) -> Any:
        calls.append((args, options))
        return Result()

    with monkeypatch.context() as patch:
        for name in ("synthesize", "sample"):
            patch.setattr(core.api, name, called)
        patch.setattr(core.api, "read_table", lambda path, schema: (path, schema))
        exec(python, {})
    (call,) = calls
    assert written == [(file, escaped)]
    return call


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_run_reads_back_as_the_same_request(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = run_code(
        "clinic visits (sample)",
        request_.model_copy(update=RUN),
        account_id="people-1",
        schema=SCHEMA,
    )
    ((frame, read_by),), options = from_python(code.python, monkeypatch, file="synthetic.csv")
    schema = options.pop("schema")
    assert (frame, read_by) == ("clinic visits (sample).csv", "schema.json")
    assert schema == read_by
    typed = from_command(code.command)
    assert (str(typed.table), str(typed.schema)) == (frame, schema)
    given = request_.model_copy(update=RUN)
    if given.epsilon == math.inf:
        given = given.model_copy(update={"without_privacy": "--without-privacy"})
    for asked in (synthesis_options(typed), core.api._options(options, schema)):
        assert (asked.request, asked.people, asked.table) == (given, "people-1", frame)
        assert asked.declared


@pytest.mark.parametrize("seeds", [(), (4,), (1, 2)])
def test_rows_read_back_as_the_same_request(
    seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Shape(where=("sex=a b", "-x=1.."), share="sex:f=.5,m='s=.5", fill_missing=True)
    request = SampleRequest(rows=9, shape=shape, escape_formulas=True)
    run = type("Run", (), {"id": "abc", "private": False, "schema": SCHEMA})()
    code = sample_code(run, request, seeds, out="x.zip")
    parsed = from_command(code.command)
    assert (parsed.run, parsed.rows, shape_of(parsed)) == ("abc", 9, shape)
    assert tuple(parsed.seed or ()) == seeds and str(parsed.out) == "x.zip"
    assert parsed.without_privacy and parsed.escape_formulas
    (name,), options = from_python(code.python, monkeypatch, file="x.csv", escaped=True)
    assert name == "abc" and options.pop("without_privacy") and options.pop("rows") == 9
    assert options.pop("seed", None) == (seeds[0] if seeds else None)
    assert Shape(**options) == shape


def test_two_linked_files_are_named_in_the_code() -> None:
    schema = histories_schema()
    code = run_code("people + events", REQUESTS["plain"], account_id="p", schema=schema)
    typed = from_command(code.command)
    assert (str(typed.table), *map(str, typed.linked)) == ("people.csv", "events.csv")
    assert (typed.key, typed.order, typed.rows_per_person) == ("who=key", "day", 4)
    assert typed.out.suffix == ".zip" and str(typed.schema) == "schema.json"
    assert "synthesize_linked(" in code.python and "names=('people', 'events')" in code.python
    compile(code.python, "code", "exec")
    code = run_code("all", REQUESTS["plain"], account_id="p", schema=two_files(9).schema)
    typed = from_command(code.command)
    assert [*map(str, typed.linked)] == ["visits.csv", "tests.csv"]
    assert (typed.key, typed.order) == ("who=who,who", "day,when")
    assert "    a,\n    b,\n    c,\n" in code.python
    compile(code.python, "code", "exec")
    code = run_code("all", REQUESTS["plain"], account_id="p", schema=three_levels(9).schema)
    typed = from_command(code.command)
    assert (typed.key, typed.order) == ("who=who,members.member", ",date")
    assert keys_of(typed.key, 2) == ("who", "who", "members.member")
