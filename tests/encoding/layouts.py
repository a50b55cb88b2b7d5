"""Tables with rules and people, drawn by hypothesis, and what must hold of every row of them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from core.encoding.codec import Codec
from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations
from core.schema.column import Column, Kind
from core.schema.form import Form
from core.schema.person import Person
from core.schema.rules.rules import Combinations, Determines, MissingTogether, parse_rule
from core.schema.schema import Domain, Schema
from tests.encoding.vectors import collapse

DAY = 86_400.0
MAPPING = {"A": "low", "B": "low", "C": "high"}
ALLOWED = (("f", "False"), ("f", "True"), ("m", "False"))
LOOKED_UP = Determines(source="code", result="label", mapping=MAPPING)
COMBINED = Combinations(names=("sex", "pregnant"), allowed=ALLOWED)
TOGETHER = MissingTogether(names=("pulse", "pressure"))
ORDERED, STAY = parse_rule("start <= end"), parse_rule("stay = end - start")
TOTAL, NET = parse_rule("total = net + tax"), parse_rule("net <= total")
BORN, CHAINED = parse_rule("born <= start"), parse_rule("least <= most")
EQUAL = parse_rule("net = paid")
CONDITIONAL = tuple(
    map(
        parse_rule,
        (
            "if net < 20.5 then code in (A, B)",
            "if code = C then pulse is missing",
            "if pulse > 150 then pressure >= 100",
            "if label = high then net > 30",
            "if born >= 1965-01-01 then grown != N",
            "if sex = m then grown != N",
            "if grown is N then net <= 50",
            "if grown < 5 then sex = f",
            "if end is missing then code != A",
        ),
    )
)
RULES = (
    LOOKED_UP,
    COMBINED,
    TOGETHER,
    ORDERED,
    STAY,
    TOTAL,
    NET,
    BORN,
    CHAINED,
    EQUAL,
    *CONDITIONAL,
)
PERSON = Person(columns=("who",), rows=5, constant=("born", "sex", "pregnant"), order="start")


def number(name: str, low: float, high: float, step: float = 1.0, **more: object) -> Column:
    dtype = "Int64" if step == 1 else "float64"
    kind = Kind.INTEGER if step == 1 else Kind.NUMBER
    fields = {"kind": kind, "step": step, "dtype": dtype, **more}
    return Column(name=name, low=low, high=high, **fields)


def date(name: str, first: int, last: int, *, missing: bool = False) -> Column:
    return number(
        name, first * DAY, last * DAY, DAY, kind=Kind.DATETIME, dtype="datetime64[us]",
        missing=missing,
    )  # fmt: skip


def schema(
    rules: tuple[object, ...] = RULES, person: Person | None = None, *, missing: bool = True
) -> Schema:
    """A ward's table; `missing` says whether dates, codes and measurements may be absent."""
    return Schema(
        rules=rules,
        person=person,
        columns=(
            Column(name="who", kind=Kind.IDENTIFIER, pattern="P#####"),
            date("born", -3000, 300),
            Column(name="code", kind=Kind.CATEGORY, categories=("A", "B", "C"), missing=missing),
            Column(name="label", kind=Kind.CATEGORY, categories=("low", "high"), missing=missing),
            Column(name="sex", kind=Kind.CATEGORY, categories=("f", "m")),
            Column(name="pregnant", kind=Kind.BOOLEAN, categories=("False", "True"), dtype="bool"),
            date("start", 0, 365, missing=missing),
            date("end", 0, 400, missing=missing),
            number("stay", 0, 60, missing=missing),
            number("net", 0, 100, 0.01),
            number("paid", -10, 90, 0.01, missing=missing),
            number("tax", -5, 20, 0.01),
            number("total", 0, 110, 0.01),
            number("pulse", 30, 200, missing=True),
            number("pressure", 60, 250, missing=True),
            number("grown", 0, 20, form=Form(codes=("N",)), missing=missing, dtype="str"),
            number("least", -50, 50, 0.0, scale="log"),
            number("most", -80, 40, 0.0),
        ),
    )


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    """Any of the rules, in any order, of a table in which things are missing or not."""
    every = draw(st.permutations(RULES))
    chosen = tuple(every[: draw(st.integers(1, len(RULES)))])
    people = draw(st.booleans())
    return schema(chosen, PERSON if people else None, missing=draw(st.booleans())).domain()


def drawn(domain: Domain, rows: int, seed: int) -> pd.DataFrame:
    """What an ignorant model draws: any state, and often the ends of the scale."""
    codec, random = Codec(domain), np.random.default_rng(seed)
    x = random.random((rows, codec.width))
    x = np.where(random.random(x.shape) < 0.2, np.rint(x), x)
    return codec.decode_codes(collapse(codec, x))


def faults(table: pd.DataFrame, domain: Domain) -> list[str]:
    """What is wrong with a synthetic table: columns, dtypes, bounds, rules, people."""
    wrong = [f"{text}: {n}" for text, n in count_violations(table, domain).items() if n]
    if list(table.columns) != [column.name for column in domain.columns]:
        wrong.append("columns")
    codec = Codec(domain)
    again = codec.decode_codes(codec.encode(table))
    for column in domain.modelled:
        same = again[column.name].astype(object).where(again[column.name].notna(), None)
        cells = table[column.name].astype(object).where(table[column.name].notna(), None)
        if column.kind.numeric and column.step == 0:
            inside = table[column.name].dropna().between(column.low, column.high)
            wrong += [] if inside.all() else [f"bounds of {column.name}"]
        elif same.tolist() != cells.tolist():
            wrong.append(f"bounds of {column.name}")
        if again[column.name].dtype != table[column.name].dtype:
            wrong.append(f"dtype of {column.name}")
    if domain.person is not None:
        people = table.groupby("who")
        wrong += [
            f"{name} is not constant"
            for name in domain.person.constant
            if people[name].nunique(dropna=False).max() > 1
        ]
        if people.size().max() > domain.person.rows:
            wrong.append("too many rows of one person")
        pairs = itertools.pairwise(table[["who", "start"]].itertuples(index=False))
        late = any(a.who == b.who and a.start > b.start for a, b in pairs)
        wrong += ["order"] if late and domain.person.order else []
    return wrong


def people_of(table: pd.DataFrame) -> np.ndarray:
    return table.groupby("who")["who"].transform("size").to_numpy()


def made(domain: Domain, rows: int, seed: int = 0, layout: type[Layout] = Layout) -> pd.DataFrame:
    """A table that keeps its domain's rules, from what an ignorant model draws."""
    laid = layout(domain)
    return laid.from_model(drawn(laid.domain, 4 * rows, seed), seed, rows)
