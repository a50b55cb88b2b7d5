"""Schemas on the command line: like last time's, and what a file may hold."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from core.cli.main import main
from core.table.sample import sample_table
from core.table.schema import Schema
from tests.cli.test_cli import last_line


def test_a_new_file_is_declared_as_last_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    july, august = tmp_path / "july.csv", tmp_path / "august.csv"
    sample_table(200).to_csv(july, index=False)
    sample_table(300).tail(100).assign(shift="day").to_csv(august, index=False)
    assert main(["schema", str(july), "--out", str(tmp_path / "july.json")]) == 0
    schema = Schema.model_validate_json((tmp_path / "july.json").read_bytes())
    schema = schema.replace(schema["age"].model_copy(update={"high": 120.0}))
    (tmp_path / "july.json").write_text(schema.model_dump_json())
    capsys.readouterr()
    command = ["schema", str(august), "--like", str(tmp_path / "july.json"), "--json"]
    assert main([*command, "--out", str(tmp_path / "august.json")]) == 0
    spoken = capsys.readouterr()
    assert "like july.json: 12 columns as last time; 1 is new: shift." in spoken.err
    assert "note: `age`: as last time, not as proposed: high" in spoken.err
    assert last_line(spoken.out)["like"]["new"] == ["shift"]  # type: ignore[index]
    taken = Schema.model_validate_json((tmp_path / "august.json").read_bytes())
    assert taken["age"].high == 120.0 and taken.names[-1] == "shift"


def test_the_json_schema_is_printed_or_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", "--json-schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert main(["schema", "--json-schema", "--out", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text()) == printed
    assert main(["schema", "--json-schema", "--json"]) == 0
    jsonschema.Draft202012Validator.check_schema(printed)
    capsys.readouterr()
    assert main(["schema"]) == 2
    assert "ask for --json-schema" in capsys.readouterr().err
    assert main(["schema", "people.csv"]) == 2
    assert "say with --out FILE.json where" in capsys.readouterr().err
