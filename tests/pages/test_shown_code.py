"""Show the code: what Plan and Download show asks for just what their buttons do."""

from __future__ import annotations

import shlex

import pytest

from core.cli.common import synthesis_options
from core.cli.main import command_line
from core.schema.schema import Schema
from core.services import planning
from tests.pages.screen import finish, press, whole

pytestmark = pytest.mark.slow


def parsed(at):
    """The options of each command on the page."""
    commands = [one.value for one in at.code if one.language == "bash"]
    return [
        command_line().parse_args(shlex.split(text.replace("\\\n", " "))[3:]) for text in commands
    ]


def planned(options, schema, n):
    return planning.make_plan(schema, n, synthesis_options(options).request)


def test_code_on_plan_is_the_run_that_the_button_starts(store, table, show, gone, downloads):
    at = show("plan", table=table.id)
    next(n for n in at.number_input if n.label == "Synthetic rows").set_value(123)
    next(n for n in at.number_input if n.label.startswith("Seed")).set_value(7)
    at.radio[0].set_value("cpu")
    at.toggle(key="score").set_value(True)
    at.select_slider(key="review_share").set_value(0.1)
    at = whole(at.select_slider[0].set_value(2.0).run())
    (options,) = parsed(at)
    schema = Schema.model_validate_json(downloads["schema.json"]())
    whole(press(at, "Train: spends ε = 2 of this table's budget"))
    (run,) = store.runs()
    assert schema == table.schema
    assert planned(options, schema, table.training_n).digest == run.plan.digest
    told = (options.rows, options.seed, options.device, options.people)
    assert (
        told
        == (run.rows, run.request.seed, run.request.device, run.account_id)
        == (123, 7, "cpu", table.account_id)
    )


def test_code_on_download_is_the_run_and_rows_shown(store, table, start, show, downloads):
    run = start(1.0, score=0.05)
    finish(store, run)
    at = show("download", run=run.id)
    at.number_input[0].set_value(17)
    at = whole(at.toggle(key=f"fill_{run.id}").set_value(True).run())
    again, rows = parsed(at)
    assert planned(again, run.schema, table.training_n).digest == run.plan.digest
    assert (rows.run, rows.rows, rows.fill_missing) == (run.id, 17, True)
    assert str(rows.out).endswith(".zip") and "schema.json" not in downloads
