"""Schemas on the command line: like last time's, and what a file may hold."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from core.cli.main import main
from core.proposing.propose import infer_schema
from core.reading.raw_cells import raw_frame
from core.schema.column import Kind
from core.schema.schema import Schema
from core.services.sample_tables import sample_table
from core.services.synthesis.options import options_of
from core.services.synthesis.schema_options import with_schema
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


def test_a_text_file_is_read_as_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not said is proposed; both go into the schema, by which later files are read."""
    table, out = tmp_path / "towns.csv", tmp_path / "s.json"
    table.write_bytes(b"town;n\n" + "Köln;1\nZürich;2\n".encode("cp1252") * 30)
    command = ["schema", str(table), "--out", str(out)]
    for encoding, town in ((None, "Köln"), ("cp1251", "Kцln")):
        asked = [] if encoding is None else ["--encoding", encoding]
        assert main([*command, *asked]) == 0
        schema = Schema.model_validate_json(out.read_bytes())
        assert (schema.delimiter, schema.encoding) == (";", encoding or "cp1252")
        assert town in (schema["town"].categories or ())
    assert main([*command, "--delimiter", "bar"]) == 0  # the header has none
    assert Schema.model_validate_json(out.read_bytes()).delimiter == ";"
    capsys.readouterr()
    for encoding, words in (("utf 8", "takes a name such as"), ("x-1", "not supported")):
        assert main([*command, "--encoding", encoding]) == 2
        assert words in capsys.readouterr().err


def test_cells_that_do_not_read_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "s.json"
    rows = [f"{i},{i % 5}" for i in range(100)]
    table.write_text("\n".join(["cost,n", *rows]))
    assert main(["schema", str(table), "--out", str(out)]) == 0
    schema = Schema.model_validate_json(out.read_bytes())
    cost = schema["cost"].model_copy(update={"kind": Kind.INTEGER, "low": 0, "high": 99, "step": 1})
    out.write_text(schema.replace(cost).model_dump_json())
    table.write_text("\n".join(["cost,n", *rows[:97], "unpaid,1", "?,1", "120,1"]))
    capsys.readouterr()
    command = ["plan", str(table), "--model", "pearl", "--epsilon", "1", "--schema", str(out)]
    assert main(command) == 0
    spoken = capsys.readouterr().err
    assert "'cost': 1 cell does not read as declared and would become the lowest value." in spoken
    assert "2 cells do not fit this declaration" in spoken
    like = ["schema", str(table), "--out", str(tmp_path / "n.json"), "--like", str(out)]
    assert main(like) == 0
    assert "1 cell does not read as declared" in capsys.readouterr().err


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


def test_no_cell_is_said_not_to_fit_a_list_that_is_learned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = pd.DataFrame({"town": ["Paris"] * 590 + [f"village {i}" for i in range(10)]})
    for wanted, said in (({}, False), ({"declare_public": True}, True)):
        asked = {"epsilon": 1.0, "model": "pearl", **wanted}
        options = options_of(asked, table="towns", declared=False)
        with_schema(options, raw_frame(rows), infer_schema(rows))
        assert ("do not fit" in capsys.readouterr().err) == said
