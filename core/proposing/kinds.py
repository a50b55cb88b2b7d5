"""A column's different values to a proposed kind and domain, with every doubt in plain words.

Bounds and category lists are read from the rows, so the schema is only *proposed*: the steward, who
may see the rows, attests that they are public or changes them; until then no model uses them. A
proposal never names one row's value where it can help it: bounds are rounded outward, spikes are
values of many rows, and those that fewer than ten rows hold are merged into "OTHER" or left out.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.message import Message, plural, to_say
from core.proposing.code_patterns import (
    OFTEN,
    REPEATS,
    UNIQUE_ROWS,
    called_key,
    code_note,
    code_pattern,
    few_and_far,
    named_key,
    of_time,
    rare_between,
    sentinel_note,
    without_code,
)
from core.proposing.date_formats import (
    DateGuess,
    date_form,
    format_of_digits,
    guess_date_format,
)
from core.proposing.proposed_form import with_gaps
from core.proposing.rare import FEW_ROWS, MANY_MERGED, ONE_MERGED, OTHER, common_labels, noted
from core.reading.tally import Tally, quantile
from core.schema.calendar import DAY
from core.schema.column import BOOLEAN_PAIRS, MAX_CATEGORIES, Kind, SchemaColumn
from core.schema.date_text import is_clock
from core.schema.form import Form
from core.schema.labels import code_indices, to_labels, to_numbers
from core.schema.magnitudes import LARGEST
from core.schema.round_bounds import date_bounds, date_step, number_step, round_bounds
from core.schema.surrogates import shape_of

Series: TypeAlias = "pd.Series[Any]"
Numbers: TypeAlias = npt.NDArray[np.float64]

FEW_NUMBERS = 12  # so many distinct numbers, each seen several times, are steps of a scale
UNIQUE_SHARE = 0.5  # text with more distinct values than this share of rows names single records
LONG_TEXT = 40  # characters; longer on average is prose
LONG_WORDS = 3  # words; the same
ROWS_PER_KEY = 10  # more of one key, and made-up keys of its pattern might not suffice for all rows
UNIQUE_KEYS = 0.9  # keys of whom fewer are distinct may be of people with several rows
MANY_CATEGORIES = 100  # noted, because rare categories are learnt badly under privacy
SPIKE_SHARE = 0.10  # a value this frequent is an atom where values are otherwise spread out
SPIKE_COUNT = 10  # ... and seen so often that it is no accident of a short column
FINE_GRID = 128  # with fewer grid points every value has its own bin and needs no spike
TAIL_RATIO = 4.0  # (q95 - q50) / (q50 - q5); 1 when symmetric, 3.6 for an exponential
REACH_RATIO = 10.0  # (max - q50) / (q95 - q50); about 3 for a normal
EXACT = 2**53  # larger integers are not exact as floating-point numbers

SCALES = tuple(
    text.split(",")
    for text in (
        "very low,low,medium,moderate,high,very high,critical",
        "none,minimal,mild,moderate,severe,very severe",
        "very poor,poor,fair,average,good,very good,excellent",
        "very bad,bad,neutral,good,very good",
        "never,rarely,seldom,sometimes,often,usually,always",
        "strongly disagree,disagree,neutral,agree,strongly agree",
        "very dissatisfied,dissatisfied,neutral,satisfied,very satisfied",
        "xs,s,m,l,xl,xxl",
        "tiny,small,medium,large,very large,huge",
        "beginner,intermediate,advanced,expert",
        "first,second,third,fourth,fifth",
        "monday,tuesday,wednesday,thursday,friday,saturday,sunday",
        "mon,tue,wed,thu,fri,sat,sun",
        "january,february,march,april,may,june,july,august,september,october,november,december",
        "jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec",
    )
)
ID_VALUE = re.compile(
    r"^(\S+@\S+\.\w+|https?://\S+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$"
)
LOOKS_LIKE_KEY = to_say(
    "Looks like an identifier: {distinct:,} of {n:,} values are distinct. It will be replaced by "
    "new keys."
)
LOOKS_LIKE_TEXT = to_say(
    "Looks like free text: {distinct:,} of {n:,} values are distinct. It will be replaced by "
    "made-up text."
)
EMPTY = to_say("Every value is missing.")
ALWAYS_ONE = to_say("Always the same value.")
MANY_LABELS = to_say("{n:,} different values; rare ones are learned poorly.")
STEPS = "Few different numbers, taken as steps of a scale. The synthetic table has no others."
ORDERED = "Taken as ordered. Is the order right?"
SHARED_KEYS = to_say(
    "Named like a key, but many rows share each value, so the values are taken as labels. If they "
    "are keys of people, change the kind."
)
CODED = "Codes with levels: of a code that few records hold, a run learns the beginning."
MOSTLY_RARE = (
    "Most rows hold values that fewer than ten rows share. If they are categories after all, "
    "change the kind."
)
PLAIN_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
RANGE_LABEL = re.compile(r"^\W{0,3}(\d+(?:\.\d+)?)\s*(?:-|–|to|\+|<|>|$)")


def infer_tally(tally: Tally, name: str, form: Form | None = None) -> SchemaColumn:
    """Propose one column."""
    coded = None if form is None or not form.codes else _coded(tally, name, form)
    column = _proposed(tally, name) if coded is None else coded
    if column.kind is Kind.IDENTIFIER and column.dtype == "str":
        labels = [str(label) for label in tally.values]
        if len(labels) >= FEW_ROWS:  # what fewer have in common may be one person's
            most = max(tally.distinct, tally.known // ROWS_PER_KEY)
            column = column.model_copy(update={"pattern": shape_of(labels, most)})
    if form is not None:
        known = {} if column.form is None else column.form.model_dump()
        column = column.model_copy(update={"form": Form(**{**form.model_dump(), **known})})
    return column.as_proposed()


def _coded(tally: Tally, name: str, form: Form) -> SchemaColumn | None:
    """Numbers or dates among which codes say that there is none; None where these are labels."""
    column = SchemaColumn(name=name, kind=Kind.NUMBER, dtype=tally.dtype, form=form)
    rest = tally.where(code_indices(tally.values, column) < 0)
    if not len(rest.rows):
        return None
    if column.dtype == "str":
        numbers = pd.to_numeric(rest.values, errors="coerce")
        if numbers.notna().all():
            broken = rest.values.str.contains(r"[.eE]").any()
            rest = rest.mapped(numbers if broken else numbers.astype("Int64"))
    proposed = _proposed(rest, name)
    if not proposed.kind.numeric:
        return None
    return proposed.model_copy(update={"dtype": column.dtype, "missing": tally.absent > 0})


def _proposed(tally: Tally, name: str) -> SchemaColumn:
    dtype = tally.dtype
    if dtype.lower().startswith("float"):
        values = tally.values.to_numpy(dtype=np.float64, na_value=np.nan)
        tally = tally.where(np.abs(values) <= LARGEST)  # as reading does
    missing = tally.absent > 0
    base = SchemaColumn(name=name, kind=Kind.TEXT, missing=missing, dtype=dtype)
    if not tally.known:
        empty = {"missing": True, "absent": 1.0, "note": Message(EMPTY)}
        return base.model_copy(update=empty)
    known = tally.values
    if pd.api.types.is_datetime64_any_dtype(known.dtype):
        return _dates(known, base, DateGuess(None, ""), tally)
    if isinstance(known.dtype, pd.CategoricalDtype) and known.dtype.ordered:
        ranks = to_labels(pd.Series(known.dtype.categories))
        return _listed(base, Kind.ORDERED, [str(x) for x in ranks])
    labels = [str(x) for x in to_labels(known[:3])]  # three are no pair
    if len(labels) == 1:
        return _listed(base, Kind.CATEGORY, labels, Message(ALWAYS_ONE))
    pair = len(labels) == 2 and {label.lower() for label in labels} in BOOLEAN_PAIRS
    if dtype.startswith("bool") or pair:
        return _listed(base, Kind.BOOLEAN, sorted(labels, key=str.lower))
    if dtype.lower().startswith(("int", "uint", "float")):
        return _number(tally, base)
    return _worded(tally, base)


def _listed(base: SchemaColumn, kind: Kind, labels: list[str], note: str = "") -> SchemaColumn:
    return base.model_copy(update={"kind": kind, "categories": tuple(labels), "note": note})


def _number(tally: Tally, base: SchemaColumn) -> SchemaColumn:
    whole = base.model_copy(update={"kind": Kind.NUMBER})
    numbers = tally.numbers(whole)
    distinct, counts = numbers.values.to_numpy(np.float64), numbers.rows
    step = number_step(distinct) if numbers.step is None else numbers.step
    integer = step >= 1.0
    if integer and base.dtype.lower().startswith(("int", "uint")):
        special = _code(numbers, base)
        if special is not None:
            return special
        few = numbers.distinct <= UNIQUE_ROWS and numbers.known >= REPEATS * numbers.distinct
        shared = called_key(base.name) and (few or numbers.known >= OFTEN * numbers.distinct)
        if shared and not of_time(base.name):
            rows = tally.labels()
            keys = sorted(map(str, rows.index), key=numbers_first)
            return _categories(base, keys, common_labels(rows), SHARED_KEYS)
        pattern = code_pattern(base.name, to_labels(tally.values))
        if pattern is not None and numbers.distinct <= MAX_CATEGORIES:
            return _coded_list(base, tally, pattern)
    few = len(distinct) <= FEW_NUMBERS and numbers.known >= REPEATS * len(distinct)
    if few or few_and_far(numbers, step):
        labels = to_labels(tally.values)
        ordered = list(labels.iloc[np.argsort(labels.astype(float).to_numpy())])
        common = [label for label in ordered if label in (common_labels(tally.labels()) or ())]
        if common == ordered and len(common) > 2:  # 1 and 2 are seldom less and more
            return _listed(base, Kind.ORDERED, ordered, STEPS)
        if common == ordered or rare_between(counts):  # a list never names what single rows hold
            return _listed(base, Kind.CATEGORY, common)
    code, distinct, counts = without_code(distinct, counts)
    if code:
        numbers = numbers.where(numbers.values.to_numpy() >= distinct[0])
    low, high = round_bounds(float(distinct[0]), float(distinct[-1]), step=step, dtype=base.dtype)
    spikes = _spikes(numbers, step)
    low = float(distinct[0]) if distinct[0] in spikes else low  # where values are cut off
    high = float(distinct[-1]) if distinct[-1] in spikes else high
    return base.model_copy(
        update={
            "kind": Kind.INTEGER if integer else Kind.NUMBER,
            "low": low,
            "high": high,
            "step": step,
            "scale": "log" if _heavy(numbers, spikes) else "linear",
            "spikes": spikes,
            "note": noted(code_note(code), sentinel_note(distinct, counts)),
            "form": Form(codes=(code,)) if code else None,
        }
    )


def _code(numbers: Tally, base: SchemaColumn) -> SchemaColumn | None:
    """Integers that are no quantity: keys, serial numbers, dates written as 20240131 or 240131."""
    distinct = numbers.values.to_numpy(np.float64)
    if 100101 <= distinct[0] and distinct[-1] <= 21001231:  # else there is no need to look
        labels = pd.Series(distinct).map("{:.0f}".format)
        if (date_format := format_of_digits(labels)) is not None:
            return _dates(labels, base, DateGuess(date_format, ""), None)
    n = numbers.known
    unique = numbers.unique and n >= UNIQUE_ROWS
    serial = unique and distinct[-1] - distinct[0] < 2 * n
    most = int(numbers.rows.max())
    named = named_key(base.name, numbers.distinct, n, most, numeric=True)
    if np.abs(distinct).max() > EXACT or serial or named:
        return _identifier(base, Kind.IDENTIFIER, numbers.distinct, n)
    return None


def _identifier(base: SchemaColumn, kind: Kind, distinct: int, n: int) -> SchemaColumn:
    key, person = kind is Kind.IDENTIFIER, ""
    looks = Message(LOOKS_LIKE_KEY if key else LOOKS_LIKE_TEXT, distinct=distinct, n=n)
    if key and distinct < UNIQUE_KEYS * n:
        person = Message("If it says whose row it is, declare that under “People and rules”.")
    return base.model_copy(update={"kind": kind, "note": noted(looks, person)})


def _spikes(numbers: Tally, step: float) -> tuple[float, ...]:
    """Values with an atom of their own: frequent, and far above everything near them."""
    distinct = numbers.values.to_numpy(np.float64)
    low, high = distinct[0], distinct[-1]
    if step > 0 and (high - low) / step < FINE_GRID:
        return ()
    counts = numbers.weights
    shares = counts / counts.sum()
    spikes = []
    for i in np.flatnonzero((shares > SPIKE_SHARE) & (counts >= SPIKE_COUNT)):
        near = np.abs(distinct - distinct[i]) <= (high - low) / 50
        if shares[i] > 2 * (shares[near].sum() - shares[i]):
            spikes.append(float(distinct[i]))
    return tuple(spikes)


def _heavy(numbers: Tally, spikes: tuple[float, ...]) -> bool:
    """Whether most of the range is a thin tail, so that a linear grid would waste its bins."""
    distinct, counts = numbers.values.to_numpy(np.float64), numbers.weights
    low, high = distinct[0], distinct[-1]
    if low in spikes and counts[0] / counts.sum() > 0.5:
        return True  # zero-inflated: all the rest is tail
    spread = numbers.where(~np.isin(distinct, spikes))
    if not len(spread.rows):
        return False
    q5, q50, q95 = (quantile(spread, share) for share in (0.05, 0.5, 0.95))
    upper, lower = q95 - q50, q50 - q5
    if upper <= 0:
        return bool(high > q50)
    return bool(upper > TAIL_RATIO * lower or high - q50 > REACH_RATIO * upper)


def _dates(
    values: Series, base: SchemaColumn, guess: DateGuess, tally: Tally | None
) -> SchemaColumn:
    """A date column; the step is that of all dates, where the values of its tally are not all."""
    column = base.model_copy(update={"kind": Kind.DATETIME, "date_format": guess.format})
    seconds = to_numbers(values, column)
    fits = ~np.isnan(seconds)
    form = None if guess.format is None else date_form(values[fits], guess.format)
    if guess.words:
        gaps = {"": tally.absent} if tally is not None and tally.absent else {}
        form = with_gaps(form or Form(), {**gaps, **guess.words})
    column = column.model_copy(update={"form": form, "missing": base.missing or not fits.all()})
    seconds = np.unique(seconds[fits])
    known = None if tally is None else tally.step
    step = date_step(seconds) if known is None else known
    low, high = date_bounds(
        float(seconds[0]),
        float(seconds[-1]),
        step=step,
        dtype=base.dtype,
        date_format=guess.format,
    )
    column = column.model_copy(update={"low": low, "high": high, "step": step, "note": guess.note})
    if tally is None or step < DAY:
        return column
    return column.model_copy(update={"spikes": _spikes(tally.numbers(column), step)})


def _worded(tally: Tally, base: SchemaColumn) -> SchemaColumn:
    counts = tally.labels()
    labels = pd.Series(counts.index, dtype="str")
    n, distinct = tally.known, len(counts) if tally.exact else tally.distinct
    guess = guess_date_format(counts)
    few = distinct <= FEW_NUMBERS and n >= REPEATS * distinct
    if guess is not None and guess.format is not None and not (few and is_clock(guess.format)):
        return _dates(labels, base, guess, tally)
    sample = labels.iloc[:1000]
    pattern = code_pattern(base.name, sample)
    if pattern is not None and distinct <= MAX_CATEGORIES:
        return _coded_list(base, tally, pattern)
    words = float(sample.str.count(r"\s+").median()) + 1
    long = sum(len(str(x)) for x in sample) > LONG_TEXT * len(sample) or words >= LONG_WORDS
    addresses = sample.str.fullmatch(ID_VALUE.pattern).mean() > 0.9
    named = named_key(base.name, distinct, n, int(counts.max()), numeric=False)
    many = distinct > UNIQUE_ROWS and distinct > UNIQUE_SHARE * n
    if addresses or many or named or distinct > MAX_CATEGORIES:
        prose = long and not addresses and not named
        return _identifier(base, Kind.TEXT if prose else Kind.IDENTIFIER, distinct, n)
    # phrases that many rows share are labels, however long: diagnoses, job titles
    if long and distinct > MANY_CATEGORIES and common_labels(counts) is None:
        text = _identifier(base, Kind.TEXT, distinct, n)
        return text.model_copy(update={"note": noted(text.note, MOSTLY_RARE)})
    note = noted("" if guess is None else guess.note, SHARED_KEYS if called_key(base.name) else "")
    if distinct > MANY_CATEGORIES:
        poor = Message(MANY_LABELS, n=distinct)
        note = noted(note, poor)
    if labels.str.lower().nunique() < distinct:
        note = noted(
            note, Message("Some values differ only in capital letters; they are kept apart.")
        )
    order = scale_order([str(x) for x in labels])
    # Many labels that begin with numbers, some of few rows, are codes and not steps of a scale.
    if order is not None and (distinct <= UNIQUE_ROWS or counts.min() >= FEW_ROWS):
        return _listed(base, Kind.ORDERED, order, noted(note, ORDERED))
    common = common_labels(counts)
    if common is None and distinct > UNIQUE_ROWS:  # names, addresses, remarks: few share one
        codes = sample.str.fullmatch(r"[A-Za-z]{0,3}[-_]?\d+").mean() > 0.9  # such as P0117
        text = _identifier(base, Kind.IDENTIFIER if codes else Kind.TEXT, distinct, n)
        return text.model_copy(update={"note": noted(text.note, MOSTLY_RARE, note)})
    return _categories(base, sorted(labels, key=numbers_first), common, note)


def _coded_list(base: SchemaColumn, tally: Tally, pattern: str) -> SchemaColumn:
    """Codes with levels, whose rare ones a run can keep the beginnings of."""
    counts = tally.labels()
    common = common_labels(counts) or []
    column = _categories(base, sorted(map(str, counts.index)), common, CODED)
    return column.model_copy(update={"pattern": pattern})


def _categories(
    base: SchemaColumn, labels: list[str], common: list[str] | None, note: str
) -> SchemaColumn:
    if common is None or len(common) == len(labels):
        return _listed(base, Kind.CATEGORY, labels, note)
    merged = plural(len(labels) - len(common), ONE_MERGED, MANY_MERGED, label=OTHER)
    named = [*sorted(set(common) - {OTHER}, key=numbers_first), OTHER]
    column = _listed(base, Kind.CATEGORY, named, noted(note, merged))
    return column.model_copy(update={"other": OTHER})


def numbers_first(label: str) -> tuple[float, str]:
    """A key that sorts labels which are numbers by these, and all others by alphabet after them."""
    return float(label) if PLAIN_NUMBER.fullmatch(label) else float("inf"), label


def scale_order(labels: list[str]) -> list[str] | None:
    """Labels in the order of a known scale or of the numbers they begin with; None when neither."""
    lowered = {label.lower(): label for label in labels}
    if len(lowered) != len(labels) or len(labels) < 3:
        return None
    for scale in SCALES:
        if set(lowered) <= set(scale):
            return [lowered[word] for word in scale if word in lowered]
    starts = [float(m.group(1)) for m in map(RANGE_LABEL.match, labels) if m]
    if len(starts) < len(labels) or all(label.isdigit() for label in labels):
        return None
    # "<18" and "18-24" begin with the same number; the open one comes first.
    keys = [(x, not t.startswith(("<", "under", "≤"))) for x, t in zip(starts, labels, strict=True)]
    if len(set(keys)) < len(keys):
        return None
    return [label for _, label in sorted(zip(keys, labels, strict=True))]
