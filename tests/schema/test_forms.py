"""How cells are written: what is recognised, what is left alone, what may be declared."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from core.encoding.codec import Codec
from core.encoding.layout.layout import Layout
from core.importing.apart import Request, read_apart
from core.privacy.discovery.open_domain import as_learned, without_proposals
from core.privacy.mechanisms.histograms import bins_of
from core.proposing.kinds import infer_tally
from core.proposing.misfits import misfits
from core.proposing.propose import infer_schema
from core.reading.tally import Tally
from core.reading.typed_cells import typed_rows
from core.schema.column import Column, Kind, Provenance, SchemaColumn, SchemaError
from core.schema.form import MOST_CODES, FileForm, Form
from core.schema.labels import code_indices, to_numbers
from core.schema.rules.rules import parse_rule
from core.schema.schema import Domain, Schema
from core.schema.surrogates import shape_of
from core.services.schema_grid import as_kind, grid_of, schema_of
from core.writing.tables import as_written, write_csv_parts
from tests.encoding.vectors import collapse
from tests.reading.files import read

CODED = Column(
    name="age", kind=Kind.INTEGER, low=0, high=90, step=1, dtype="str", missing=True,
    form=Form(absent="?", codes=("N/A", "-99")),
)  # fmt: skip
CELLS = pd.Series(["30", "N/A", None, "41", "-99", "30"], name="age", dtype="str")


def column_of(text: str, **more: str) -> tuple[pd.Series, Form]:
    """The column `a` of semicolon text, and its form."""
    result = read(text.encode())
    return result.frame["a"], result.form.columns.get("a", Form())


def rows(*cells: str) -> str:
    return "a;b\n" + "".join(f"{cell};x\n" for cell in cells)


@pytest.mark.parametrize(
    "cells",
    [
        ("1,234", "5,678"),  # thousands or fractions: nobody can tell
        ("1.234.567", "7.654.321"),  # versions or addresses: all have as many groups
        ("0049 30 1", "0049 40 2"),
        ("123 456 789", "987 654 321"),  # telephone numbers: all are as long
        ("$5", "5 €"),  # two units are two meanings
        ("$5", "none of it"),
        ("1 234", "1235"),  # grouped and not
        ("12 34", "1 2345"),
        ("EURO 5", "EURO 6"),
        ("$007", "$010"),
        ("5%%", "6%%"),
    ],
)
def test_what_could_mean_something_else_stays_text(cells: tuple[str, ...]) -> None:
    series, form = column_of(rows(*cells))
    assert series.tolist() == list(cells) and form == Form()


@pytest.mark.parametrize(
    ("cells", "values", "form"),
    [
        (("$1,234", "$987"), [1234, 987], Form(prefix="$", thousands=",")),
        (("$-5.50", "$6.25"), [-5.5, 6.25], Form(prefix="$", inner_sign=True, decimal_places=2)),
        (("-$5.50", "$6.25"), [-5.5, 6.25], Form(prefix="$", decimal_places=2)),
        (("12 %", "7 %"), [12, 7], Form(suffix=" %")),
        (("1.234 €", "3,5 €", "12,25 €"), [1234, 3.5, 12.25],
         Form(decimal=",", thousands=".", suffix=" €", trimmed=True)),
        (("1.234.567", "89", "1.234"), [1234567, 89, 1234], Form(decimal=",", thousands=".")),
        (("CHF 1'234.50", "CHF 7.00"), [1234.5, 7.0],
         Form(prefix="CHF ", thousands="'", decimal_places=2)),
        (("9\u202f007\u202f199,5 €", "3,5 €"), [9007199.5, 3.5],
         Form(decimal=",", thousands="\u202f", suffix=" €", decimal_places=1)),
    ],
)  # fmt: skip
def test_numbers_are_read_with_their_form(cells, values, form) -> None:
    series, seen = column_of(rows(*cells))
    assert series.tolist() == values
    assert seen == form
    assert [seen.number(str(value)) for value in values] == list(cells)


@pytest.mark.parametrize(
    ("cells", "trimmed"),
    [
        (("99999", "1e+05", "100001"), True),  # as R writes whole numbers
        (("3.86", "1", "4.440892e-16"), True),
        (("3.86", "1.0", "4.440892e-16"), False),
        (("5", "1e+30"), False),  # too many digits to write
    ],
)
def test_whole_numbers_stay_whole_beside_an_exponent(cells: tuple[str, ...], trimmed: bool) -> None:
    series, form = column_of(rows(*cells))
    assert series.tolist() == [float(cell) for cell in cells] and form == Form(trimmed=trimmed)
    if trimmed:
        assert form.number("100001.0") == "100001" and form.number("3.86") == "3.86"


def test_the_form_survives_the_process_that_reads_files(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(rows("1.234,50 €", "7,00 €", "?"), encoding="utf-8")
    raw = read_apart(Request(path=path), tmp_path / "rows.parquet")
    expected = Form(decimal=",", thousands=".", suffix=" €", decimal_places=2, absent="?")
    assert raw.schema is not None
    assert raw.schema.form == FileForm(delimiter=";", columns={"a": expected})


def test_a_second_marker_counts_from_ten_rows(tmp_path: Path) -> None:
    """A spelling that few rows have is no public form; those rows say it as most do."""
    for few, codes in ((9, ()), (10, ("N/A",))):
        cells = [*map(str, range(40)), *["?"] * 20, *["N/A"] * few]
        series, form = column_of(rows(*cells))
        assert (form.absent, form.codes) == ("?", codes)
        assert int(series.isna().sum()) == 20 + (few if not codes else 0)


def test_no_more_spellings_become_codes_than_a_form_holds(tmp_path: Path) -> None:
    """ "null" alone can be written in sixteen ways."""
    words = ["".join(word) for word in product(*((c, c.upper()) for c in "null"))] + ["na", "nA"]
    file = tmp_path / "rows.csv"
    file.write_text("a\n" + "".join(f"{word}\n" * 10 for word in words) + "?\n" * 20 + "5\n")
    raw = read_apart(Request(path=file), tmp_path / "rows.parquet")
    assert raw.schema is not None and raw.schema["a"].form is not None
    form, cells = raw.schema["a"].form, typed_rows(pq.read_table(raw.path), raw.schema.columns)
    assert (form.absent, len(form.codes)) == ("?", MOST_CODES)
    assert int(cells["a"].isna().sum()) == 20 + 10 * (len(words) - MOST_CODES)


def test_words_for_flags_are_no_numbers_beside_numbers() -> None:
    """A code FALSE takes no zero with it, and in a learned column, without codes, it is missing."""
    cells = pd.Series(["0", "FALSE", "TRUE", "3"], name="age", dtype="str")
    column = CODED.model_copy(update={"form": Form(codes=("FALSE",)), "dtype": "Int64"})
    assert code_indices(cells, column).tolist() == [-1, 0, -1, -1]
    for one in (column, column.model_copy(update={"form": None})):
        assert np.isnan(to_numbers(cells, one)).tolist() == [False, True, True, False]
        read = typed_rows(pa.table({"age": cells.to_list()}), [one])["age"]
        assert to_numbers(read, one)[[0, 3]].tolist() == [0.0, 3.0]
        assert read.isna().tolist()[2]
    flags = Column(name="age", kind=Kind.BOOLEAN, dtype="bool", categories=("False", "True"))
    rows = pa.table({"age": cells[:3].to_list()})
    assert typed_rows(rows, [flags])["age"].tolist() == [False, False, True]


def test_codes_are_states_of_their_own_and_come_back() -> None:
    domain = Domain(columns=(CODED,))
    codec = Codec(domain)
    (block,) = codec.blocks
    assert block.states == ("value", "missing", "missing: N/A", "missing: -99")
    codes = codec.encode(CELLS.to_frame())
    assert codes.states[:, 0].tolist() == [0, 2, 1, 0, 3, 0]
    pd.testing.assert_frame_equal(codec.decode_codes(codes), CELLS.to_frame())
    again = collapse(codec, codec.expand(codes).double().numpy())
    pd.testing.assert_frame_equal(codec.decode_codes(again), CELLS.to_frame())
    assert np.isnan(to_numbers(CELLS, CODED)).tolist() == [False, True, True, False, True, False]
    assert misfits(Tally.of(CELLS), CODED) == 0
    # pictures for outside have one bin for all of them
    bins = bins_of(block)
    assert bins.index(codes.to("cpu")).tolist()[1:3] == [bins.size - 1] * 2 and bins.missing


def test_codes_in_columns_of_numbers_are_compared_as_numbers() -> None:
    column = CODED.model_copy(
        update={"dtype": "float64", "missing": False, "form": Form(codes=("-99",))}
    )
    cells = pd.Series([30.0, -99.0, 41.0], name="age")
    codec = Codec(Domain(columns=(column,)))
    pd.testing.assert_frame_equal(
        codec.decode_codes(codec.encode(cells.to_frame())), cells.to_frame()
    )
    whole = column.model_copy(update={"dtype": "int64"})
    codec = Codec(Domain(columns=(whole,)))
    back = codec.decode_codes(codec.encode(cells.astype("int64").to_frame()))["age"]
    assert back.dtype == "int64" and back.tolist() == [30, -99, 41]


def test_codes_survive_the_layout_of_people() -> None:
    frame = pd.DataFrame({"who": [1, 1, 2, 3, 3, 4] * 20, "age": [30, -99, 41, -99, 50, 60] * 20})
    schema = infer_schema(frame)
    schema = schema.replace(as_kind(Tally.of(frame["who"]), schema["who"], Kind.IDENTIFIER))
    age = SchemaColumn(
        name="age", kind=Kind.INTEGER, low=0, high=90, step=1, dtype="int64",
        form=Form(codes=("-99",)),
    )  # fmt: skip
    schema = Schema.model_validate(
        schema.replace(age).model_dump() | {"person": {"columns": ["who"], "rows": 2}}
    )
    layout = Layout(schema.domain())
    seen = frame[["age"]].assign(**{layout.domain.columns[-1].name: "1"})
    back = layout.from_model(seen[list(layout.domain.modelled[i].name for i in (0, 1))], 0, 60)
    assert set(back["age"]) == {30, -99, 41, 50, 60} and back["age"].dtype == "int64"


def test_no_rule_computes_with_codes() -> None:
    pair = {"b": Column(name="b", kind=Kind.INTEGER, low=0, high=90, step=1, dtype="int64")}
    schema = Schema(columns=(CODED, *pair.values()), rules=(parse_rule("age <= b"),))
    with pytest.raises(SchemaError, match=r"codes for missing values .*N/A, -99.* Remove"):
        schema.domain()


def test_codes_are_edited_in_a_schema_file() -> None:
    series = pd.Series([*range(18, 90), *[999] * 12] * 2, name="age")
    stored = json.loads(Schema(columns=(infer_tally(Tally.of(series), "age"),)).model_dump_json())
    stored["columns"][0] |= {"high": 90, "form": {"codes": ["999"], "absent": "?"}}
    schema = Schema.model_validate_json(json.dumps(stored))
    codec = Codec(schema.domain())
    back = codec.decode_codes(codec.encode(series.to_frame()))["age"]
    assert back.tolist() == series.tolist()  # above the bound, and not clipped to it
    stored["columns"][0]["form"]["codes"] = ["=HYPERLINK(1)"]
    with pytest.raises(ValidationError, match="formula"):
        Schema.model_validate_json(json.dumps(stored))


def test_only_a_lonely_negative_code_of_many_rows_is_proposed() -> None:
    ages = list(range(18, 90)) * 2
    taken = infer_tally(Tally.of(pd.Series([*ages, *[-99] * 10])), "age")
    assert taken.codes == ("-99",) and taken.low == 0.0 and "-99" in taken.note
    for others in ([-99] * 9, [-98] * 10, [*[-99] * 10, -3], [999] * 10):
        assert infer_tally(Tally.of(pd.Series([*ages, *others])), "age").codes == ()


def test_editing_codes_proposes_new_bounds() -> None:
    series = pd.Series([*range(18, 90), *[999] * 12] * 2, name="age")
    schema = Schema(columns=(infer_tally(Tally.of(series), "age"),))
    assert schema["age"].high == 999.0
    grid = grid_of(schema)
    grid.loc[0, ["absent", "codes"]] = ["n.a.", "999, 888"]
    column = schema_of(grid, schema)["age"]
    assert column.form == Form(absent="n.a.", codes=("999", "888"))
    anew = infer_tally(Tally.of(series), "age", column.form)
    assert (anew.high, anew.codes) == (100.0, ("999", "888"))
    assert anew.provenance is Provenance.PROPOSED
    again = grid_of(Schema(columns=(anew,)))
    assert again.loc[0, ["absent", "codes"]].tolist() == ["n.a.", "999, 888"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [("=1+1", "formula"), ("@x", "formula"), ("a\tb", "one line"), ("x" * 65, "64")],
)
def test_a_code_that_cannot_be_is_refused(cell: str, words: str) -> None:
    schema = Schema(columns=(CODED,))
    for name in ("absent", "codes"):
        grid = grid_of(schema)
        grid.loc[0, name] = cell
        with pytest.raises(SchemaError, match=words):
            schema_of(grid, schema)
    assert Form(absent="--").absent == "--" and Form(codes=("-9.5",)).codes  # nobody runs these


def test_a_list_has_no_codes_beside_its_labels() -> None:
    schema = Schema(columns=(Column(name="c", kind=Kind.CATEGORY, categories=("a", "b")),))
    grid = grid_of(schema)
    grid.loc[0, "codes"] = "a"
    with pytest.raises(SchemaError, match="one of its categories"):
        schema_of(grid, schema)
    grid.loc[0, ["codes", "absent"]] = ["", "none"]
    assert schema_of(grid, schema)["c"].form == Form(absent="none")


def test_large_whole_numbers_are_kept_or_refused() -> None:
    series = pd.Series([2**53 + 1 + i for i in range(30)], name="big")
    column = infer_tally(Tally.of(series), "big")
    assert column.kind is Kind.IDENTIFIER
    with pytest.raises(SchemaError, match=r"beyond 2⁵³.*Nothing was changed"):
        as_kind(Tally.of(series), column, Kind.INTEGER)
    listed = as_kind(Tally.of(pd.concat([series] * 10)), column, Kind.CATEGORY)
    codec = Codec(Domain(columns=(listed,)))
    back = codec.decode_codes(codec.encode(series.to_frame()))["big"]
    assert back.tolist() == series.tolist()


def test_learning_forgets_codes_that_rows_proposed() -> None:
    proposed = SchemaColumn(**CODED.fields()).as_proposed()
    bare = without_proposals(as_learned(Schema(columns=(proposed,))))["age"]
    assert bare.codes == () and bare.form is not None and bare.form.absent == "?"


def test_a_form_changes_no_provenance_and_comes_back_from_json() -> None:
    column = infer_tally(Tally.of(pd.Series([*range(50)] * 4)), "x")
    formed = column.model_copy(update={"form": Form(prefix="$")})
    assert formed.domain_digest == column.domain_digest
    assert formed.provenance is Provenance.PROPOSED
    schema = Schema(columns=(formed,), delimiter=";")
    assert Schema.model_validate_json(schema.model_dump_json()) == schema
    with pytest.raises(ValidationError, match="currency"):
        Form(prefix="=cmd ")


def test_escaping_leaves_numbers_alone_and_reaches_text(tmp_path: Path) -> None:
    schema = Schema(
        columns=(
            Column(name="pay", kind=Kind.NUMBER, low=-9, high=9, dtype="float64",
                   form=Form(prefix="$", decimal=",", decimal_places=2)),
            Column(name="=who", kind=Kind.CATEGORY, categories=("=1+1", "b"), missing=True,
                   form=Form(absent="?")),
        )
    )  # fmt: skip
    frame = pd.DataFrame({"pay": [-5.0, 1.5], "=who": pd.Series(["=1+1", None], dtype="str")})
    write_csv_parts([frame], tmp_path / "t.csv", schema=schema, escape_formulas=True)
    assert (tmp_path / "t.csv").read_text() == 'pay,\'=who\n"-$5,00",\'=1+1\n"$1,50",?\n'
    plain = as_written(frame, schema)
    assert plain["=who"].tolist() == ["=1+1", "?"]


@pytest.mark.parametrize(
    ("labels", "pattern"),
    [
        (["A7", "B9", "C1"], None),  # 260 values are too few for a larger table
        (["AB-1234", "XY-0077"], "@@-####"),
        (["P-0001", "P-9999"], "P-####"),
        (["1234567", "0000000"], "#######"),
        (["7F3A", "B0BE", "0A01"], "****"),
        (["ab1234", "xy9876"], "aa####"),
        (["#12345", "#99999"], None),  # the sign stands for a digit in patterns
        (["ä12345", "ö99999"], None),
        (["12345", "123456"], None),
        ([], None),
    ],
)
def test_made_up_keys_get_the_shape_that_all_share(labels: list[str], pattern: str | None) -> None:
    assert shape_of(labels) == pattern


def test_dates_of_several_offsets_are_written_in_utc() -> None:
    cells = ["2024-01-01T00:00:00+02:00", "2024-07-01T00:00:00+01:00"] * 15
    result = read(("a;b\n" + "".join(f"{c};{i}\n" for i, c in enumerate(cells))).encode())
    column = infer_schema(result.frame, result.form)["a"]
    assert column.form == Form(offset="+00:00") and "UTC" in column.note
    codec = Codec(Domain(columns=(column,)))
    back = codec.decode_codes(codec.encode(result.frame[["a"]]))["a"]
    assert back.tolist()[:2] == ["2023-12-31T22:00:00+00:00", "2024-06-30T23:00:00+00:00"]
    assert pd.to_datetime(back).equals(pd.to_datetime(pd.Series(cells, name="a"), utc=True))
