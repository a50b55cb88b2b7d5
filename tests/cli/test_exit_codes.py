"""What the command line ends with, for pipelines."""

from __future__ import annotations

import inspect

import pytest

from core.cli import models
from core.cli.audit import REFUTED
from core.cli.main import EXIT_CODES, command_line, main
from tests.cli.test_cli import last_line


def test_exit_codes_are_those_that_are_documented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(models, "models", stopped)
        codes = [main(["models", "--json"])]
    told = last_line(capsys.readouterr().out)
    assert told["exit"] == 130 and "stopped" in str(told["error"])
    codes += [main(["models"]), main(["fly", "--json"])]
    told = last_line(capsys.readouterr().out)
    assert told["exit"] == 2 and "invalid choice" in str(told["error"])
    # 1 is what an audit of a broken model ends with, see tests/audit
    assert {*codes, REFUTED} == set(EXIT_CODES)


def test_another_command_fits_into_the_parser() -> None:
    assert len(inspect.getsource(command_line).splitlines()) <= 55
