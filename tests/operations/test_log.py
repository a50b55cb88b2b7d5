"""The log of operations tells what happened and holds no value, whatever goes wrong."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from core.runs import operations_log
from core.runs.events import State
from core.runs.operations_log import FIELDS, JsonLines
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace
from core.services import imports
from pages.shared import downloads
from tests.operations.main_line import CANARIES

pytestmark = pytest.mark.slow


def walk(folder: Path, log: str) -> subprocess.CompletedProcess[str]:
    """The main line in a process of its own."""
    env = {**os.environ, "FACSIMILE_HOME": str(folder / "home"), "FACSIMILE_LOG": log}
    lines = (
        "import sys; from tests.operations import main_line as it; it.main(it.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-m", "tests.script", lines, str(folder)]
    done = subprocess.run(
        command, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def told(text: str) -> list[str]:
    return [place for place, canary in CANARIES.items() if canary in text]


def test_no_value_is_in_any_log_or_metric_of_the_main_line(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    done = walk(tmp_path, str(file))
    text = file.read_text(encoding="utf-8")
    assert told(text) == told(done.stdout) == told(done.stderr) == []
    lines = [json.loads(line) for line in text.splitlines()]
    events = [line["event"] for line in lines]
    assert {"import", "run_state", "debit", "download", "library"} <= set(events)
    assert events.count("debit") == 2, "workers write to the file too"
    states = [line["state"] for line in lines if line["event"] == "run_state"]
    assert {"queued", "running", "done", "failed"} <= set(states)
    assert {line["fault"] for line in lines if "fault" in line} == {"ValueError"}
    assert file.stat().st_mode & 0o077 == 0
    assert 'facsimile_failed_runs{kind="unexpected"} 1.0' in done.stdout
    assert 'phase="certificate"' in done.stdout or 'phase="shift"' in done.stdout
    assert done.stdout.splitlines()[-1].count("False") == 2  # no database, no launcher


def test_the_console_without_it_would_have_told() -> None:
    """The twin: what the form withholds is really said on the way."""
    code = "from tests.operations import main_line; main_line.meet_faults()"
    env = {name: value for name, value in os.environ.items() if name != "FACSIMILE_LOG"}
    command = [sys.executable, "-m", "tests.script", code]
    done = subprocess.run(
        command, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, timeout=120, check=True
    )
    assert {"fault", "cell"} <= set(told(done.stderr))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Where this process's log goes, and everything as it was at the end."""
    out, root, own = io.StringIO(), logging.getLogger(), logging.getLogger("facsimile")
    before = list(root.handlers), own.level, dict(operations_log._bound)
    monkeypatch.setenv("FACSIMILE_LOG", "json")
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(root.manager, "loggerDict", {"facsimile": own})
    operations_log.configure(run="abc123")
    yield out
    root.handlers[:], own.level = before[0], before[1]
    own.manager._clear_cache()
    operations_log._bound.clear()
    operations_log._bound.update(before[2])


def test_a_field_without_its_form_is_withheld(lines: io.StringIO) -> None:
    operations_log.record(
        "x", table="Anna Meier", epsilon=float("inf"), columns=True, model="pearl"
    )
    line = json.loads(lines.getvalue())
    withheld = {name for name, value in line.items() if value == "withheld"}
    assert withheld == {"table", "epsilon", "columns"}
    assert (line["model"], line["run"]) == ("pearl", "abc123")
    with pytest.raises(KeyError):
        operations_log.record("x", name="Anna Meier")


def test_a_persons_rows_are_not_counted(lines: io.StringIO, tmp_path: Path) -> None:
    """Where rows are put together by person, how many they are is as private as what they say."""
    told = []
    with RunStore(Workspace(tmp_path)) as store:
        for rows in (3, 4):
            lines.truncate(lines.seek(0))
            frame = pd.DataFrame({"who": ["ann", "bob", *["eve"] * (rows - 2)], "age": 40})
            table = imports.import_frame(store, frame, name="t", source="s").id
            downloads._made(lambda text="x" * rows: text, "", table, lambda: True)
            told.append(re.sub(rf'{table}|"time": "[^"]*"', "", lines.getvalue()))
    assert '"import"' in told[0] and '"download"' in told[0] and told[0] == told[1]


def test_a_fault_is_told_by_kind_and_place(lines: io.StringIO) -> None:
    try:
        raise OSError("/home/anna/secret.csv")
    except OSError as error:
        logging.getLogger("pages.x").error("at %s", "secret", exc_info=error)
    line = json.loads(lines.getvalue())
    assert line["fault"] == "OSError" and "secret" not in lines.getvalue()
    assert any("test_a_fault_is_told" in place for place in line["frames"])


def test_a_text_form_would_tell() -> None:
    record = logging.LogRecord("x", logging.ERROR, "p", 1, "at %s", ("secret",), None)
    assert "secret" in logging.Formatter().format(record)
    assert "secret" not in JsonLines().format(record)


def test_without_the_variable_nothing_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("FACSIMILE_LOG", raising=False)
    handlers = list(logging.getLogger().handlers)
    with caplog.at_level(logging.INFO, logger="facsimile"):
        operations_log.configure()
        operations_log.record("x", run="abc123")
    assert logging.getLogger().handlers == handlers and not caplog.records


def test_states_are_those_of_runs() -> None:
    assert operations_log.STATES == tuple(State)


def test_every_call_in_the_code_names_fields_that_there_are() -> None:
    """A field that nobody knows would raise only when it is logged."""
    calls = []
    for path in [*PROJECT_ROOT.glob("core/**/*.py"), *PROJECT_ROOT.glob("pages/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "operations_log.record":
                assert isinstance(node.args[0], ast.Constant), path
                calls.append(node.args[0].value)
                assert {word.arg for word in node.keywords if word.arg} <= set(FIELDS), path
    assert {"server_start", "role_refused", "import", "run_state", "debit", "download"} < set(calls)
