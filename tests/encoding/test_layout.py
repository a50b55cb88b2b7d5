"""Rules hold in every synthetic row, people come out as people, and real rows come back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.encoding.codec import Codec
from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.schema.column import DomainColumn, Kind, SchemaError
from core.schema.person import Person
from core.schema.rules import chains
from core.schema.rules.rules import Combinations, Determines, parse_rule
from core.schema.schema import Domain
from tests.encoding import layouts
from tests.encoding.layouts import (
    ORDERED,
    PERSON,
    STAY,
    TOTAL,
    domains,
    drawn,
    faults,
    made,
    schema,
)

pytestmark = pytest.mark.slow


@settings(max_examples=25, deadline=None)
@given(domain=domains(), seed=st.integers(0, 10**6), rows=st.sampled_from([1, 60]))
def test_every_synthetic_row_keeps_every_rule(domain: Domain, seed: int, rows: int) -> None:
    assert faults(made(domain, rows, seed), domain) == []


@settings(max_examples=12, deadline=None)
@given(domain=domains(), seed=st.integers(0, 10**6))
def test_a_table_that_keeps_its_rules_comes_back_as_it_was(domain: Domain, seed: int) -> None:
    """Through the layout and the codec; who a row is of is the layout's own to make up."""
    domain = domain.model_copy(update={"person": None})
    table, layout = made(domain, 40, seed), Layout(domain)
    codec = Codec(layout.domain)
    seen = layout.to_model(table)
    again = layout.from_model(codec.decode_codes(codec.encode(seen)), 0)
    for column in domain.modelled:
        if column.kind.numeric and column.step == 0:
            x, y = (f[column.name].to_numpy(float) for f in (table, again))
            assert np.allclose(x, y, rtol=0, atol=1e-6, equal_nan=True)
        else:
            pd.testing.assert_series_equal(table[column.name], again[column.name])


@settings(max_examples=8, deadline=None)
@given(domain=domains(), seed=st.integers(0, 10**6))
def test_rows_that_break_every_rule_are_moved_inside(domain: Domain, seed: int) -> None:
    layout = Layout(domain)
    bare = domain.model_copy(update={"rules": (), "person": None})
    wrong = drawn(bare, 60, seed).assign(who=[f"P{i // 2}" for i in range(60)])
    seen = layout.to_model(wrong, layouts.people_of(wrong))
    codec = Codec(layout.domain)
    assert faults(layout.from_model(codec.decode_codes(codec.encode(seen)), 0), domain) == []


def test_what_is_missing_together_is_so_in_a_single_row_too() -> None:
    domain = schema((layouts.TOGETHER,)).domain()
    layout = Layout(domain)
    for seed in range(20):
        assert faults(layout.from_model(drawn(layout.domain, 1, seed), 0), domain) == []


def test_several_key_columns_of_any_kind_identify_a_person() -> None:
    person = Person(columns=("net", "code", "who"), rows=3)
    open_schema = schema((), person).replace(schema()["who"].model_copy(update={"source": "drop"}))
    domain = open_schema.domain()
    assert not {"net", "code", "who"} & {column.name for column in domain.modelled}
    table = made(domain, 60)
    assert list(table.columns) == [column.name for column in domain.columns]
    assert table.groupby(["net", "code"]).ngroups == table["net"].nunique() < 60


def test_breaches_are_counted_by_rule() -> None:
    domain = schema((ORDERED, STAY, TOTAL)).domain()
    table = made(domain, 50)
    assert set(count_violations(table, domain).values()) == {0}
    table.loc[:4, "total"] += 1
    assert count_violations(table, domain)[TOTAL.text] == 5


def test_a_table_without_rules_or_persons_is_laid_out_as_it_is() -> None:
    domain = schema(()).domain()
    layout, table = Layout(domain), drawn(domain, 5, 0)
    assert layout.domain is domain
    assert layout.to_model(table) is table and layout.from_model(table, 1) is table


def test_a_made_up_cell_is_missing_where_its_row_says_so() -> None:
    columns = [
        DomainColumn(name="case", kind=Kind.IDENTIFIER, missing=True, absent=0.4),
        DomainColumn(name="comment", kind=Kind.TEXT, missing=True, absent=1.0),
        DomainColumn(name="id", kind=Kind.IDENTIFIER),
        DomainColumn(name="again", kind=Kind.BOOLEAN, categories=("yes", "no")),
    ]
    layout = Layout(Domain(columns=tuple(columns)))
    again = pd.Series(["yes", "no", "no", "yes", "no"], dtype="str")
    cases = pd.Series(["C17", None, None, "C4", None], dtype="str")
    real = pd.DataFrame({"case": cases, "again": again})
    assert set(layout.reads) == {"case", "again"}
    codec = Codec(layout.domain)
    rows = codec.decode_codes(codec.encode(layout.to_model(real[list(layout.reads)])))
    made_up = layout.from_model(rows, 0)
    assert list(made_up.columns) == ["case", "comment", "id", "again"]
    assert (made_up["case"].isna() == made_up["again"].eq("no")).all()
    assert made_up["comment"].isna().all() and made_up["id"].notna().all()
    assert not set(made_up["case"].dropna()) & {"C17", "C4"}


def test_models_see_a_stay_and_no_end() -> None:
    names = [column.name for column in Layout(schema(missing=False).domain()).domain.columns]
    assert "stay" in names and not {"end", "label", "total", "sex", "who"} & set(names)


@settings(max_examples=20, deadline=None)
@given(domain=domains(), seed=st.integers(0, 10**6))
def test_a_rows_encoding_hangs_on_no_other_row(domain: Domain, seed: int) -> None:
    """Nothing is drawn from other real rows."""
    layout = Layout(domain.model_copy(update={"person": None}))
    bare = layout.output.model_copy(update={"rules": ()})
    frame = drawn(bare, 30, seed)
    whole = layout.to_model(frame)
    for i in (0, 7, 29):
        alone = layout.to_model(frame.iloc[[i]])
        pd.testing.assert_frame_equal(alone, whole.iloc[[i]].reset_index(drop=True))


def tied(*texts: str, target: str | None = None) -> Domain:
    return schema(tuple(map(parse_rule, texts))).model_copy(update={"target": target}).domain()


def test_a_consequence_gets_a_value_of_a_row_that_keeps_it() -> None:
    domain = tied("if code = A then pulse >= 120")
    frame = drawn(domain, 400, 1)
    table = Layout(domain).from_model(frame, 1)
    assert table["code"].equals(frame["code"]) and faults(table, domain) == []
    broken = ~((frame["code"] != "A") | (frame["pulse"] >= 120))
    kept = set(frame["pulse"][(frame["code"] == "A") & (frame["pulse"] >= 120)])
    assert broken.sum() > 20 and set(table["pulse"][broken]) <= kept
    assert table["pulse"][~broken].equals(frame["pulse"][~broken])
    alone = Layout(domain).from_model(frame[broken].head(1), 1)
    assert alone["pulse"].tolist() == [120]  # the nearest, where no other row has one


def test_the_target_stays_where_the_condition_can_change() -> None:
    domain = tied("if code = A then pulse >= 120", target="pulse")
    frame = drawn(domain, 400, 1)
    table = Layout(domain).from_model(frame, 1)
    assert table["pulse"].equals(frame["pulse"]) and faults(table, domain) == []


def test_what_rules_compare_numbers_with_cuts_their_cells() -> None:
    domain = tied(
        "if pulse < 60 then code = A",
        "if pulse <= 99 then code != C",
        "if net = 20 then code = B",
        "if start > 1970-03-01 then grown = N",
    )
    cuts = {c.name: c.cuts for c in Layout(domain).domain.columns if c.cuts}
    assert cuts == {"pulse": (60, 100), "net": (20, 20.01), "start": (60 * layouts.DAY,)}
    assert not any(column.cuts for column in domain.columns)


def test_a_rule_about_what_is_looked_up_changes_its_source() -> None:
    rules = (layouts.LOOKED_UP, parse_rule("if label = high then pulse is missing"))
    domain = schema(rules).domain()
    table = Layout(domain).from_model(drawn(Layout(domain).domain, 300, 2), 2)
    assert faults(table, domain) == [] and set(table["label"].dropna()) == {"low", "high"}


def test_a_number_follows_from_a_code() -> None:
    rule = Determines(source="code", result="net", mapping={"A": "2.5", "B": "17", "C": "99.99"})
    domain = schema((rule, parse_rule("if net > 50 then pulse > 100")), missing=False).domain()
    layout = Layout(domain)
    assert "net" not in {column.name for column in layout.domain.columns}
    table = layout.from_model(drawn(layout.domain, 300, 3), 3)
    assert faults(table, domain) == []
    assert table["net"].equals(table["code"].map({"A": 2.5, "B": 17.0, "C": 99.99}))
    assert count_violations(table.assign(net=2.5), domain)[rule.text] == (table["net"] > 3).sum()


@pytest.mark.parametrize("ruled", ["code", "label"])
def test_what_a_rest_of_codes_means_is_modelled(ruled: str) -> None:
    """What is not listed stands for many codes, so its result is drawn and follows from no one."""
    rule = Determines(source="code", result="label", mapping={"A": "low", "B": "high"})
    also = {"code": "if pulse < 90 then code = A", "label": "if label = high then pulse < 90"}
    open_schema = schema((rule, parse_rule(also[ruled])))
    rest = open_schema["code"].model_copy(update={"other": "C", "missing": False})
    label = open_schema["label"].model_copy(update={"missing": False})
    domain = open_schema.replace(rest).replace(label).domain()
    layout = Layout(domain)
    frame = drawn(layout.domain, 400, 1)
    table = layout.from_model(frame, 1)
    assert faults(table, domain) == []
    same = (frame["code"] == "C") & (table["code"] == "C")
    assert set(table["label"][same]) == {"low", "high"}
    assert table["label"][same].equals(frame["label"][same])
    seen = layout.to_model(table.assign(label="low"))
    assert set(seen["label"][table["code"] == "B"]) == {"high"}


class Weighted:
    """A table in which an amount follows from how many rows a person has."""

    sizes = np.repeat([1, 2, 5], [600, 300, 100])

    def __init__(self) -> None:
        self.domain = schema((), Person(columns=("who",), rows=5, constant=("sex",))).domain()
        self.layout = Layout(self.domain)

    def candidates(self, n: int, seed: int = 0) -> pd.DataFrame:
        random = np.random.default_rng(seed)
        size = random.choice(self.sizes, n)
        frame = drawn(self.layout.domain, n, seed)
        frame["rows per person"] = pd.Series(size).astype("str")
        net = np.where(random.random(n) < size / 5, 100.0, 0.0)
        return frame.assign(net=net)


def counts_and_shares(layout: type[Layout]) -> tuple[np.ndarray, float]:
    """Shares of people with 1, 2 and 5 rows, and of rows with a large amount."""
    world = Weighted()
    laid, rows = layout(world.domain), 4000
    frame = world.candidates(rows)
    while more := laid.shortfall(frame, rows):
        frame = pd.concat([frame, world.candidates(more, len(frame))], ignore_index=True)
    table = laid.from_model(frame, 3, rows)
    sizes = table.groupby("who").size().value_counts(normalize=True)
    return sizes.reindex([1, 2, 5], fill_value=0.0).to_numpy(), float((table["net"] > 50).mean())


def check_people(layout: type[Layout]) -> None:
    people, large = counts_and_shares(layout)
    assert np.abs(people - [0.6, 0.3, 0.1]).max() < 0.03
    # of 170 rows 60, 60 and 50 are of people with 1, 2 and 5; a fifth, two fifths and all are large
    assert abs(large - (60 * 0.2 + 60 * 0.4 + 50 * 1.0) / 170) < 0.03


def test_people_have_as_many_rows_as_the_model_says() -> None:
    check_people(Layout)


def test_constants_of_a_person_are_near_its_drawn_rows() -> None:
    domain = schema((), PERSON).domain()
    layout = Layout(domain)
    frame = drawn(layout.domain, 4000, 0)
    frame["net"] = (frame["born"] - frame["born"].min()).dt.days / 40.0
    table = layout.from_model(frame, 0, 1000)
    days = (table["born"] - frame["born"].min()).dt.days
    assert np.abs(days / 40.0 - table["net"]).max() < 5  # of 82


def test_people_of_many_rows_are_binned_and_reuse_candidates() -> None:
    person = Person(columns=("who",), rows=50, constant=("sex",))
    domain = schema((), person).domain()
    layout = Layout(domain)
    labels = layout.domain.columns[-1].categories
    assert labels[:2] == ("1", "2") and labels[-1] == "31–50"
    sizes = pd.Series(np.repeat([1, 12, 50, 90], [1, 12, 50, 90]))
    seen = layout.to_model(drawn(domain, len(sizes), 0), sizes.to_numpy())
    assert seen["rows per person"].value_counts()[["1", "11–15", "31–50"]].tolist() == [1, 12, 140]
    few = drawn(layout.domain, 40, 0).assign(**{"rows per person": "31–50"})
    table = layout.from_model(few, 0, 400)
    people = table.groupby("who").size()
    assert len(table) == 400 and people.iloc[:-1].between(31, 50).all()
    assert layout.shortfall(few, 400) > 0
    assert layout.shortfall(pd.concat([few] * 500), 400) == 0  # many more are not drawn


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((Determines(source="code", result="label"),), "declare or learn which label each code"),
        ((Combinations(names=("sex", "pregnant")),), "declare or learn which combinations"),
        ((Combinations(names=("sex", "code"), allowed=(("x", "A"),)),), "does not have"),
        ((parse_rule("code <= start"),), "neither a number nor a date"),
        ((Determines(source="code", result="start", mapping={}),), "no list of values"),
        (
            (TOTAL, Determines(source="code", result="net", mapping={"A": "1"})),
            "another rule already gives",
        ),
        ((Combinations(names=("sex", "net")),), "can be written as 'if age < 15"),
        ((Determines(source="code", result="net", mapping={"A": "few"}),), "does not have"),
        ((parse_rule("who <- code"),), "left out, text, an identifier"),
        ((parse_rule("total = start + end"),), "do not go together"),
        ((parse_rule("pulse <= end"),), "do not go together"),
        ((parse_rule("tax = least + net"),), "same steps"),
        ((parse_rule("missing together net, pulse"),), "what 'net' may be"),
        ((parse_rule("missing together pulse, pulse"),), "twice"),
        ((parse_rule("if code = A then net = 200"),), "what 'net' may be"),
        ((parse_rule("if code = A then net is missing"),), "what 'net' may be"),
        ((parse_rule("if code = D then net = 2"),), "names the value 'D'"),
        ((parse_rule("if net < few then code = A"),), "names the value 'few'"),
        ((parse_rule("if grown = X then code = A"),), "names the value 'X'"),
        ((parse_rule("if net < 2 then net > 1"),), "twice"),
        ((TOTAL, parse_rule("if net < 2 then tax > 1")), "what 'net', 'tax' may be"),
        (
            tuple(map(parse_rule, ("if net < 2 then sex = f", "if net < 1 then sex = m"))),
            "some rows could not",
        ),
        ((ORDERED, parse_rule("end <= start")), "closes a circle"),
        ((parse_rule("pulse = pressure + pressure"),), "twice"),
        ((Determines(source="code", result="label", mapping={"A": "?"}),), "does not have"),
        (
            (
                Determines(source="code", result="label", mapping={}),
                Determines(source="label", result="code", mapping={}),
            ),
            "circle",
        ),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_in_a_line(rules: tuple, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as refused:
        schema(rules).domain()
    assert "ule " in str(refused.value) and "\n" not in str(refused.value)


def test_rules_spare_target_hidden_and_constant_columns() -> None:
    plain = schema((layouts.LOOKED_UP,))
    for change, words in (
        ({"target": "label"}, "turn the rule round"),
        ({"sensitive": {"g": ("label",)}}, "tagged"),
        ({"person": Person(columns=("who",), rows=2, constant=("label",))}, "one value for a"),
        ({"person": Person(columns=("sex",), rows=2), "target": "sex"}, "says whose a row is"),
    ):
        with pytest.raises(SchemaError, match=words):
            plain.model_copy(update=change).domain()
    aimed = schema((ORDERED, STAY)).model_copy(update={"target": "end"}).domain()
    assert Layout(aimed).domain.target == "end"  # seen as it is: the start gives way
    assert faults(made(aimed, 50), aimed) == []


def test_bounds_that_leave_no_room_are_refused() -> None:
    short = schema((TOTAL,))
    for column in ({"low": 108.0}, {"high": 200.0, "low": 150.0}):
        short = short.replace(short["total"].model_copy(update=column))
    with pytest.raises(SchemaError, match="cannot hold"):
        short.domain()


class ComputesFirst(Layout):
    """Broken: each row is computed with its own values, and a person's constants copied after."""

    def __init__(self, output: Domain) -> None:
        super().__init__(output)
        self._steps = dataclasses.replace(self._steps, constant=frozenset())

    def from_model(self, frame, seed=None, rows=None):
        table = super().from_model(frame, seed, rows)
        for name in self.output.person.constant:
            table[name] = table.groupby("who")[name].transform("first")
        return table


class SamplesByRows(Layout):
    """Broken: each candidate brings one row, so that people of many rows are too few."""

    def shortfall(self, frame: pd.DataFrame, rows: int) -> int:
        return max(0, rows - len(frame))

    def _assemble(self, assembler, frame, rows, random):
        size = frame[assembler.column.name].astype(int).to_numpy()[:rows]
        order = np.argsort(size, kind="stable")
        size = size[order]
        place = np.arange(rows) - np.searchsorted(size, size)
        return frame.iloc[order].reset_index(drop=True), np.cumsum(place % size == 0) - 1


def test_a_layout_that_forgets_to_leave_room_breaks_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = schema(person=PERSON).domain()
    assert faults(made(domain, 300), domain) == []
    monkeypatch.setattr(chains, "_within", lambda bounds, room, here: bounds)
    assert faults(made(domain, 300), domain)


def test_computing_before_copying_constants_breaks_rules() -> None:
    person = Person(columns=("who",), rows=5, constant=("sex", "net"))
    domain = schema((TOTAL,), person).domain()
    assert faults(made(domain, 300), domain) == []
    assert faults(made(domain, 300, layout=ComputesFirst), domain)


def test_people_drawn_by_rows_are_caught() -> None:
    with pytest.raises(AssertionError):
        check_people(SamplesByRows)
