"""Rows of chosen values: every one keeps its condition, its rules and its keys, or none is made."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from core.encoding.layout.layout import Layout
from core.models import shaped_output
from core.models.filling import fill_gaps
from core.models.layout_rows import laid_out
from core.models.saved_model import Fitted, SavedModel
from core.models.shaped_output import Shape, draw_shaped
from core.schema.column import Column, Kind, SchemaError
from core.schema.conditions import ConditionError, parse_conditions, parse_shares
from core.schema.form import Form
from core.schema.schema import Domain, Schema
from tests.encoding.layouts import PERSON, drawn, faults, schema

pytestmark = pytest.mark.slow

RULES = schema().rules


class Ignorant:
    """A model that draws any state; nothing is trained."""

    baseline = None

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.sizes: list[int] = []

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        self.sizes.append(rows)
        return drawn(self.domain, rows, 0 if seed is None else seed)

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def model(*, person: bool = False, rules: tuple = RULES) -> Fitted:
    layout = Layout(schema(rules, PERSON if person else None).domain())
    return laid_out(SavedModel(Ignorant(layout.domain)), layout)


CONDITIONS = {
    "label": (("code=A",), lambda t: t["code"] == "A"),
    "labels": (("code=A|C",), lambda t: t["code"].isin(["A", "C"])),
    "what follows from another": (("label=low",), lambda t: t["code"].isin(["A", "B"])),
    "range": (("net=10..20.5",), lambda t: t["net"].between(10, 20.5)),
    "open end": (("pulse=150..",), lambda t: t["pulse"] >= 150),
    "dates": (
        ("start=1970-02-01..1970-03-31",),
        lambda t: t["start"].between("1970-02-01", "1970-03-31"),
    ),
    "in another case": (("pregnant=TRUE",), lambda t: t["pregnant"]),
    "missing": (("pulse=",), lambda t: t["pulse"].isna() & t["pressure"].isna()),
    "several": (("sex=f", "net=..50", "end=1970-01-01..1970-12-31"), lambda t: t["sex"] == "f"),
}


@pytest.mark.parametrize("person", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize(("where", "holds"), CONDITIONS.values(), ids=CONDITIONS)
def test_every_row_keeps_the_condition_the_rules_and_its_key(where, holds, person) -> None:
    fitted = model(person=person)
    table = draw_shaped(fitted, 120, Shape(where=where), seed=2).table
    assert len(table) == 120 and holds(table).all()
    assert faults(table, fitted.domain) == []
    if not person:
        assert table["who"].is_unique


def test_shown_shares_are_those_of_the_models_output() -> None:
    fitted = model(rules=())
    facts = draw_shaped(fitted, 400, Shape(where=("code=A", "sex=f")), seed=4).facts
    own = fitted.sample(20_000, seed=9)
    rates = [
        (own["code"] == "A").mean(),
        (own["sex"] == "f").mean(),
        ((own["code"] == "A") & (own["sex"] == "f")).mean(),
    ]
    assert [one.text for one in facts.conditions] == ["code=A", "sex=f", "code=A and sex=f"]
    for measured, rate in zip(facts.conditions, rates, strict=True):
        assert measured.drawn == facts.drawn
        low, high = binom.interval(1 - 1e-6, facts.drawn, rate)
        # the rate itself is measured on 20,000 rows
        slack = 5 * facts.drawn * math.sqrt(rate * (1 - rate) / 20_000)
        assert low - slack <= measured.fitting <= high + slack
    assert f"of {facts.drawn:,} rows that the model drew" in facts.words[0]


@pytest.mark.parametrize("person", [False, True], ids=["rows", "people"])
def test_shares_are_as_asked_and_the_rest_as_drawn(person) -> None:
    fitted = model(person=person)
    shape = Shape(share="code:A=.7,B=10%", where=("sex=f",))
    result = draw_shaped(fitted, 333, shape, seed=1)
    counts = result.table["code"].value_counts()
    assert abs(counts["A"] - 0.7 * 333) < 1 and abs(counts["B"] - 0.1 * 333) < 1
    assert (result.table["sex"] == "f").all() and faults(result.table, fitted.domain) == []
    assert [one.rows for one in result.facts.shares] == [counts["A"], counts["B"]]
    assert [one.asked for one in result.facts.shares] == [0.7, 0.1]


def test_shares_of_ranges_make_a_column_even() -> None:
    table = draw_shaped(model(), 100, Shape(share="pulse:..99=.5,100..=.5"), seed=3).table
    assert (table["pulse"] <= 99).sum() == 50 and (table["pulse"] >= 100).sum() == 50


def test_filling_leaves_no_gap_and_keeps_rules_and_full_rows() -> None:
    fitted = model()
    result = draw_shaped(fitted, 300, Shape(where=("net=..60",), fill_missing=True), seed=5)
    assert result.table.notna().all().all() and (result.table["net"] <= 60).all()
    assert faults(result.table, fitted.domain) == []
    assert result.facts.filled > 0 and "were filled from other drawn rows" in result.facts.words[-1]


def test_a_filled_cell_comes_from_the_most_similar_row() -> None:
    columns = (
        Column(name="group", kind=Kind.CATEGORY, categories=("a", "b")),
        Column(name="x", kind=Kind.INTEGER, low=0, high=1, step=1, missing=True, dtype="Int64"),
    )
    domain = Schema(columns=columns).domain()

    class Tied(Ignorant):
        def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
            random = np.random.default_rng(seed)
            group = random.integers(2, size=rows)
            x = pd.Series(group, dtype="Int64").mask(random.random(rows) < 0.4)
            return pd.DataFrame({"group": pd.Series(["a", "b"])[group].to_numpy(), "x": x})

    table = draw_shaped(Tied(domain), 200, Shape(fill_missing=True), seed=1).table
    assert (table["x"] == (table["group"] == "b").astype(int)).all()


def coded() -> Domain:
    """Numbers, dates and labels that say "missing" in several ways."""
    columns = (
        Column(name="age", kind=Kind.INTEGER, low=0, high=90, step=1, dtype="str", missing=True,
               form=Form(absent="?", codes=("N/A", "-99"))),
        Column(name="pay", kind=Kind.NUMBER, low=0, high=9, dtype="float64",
               form=Form(codes=("-9",))),
        Column(name="day", kind=Kind.DATETIME, low=0, high=31 * 86_400, step=86_400, dtype="str",
               date_format="%d.%m.%Y", form=Form(codes=("unknown",))),
        Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "n/a"),
               form=Form(absent="", codes=("n/a",))),
    )  # fmt: skip
    return Schema(columns=columns).domain()


GAPS = {"age": {"N/A", "-99"}, "pay": {-9.0}, "day": {"unknown"}, "ward": {"n/a"}}


def test_codes_for_missing_are_gaps_that_are_filled() -> None:
    """They are values in the frame: a file without gaps must have none of them."""
    domain = coded()
    plain = drawn(domain, 400, 1)
    assert all(gaps <= set(plain[name]) for name, gaps in GAPS.items())
    filled, count = fill_gaps(plain, domain, np.random.default_rng(1))
    gaps = {name: plain[name].isna() | plain[name].isin(gaps) for name, gaps in GAPS.items()}
    assert count == sum(int(gap.sum()) for gap in gaps.values())
    for name, gap in gaps.items():
        assert filled[name][~gap].tolist() == plain[name][~gap].tolist()
    result = draw_shaped(Ignorant(domain), 300, Shape(fill_missing=True), seed=5)
    for name, spellings in GAPS.items():
        assert not (result.table[name].isna() | result.table[name].isin(spellings)).any()


@pytest.mark.parametrize("name", GAPS)
def test_missing_is_asked_for_however_it_is_written(name: str) -> None:
    table = draw_shaped(Ignorant(coded()), 60, Shape(where=(f"{name}=",)), seed=3).table
    assert (table[name].isna() | table[name].isin(GAPS[name])).all()
    assert GAPS[name] <= set(table[name])


def test_days_follow_the_offset_of_the_written_file() -> None:
    """01:00 at +02:00 is yesterday in UTC."""
    column = Column(
        name="at", kind=Kind.DATETIME, low=0, high=20 * 86_400, step=3_600, dtype="str",
        date_format="%Y-%m-%dT%H:%M:%S%z", form=Form(offset="+02:00"),
    )  # fmt: skip
    domain = Schema(columns=(column,)).domain()
    table = draw_shaped(Ignorant(domain), 99, Shape(where=("at=1970-01-05..1970-01-06",))).table
    assert set(table["at"].str[:10]) == {"1970-01-05", "1970-01-06"}
    assert table["at"].str.endswith("+02:00").all() and (table["at"].str[11:13] < "02").any()
    (one,) = parse_conditions(["at=1970-01-05T01:00:00+02:00..1970-01-05T01:00"], domain)
    assert one.low == one.high == 4 * 86_400 - 3_600
    with pytest.raises(ConditionError, match="lie in 1970-01-01 02:00:00 to 1970-01-21 02:00:00"):
        parse_conditions(["at=1970-01-01T01:00"], domain)


def test_rows_of_people_are_left_out_rather_than_filled() -> None:
    fitted = model(person=True, rules=RULES[:1])
    result = draw_shaped(fitted, 150, Shape(fill_missing=True), seed=5)
    assert result.table.notna().all().all() and faults(result.table, fitted.domain) == []
    assert result.facts.filled == 0 and result.facts.left_out > 0
    assert "were left out" in result.facts.words[-1]


def test_what_is_too_rare_is_refused_with_the_numbers(monkeypatch) -> None:
    monkeypatch.setattr(shaped_output, "MOST_DRAWN", 30_000)
    fitted = Ignorant(schema((), None).domain())
    where = ("code=A", "sex=f", "pulse=77", "pressure=99", "label=low")
    with pytest.raises(ConditionError, match=r"Of 30,000 drawn rows \d fit; 500 are needed"):
        draw_shaped(fitted, 500, Shape(where=where), seed=1)
    assert sum(fitted.sizes) == 30_000
    with pytest.raises(ConditionError, match="fit with code=B; 100 are needed"):
        draw_shaped(fitted, 100, Shape(where=("code=A",), share="code:B=1"), seed=1)


IMPOSSIBLE = {
    "no such column": ("nowhere=1", "called 'nowhere'"),
    "no such label": ("code=Z", "no declared value of 'code'. There are: A, B, C."),
    "outside": ("net=200..300", "lie in 0 to 100"),
    "outside dates": ("start=2024-01-01..", "lie in 1970-01-01 to 1971-01-01"),
    "the wrong way round": ("net=20..10", "ends before it begins"),
    "no number": ("net=many", "'many' is not a number"),
    "no date": ("start=soon", "is not a date"),
    "never missing": ("sex=", "never missing"),
    "made up": ("who=P00001", "made up"),
    "no condition": ("code", "is no condition"),
}


@pytest.mark.parametrize(("text", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_be_is_refused_before_a_row_is_drawn(text: str, words: str) -> None:
    fitted = Ignorant(schema((), None).domain())
    with pytest.raises(SchemaError, match=words.replace(".", r"\.")):
        draw_shaped(fitted, 5, Shape(where=(text,)))
    assert fitted.sizes == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("code:A=.7,B=.5", "add up to 1 at most, not 1.2"),
        ("code:A=.2,A|B=.2", "names a value twice"),
        ("net:0..10=.5,10..20=.5", "names a value twice"),
        ("code:A", "are no shares"),
        ("code:Z=1", "no declared value"),
        ("who:P1=1", "made up"),
    ],
)
def test_shares_that_cannot_be_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        parse_shares(text, schema((), None).domain())


def test_two_conditions_of_one_column_must_leave_something() -> None:
    domain = schema((), None).domain()
    with pytest.raises(ConditionError, match="No value keeps both"):
        parse_conditions(["code=A", "code=B"], domain)
    assert len(parse_conditions(["net=..50", "net=40.."], domain)) == 2


def test_shares_of_a_hidden_column_are_refused() -> None:
    domain = schema((), None).model_copy(update={"sensitive": {"g": ("sex",)}}).domain()
    with pytest.raises(ConditionError, match="is hidden"):
        draw_shaped(Ignorant(domain), 5, Shape(share="sex:f=1"))


def test_names_and_labels_may_hold_the_signs() -> None:
    columns = (
        Column(name="a", kind=Kind.CATEGORY, categories=("=", "b=c", "x|y", "d, e")),
        Column(name="a=b", kind=Kind.CATEGORY, categories=("c", "2..3")),
    )
    domain = Schema(columns=columns).domain()
    where = ["a==", "a=b=c", "a=x|y", "a=b=2..3"]
    labels = [parse_conditions([text], domain)[0] for text in where]
    assert [(one.column.name, one.labels) for one in labels] == [
        ("a", ("=",)), ("a=b", ("c",)), ("a", ("x|y",)), ("a=b", ("2..3",)),
    ]  # fmt: skip
    shares = parse_shares("a:d, e=.25,x|y=.5", domain)
    assert [(one.labels, share) for one, share in shares.parts] == [
        (("d, e",), 0.25), (("x|y",), 0.5),
    ]  # fmt: skip


def test_one_seed_gives_the_same_rows() -> None:
    fitted = model()
    shape = Shape(where=("sex=f",), share="code:A=.5,B=.5", fill_missing=True)
    one, again, other = (draw_shaped(fitted, 40, shape, seed=seed).table for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)
    pd.testing.assert_frame_equal(
        draw_shaped(fitted, 40, Shape(), seed=7).table, fitted.sample(40, seed=7)
    )


def test_more_rows_than_a_pattern_has_keys_are_refused() -> None:
    columns = (
        Column(name="id", kind=Kind.IDENTIFIER, pattern="#"),
        Column(name="a", kind=Kind.CATEGORY, categories=("x", "y")),
    )
    domain = Schema(columns=columns).domain()
    with pytest.raises(SchemaError, match="10 different values"):
        draw_shaped(Ignorant(domain), 11, Shape(where=("a=x",)))
