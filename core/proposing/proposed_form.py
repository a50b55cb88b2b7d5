"""How a column of text is written, as all its different cells say: its dtype and form; a proposal.

Text becomes numbers only where writing it out again would give the same values, so `007`, `+47` and
twenty-digit codes stay text. Units and groups are only taken off where nothing else could be meant:
`1,234` alone may be a thousand or a fraction and stays text; `1,234,567`, `1 234`, `$1,234` and
`12,5 %` are numbers beyond doubt. Dates stay text: `core.proposing.kinds` finds their format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.message import Message, plural
from core.proposing.date_formats import MOMENT, is_iso
from core.proposing.rare import CODE_WORD, FEW_ROWS, Mask, Rows, words_beside
from core.reading.cells import MISSING_MARKERS, cells_counted
from core.reading.tally import Tally
from core.schema.column import Kind, SchemaColumn
from core.schema.form import MOST_CODES, UNIT, Form

INTEGER = r"^-?(0|[1-9]\d*)$"
FLOAT = r"^[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?$"
CODE = r"^([+-]?0\d+|\+\d+|[+-]?\d{17,})(\.0*)?$"  # digits that a float would not give back
EXPONENT = r"^[+-]?\d+([.,]\d+)?([eE][+-]?(0?\d|1\d|20))?$"  # one that digits can stand for
INFINITE = r"^[+-]?(?i:inf(inity)?)$"
COMMA_DECIMAL = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"  # 1,234: thousands or a decimal, nobody can tell
DOT_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"  # 1.234 where a comma is the decimal mark
GROUPED_OR_PLAIN = rf"^[+-]?[1-9]\d{{0,2}}(,\d{{3}})+(\.\d+)?$|{FLOAT}"
LONG = r"^[+-]?[0.]*[1-9](\.?\d){17,}([eE][+-]?\d+)?$"  # more digits than a float gives back
NOT_ZERO = r"^[^eE]*[1-9]"
HUNDREDTHS = r"\.0\d"  # as in 1.05; versions are counted 1.1, 1.2 … 1.10
# beside single letters and signs, without spaces; who knows no row could name them
USUAL_WORDS = frozenset(
    "niu,nil,nd,nr,dk,ref,unk,n.a.,--,---,unknown,missing,blank,refused,inapplicable,noanswer,"
    "notapplicable,notavailable,notknown,notstated,don'tknow,k.a.,entfällt,unbekannt,fehlt,"
    "keineangabe,weißnicht,trifftnichtzu,nichtzutreffend".split(",")
).union(MISSING_MARKERS)
NAME_MARKERS = ("Na", "Nan", "Null")  # people's names in this spelling; no program writes it so
SPACES = " \u00a0\u202f"
MARKED_DIGITS = rf"(?:\d[\d.,'’{SPACES}]*)?\d"  # whatever the marks stand for
AFFIXED = re.compile(
    rf"(?P<sign>[+-]?)(?P<prefix>{UNIT}[{SPACES}]?)?[+-]?{MARKED_DIGITS}"
    rf"(?P<suffix>[{SPACES}]?{UNIT})?"
)
DIGITS = re.compile(rf"[+-]?\d[\d.,'’{SPACES}]*")
SURE_MARKS = ("'", "’", *SPACES)  # none of them is ever a decimal mark
DOLLARS = ("$", "£", "¥", "₹", "US$")  # written with a decimal point wherever they are used
MOST_DECIMALS = 12  # decimals that a form can say
FEW_HUNDREDTHS = 0.01  # a tenth of evenly spread numbers with two decimals have 0 as the first one
Labels: TypeAlias = npt.NDArray[np.object_]


@dataclass(frozen=True)
class _Text:
    """A written column's different values, trimmed.

    Attributes:
      values, rows: text and int64 [k], of the present ones.
      gaps: rows by how they say that there is no value, "" for blank cells.
      kept: words such as NA that are values here.
    """

    values: pa.Array
    rows: np.ndarray[Any, np.dtype[np.int64]]
    gaps: dict[str, int] = field(default_factory=dict)
    kept: tuple[str, ...] = ()

    @classmethod
    def read(cls, tally: Tally) -> _Text:
        trimmed = pc.utf8_trim_whitespace(pa.array(tally.values))
        one = tally.mapped(trimmed.to_pandas())
        values = pa.array(one.values, pa.large_string())
        marker = pc.is_in(pc.utf8_lower(values), pa.array(MISSING_MARKERS, pa.large_string()))
        kept = pc.and_(marker, _values_after_all(values, values.filter(pc.invert(marker))))
        absent = np.asarray(pc.and_not(marker, kept))
        gaps = dict(zip(one.values[absent], one.rows[absent].tolist(), strict=True))
        if tally.absent:
            gaps[""] = gaps.get("", 0) + tally.absent
        there = pa.array(~absent)
        return cls(
            values.filter(there), one.rows[~absent], gaps, tuple(values.filter(kept).to_pylist())
        )

    def all(self, pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(self.values, pattern)).as_py())

    def which(self, pattern: str) -> Mask:
        return np.asarray(pc.match_substring_regex(self.values, pattern))

    def share(self, pattern: str) -> float:
        return float(self.rows[self.which(pattern)].sum() / self.rows.sum())

    def any(self, pattern: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(self.values, pattern)).as_py())

    def without(self, pattern: str, other: str = "") -> _Text:
        return replace(self, values=pc.replace_substring_regex(self.values, pattern, other))

    def without_words(self) -> _Text:
        """Without words of ten rows or more beside numbers, which are gaps, and a few odd cells.

        Numbers are what can be read so together: all that have a unit or none, those in the
        commonest unit, those with a decimal point.
        """
        floats = self.which(f"{FLOAT}|{INFINITE}")
        marked = floats | self.which(f"^{AFFIXED.pattern}$")
        units = np.where(floats, "#", self.without("[+-]").without(MARKED_DIGITS, "#").values)
        alike = marked & (units == _commonest(units[marked], self.rows[marked]))
        for numbers in (marked, alike, floats, self.which(f"^{MOMENT}$")):
            kept = self.of(numbers)
            if numbers.all() or not numbers.any() or not kept.reads_as_numbers():
                continue
            words = words_beside(self.values.to_pylist(), self.rows, numbers)
            if words is not None and not (words and self.any(INFINITE)):
                return replace(kept, gaps={**self.gaps, **words})
        return self

    def of(self, chosen: Mask) -> _Text:
        return replace(self, values=self.values.filter(pa.array(chosen)), rows=self.rows[chosen])

    def reads_as_numbers(self) -> bool:
        """Whether all are numbers or moments, with the decimal mark that they need."""
        plain, _ = _without_groups(*_without_units(self))
        comma = plain.any(",") and plain.all(COMMA_DECIMAL)
        return _dtype(plain, "", "," if comma else ".")[0] not in ("str", "bool")


def _commonest(units: Labels, rows: Rows) -> str:
    found, index = np.unique(units.astype(str), return_inverse=True)
    return str(found[np.bincount(index, rows).argmax()]) if len(found) else ""


def _values_after_all(text: pa.Array, others: pa.Array) -> pa.Array:
    """Which markers are values: Namibia among two-letter codes, Ms Null among names; bool [k]."""
    kept = list[str]()
    if len(others) and pc.all(pc.match_substring_regex(others, "^[A-Z]{2}$")).as_py():
        kept += ["NA"]
    if len(others) and not pc.any(pc.match_substring_regex(others, r"\d")).as_py():
        kept += NAME_MARKERS
    return pc.is_in(text, pa.array(kept, pa.large_string()))


def written_columns(tallies: Mapping[str, Tally]) -> tuple[dict[str, SchemaColumn], list[str]]:
    """How to read columns of text, and what was decided in doubt, a sentence each.

    Where a column says in several ways that a value is absent, the commonest is its form's
    `absent`, and the others (of ten rows or more) its codes. A word among numbers counts as one.
    The columns have no domain.
    """
    texts = {name: _Text.read(tally) for name, tally in tallies.items()}
    plain = {
        name: _without_groups(*_without_units(text.without_words())) for name, text in texts.items()
    }
    decimal, doubts = _decimal_mark({name: text for name, (text, _) in plain.items()})
    doubts += _marker_doubts({name: text.gaps for name, text in texts.items()})
    columns = {}
    for name, text in texts.items():
        columns[name], more = _written_column(name, text, *plain[name], decimal)
        doubts += more
    return columns, doubts


def _written_column(
    name: str, text: _Text, plain: _Text, form: Form, decimal: str
) -> tuple[SchemaColumn, list[str]]:
    """One column as it is to be read; `plain` is its text without what `form` puts back."""
    own = form.decimal if form.thousands else decimal
    dtype, doubts = _dtype(plain, name, own)
    if dtype in ("str", "bool") and plain is not text:
        dtype, doubts = _dtype(text, name, decimal)
        plain, form = text, Form()
    number = dtype in ("int64", "float64")
    form = _number_form(plain, form, own, fractions=dtype == "float64") if number else Form()
    kinds = {"str": Kind.TEXT, "bool": Kind.BOOLEAN, "datetime64[us]": Kind.DATETIME}
    kind = kinds.get(dtype, Kind.NUMBER)
    form = with_gaps(form, plain.gaps)
    column = SchemaColumn(name=name, kind=kind, dtype=dtype, form=form if form != Form() else None)
    if text.kept:  # declared as values, they are no gaps
        column = column.model_copy(update={"kind": Kind.CATEGORY, "categories": text.kept})
    return column, doubts


def with_gaps(form: Form, gaps: Mapping[str, int]) -> Form:
    """The form of cells that say in these ways, of so many rows each, that there is no value."""
    spelled = sorted(gaps, key=lambda word: (-gaps[word], word))
    if not spelled:
        return form
    usual = len(spelled[0]) < 2 or spelled[0].lower().replace(" ", "") in USUAL_WORDS
    spelled = spelled if usual else ["", *filter(None, spelled)]  # a code, which runs do not learn
    absent, codes = spelled[0], [w for w in spelled[1:] if w and gaps[w] >= FEW_ROWS]
    if "" in spelled[1:] and gaps[""] >= FEW_ROWS:  # an empty cell is no code
        absent, codes = "", [absent, *codes]
    return form.model_copy(update={"absent": absent, "codes": tuple(codes[:MOST_CODES])})


def code_word(form: Form | None) -> str:
    """The word among numbers that says there is none, where it is not a usual one; else ""."""
    words = () if form is None else (form.absent, *form.codes)
    own = (word for word in words if word.lower() not in MISSING_MARKERS)
    return next((word for word in own if CODE_WORD.fullmatch(word)), "")


def _without_units(text: _Text) -> tuple[_Text, Form]:
    first = AFFIXED.fullmatch(text.values[0].as_py()) if len(text.values) else None
    if first is None or not (first["prefix"] or first["suffix"]):
        return text, Form()
    before, after = first["prefix"] or "", first["suffix"] or ""
    for outer in (True, False):
        signed = f"(-?){re.escape(before)}" if outer else f"{re.escape(before)}(-?)"
        pattern = rf"^{signed}(\d[\d.,'’{SPACES}]*){re.escape(after)}$"
        if text.all(pattern):
            form = Form(prefix=before, suffix=after, inner_sign=bool(before) and not outer)
            return text.without(pattern, r"\1\2"), form
    return text, Form()


def _without_groups(text: _Text, form: Form) -> tuple[_Text, Form]:
    if not len(text.values) or not DIGITS.fullmatch(text.values[0].as_py()):
        return text, form
    for mark in (*SURE_MARKS, ",", "."):
        group = re.escape(mark)
        decimal = "[.,]" if mark in SURE_MARKS else re.escape("." if mark == "," else ",")
        body = rf"^[+-]?(\d{{1,3}}|[1-9]\d{{0,2}}({group}\d{{3}})+)({decimal}\d+)?$"
        if text.any(group) and text.all(body) and _beyond_doubt(text, mark, form):
            comma = mark == "." or (mark != "," and text.any(","))
            update = {"thousands": mark, "decimal": "," if comma else "."}
            return text.without(group), form.model_copy(update=update)
    return text, form


def _beyond_doubt(text: _Text, mark: str, form: Form) -> bool:
    group = re.escape(mark)
    if mark in SURE_MARKS:
        # numbers differ in length; telephone numbers and serial numbers do not
        return _differ(pc.utf8_length(text.without(r"\D").values))
    if mark == "," and form.prefix.strip(SPACES) in DOLLARS:
        return True
    other = re.escape("." if mark == "," else ",")
    twice, both = rf"{group}\d{{3}}{group}\d{{3}}", rf"{group}\d{{3}}{other}\d"
    # 1.234.567 might be a version or an address where all values have as many groups
    numbers = mark != "." or _differ(pc.count_substring(text.values, mark))
    return text.any(both) or (text.any(twice) and numbers)


def _differ(values: pa.Array) -> bool:
    return bool(pc.count_distinct(values).as_py() > 1)


def _number_form(plain: _Text, form: Form, decimal: str, *, fractions: bool) -> Form:
    update: dict[str, object] = {}
    if decimal == "," and plain.any(",") and plain.all(COMMA_DECIMAL):
        update = {"decimal": ",", "thousands": "." if plain.any(r"\.") else form.thousands}
    elif not form.thousands:
        update["decimal"] = "."
    if plain.any("[eE]"):  # as R writes 1e+05 among 99999 and 100001
        update["trimmed"] = fractions and plain.any(INTEGER) and plain.all(EXPONENT)
        return form.model_copy(update=update)
    mark = re.escape(str(update.get("decimal", form.decimal)))
    if plain.all(rf"{mark}\d+$"):
        digits = pc.unique(pc.utf8_length(plain.without(rf"^.*{mark}").values)).to_pylist()
        if len(digits) == 1 and digits[0] <= MOST_DECIMALS:
            update["decimal_places"] = digits[0]
    elif fractions:
        update["trimmed"] = not plain.all(mark)
    return form.model_copy(update=update)


def _marker_doubts(gaps: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One sentence on the words that are read as missing, none where there are none."""
    found = {name: spelled for name, said in gaps.items() if (spelled := {*said} - {""})}
    if not found:
        return []
    words = sorted({word.lower() for said in found.values() for word in said})
    cells = sum(gaps[name][word] for name, said in found.items() for word in said)
    return [
        plural(
            cells,
            "1 cell saying {words} was read as missing, in {names}. If that is a value, spell it "
            "differently in the file.",
            "{n:,} cells saying {words} were read as missing, in {names}. If that is a value, "
            "spell it differently in the file.",
            words=", ".join(words),
            names=", ".join(f"'{name}'" for name in found),
        )
    ]


def _decimal_mark(columns: Mapping[str, _Text]) -> tuple[str, list[str]]:
    """The decimal mark of the table, with doubts; "," where one number cannot be thousands."""
    clear, unclear, doubts = list[str](), list[str](), list[str]()
    for name, text in columns.items():
        if not text.any(","):
            continue
        if text.all(COMMA_DECIMAL):
            commas = text.values.filter(pc.match_substring(text.values, ","))
            unsure = pc.all(pc.match_substring_regex(commas, THOUSANDS)).as_py()
            (unclear if unsure else clear).append(name)
        elif text.all(GROUPED_OR_PLAIN):
            doubts.append(
                Message(
                    "'{name}' has commas that group thousands, so it was kept as text. To make it "
                    "a number, remove them in the file.",
                    name=name,
                )
            )
    if clear:
        names = ", ".join(f"'{n}'" for n in clear + unclear)
        comma = Message("A comma was read as the decimal mark in {names}.", names=names)
        return ",", [*doubts, comma]
    doubts += [
        Message(
            "'{name}' could have decimal commas or thousands, so it was kept as text. To make it a "
            "number, write it with a decimal point.",
            name=name,
        )
        for name in unclear
    ]
    return ".", doubts


def _dtype(text: _Text, name: str, decimal: str) -> tuple[str, list[str]]:
    """What the values are, "int64", "float64", "bool", "datetime64[us]" or "str", and doubts."""
    if not len(text.values):
        return "str", []
    if decimal == "," and text.any(",") and text.all(COMMA_DECIMAL):
        return _number_dtype(text.without(r"\.").without(",", "."), name)
    if decimal == "," and text.any(r"\.") and text.all(f"{INTEGER}|{DOT_THOUSANDS}"):
        return "str", [
            Message(
                "'{name}' could have decimal points or thousands, so it was kept as text. To make "
                "it a number, write it with a decimal comma, like the other columns.",
                name=name,
            )
        ]
    if text.all(f"{INTEGER}|{INFINITE}") and _cast(_finite(text.values), pa.int64()) is not None:
        return "int64", []
    if text.all(f"{FLOAT}|{INFINITE}"):
        return _number_dtype(text, name)
    if text.all("^(True|False)$"):
        return "bool", []
    return ("datetime64[us]" if is_iso(text.values.to_pandas()) else "str"), []


def _number_dtype(text: _Text, name: str) -> tuple[str, list[str]]:
    """Whether numbers with a decimal point are "float64", or codes and versions and so "str"."""
    finite = _finite(text.values)
    numbers = _cast(pc.utf8_ltrim(finite, "+"), pa.float64())
    if text.any(CODE) or numbers is None or numbers.null_count == len(numbers):
        return "str", []
    pointed = numbers.filter(pc.match_substring(finite, "."), null_selection_behavior="drop")
    repeats = len(pointed) > pc.count_distinct(pointed).as_py()  # versions: 1.1 is not 1.10
    if repeats and text.share(HUNDREDTHS) < FEW_HUNDREDTHS:
        return "str", [
            Message(
                "'{name}' writes one number in several ways, such as 1.1 and 1.10, so it was kept "
                "as text. If these are numbers, write all of them with as many decimals.",
                name=name,
            )
        ]
    nothing = pc.and_(pc.equal(numbers, 0.0), pc.match_substring_regex(finite, NOT_ZERO))
    lossy = pc.or_(pc.match_substring_regex(finite, LONG), nothing).fill_null(False)
    cells = int(text.rows[np.asarray(lossy)].sum())
    if not cells:
        return "float64", []
    return "float64", [
        Message(
            "'{name}' has numbers with more digits than can be held; they were rounded ({cells}).",
            name=name,
            cells=cells_counted(cells),
        )
    ]


def _finite(values: pa.Array) -> pa.Array:
    infinite = pc.match_substring_regex(values, INFINITE)
    return pc.if_else(infinite, pa.scalar(None, values.type), values)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return None
