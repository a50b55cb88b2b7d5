"""A grammar of spellings: what people and programs write in one cell, drawn from a seed.

Nothing here knows how the product reads. A spelling may mean a number, a moment, a truth value, no
value or nothing at all to whoever reads it; that is the point.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random

__all__ = ["STRAY_BYTES", "STRAY_PAIRS", "spelling", "value"]

# What no text in the encoding holds: of one byte each, and of whole UTF-16 units.
STRAY_BYTES = (b"\xff", b"\xfe", b"\xc3", b"\x81", b"\xe2\x82", b"\xed\xa0\x80", b"\xf8", b"\x00")
STRAY_PAIRS = (b"\x00\xd8", b"\x01\xdc", b"\xff\xff", b"\x00\x00")

SIGNS = ("", "", "", "+", "-", "−", "--", "+-", "±", "- ")
MARKS = (".", ",", "'", "’", " ", "\u00a0", "\u202f", "·", "٫", "٬", "_", "")
BLANKS = (
    " ",
    "  ",
    "\t",
    "\u00a0",
    "\u202f",
    "\u3000",
    "\u2009",
    "\u200b",
    "\u200e",
    "\ufeff",
    "\v",
)
EXPONENTS = ("e3", "E+3", "e-3", "e0", "E05", "e308", "e-400", "e999", "e", "·10³", "×10^3", "d3")
UNITS = (
    "%", "‰", "€", "$", "£", "¥", "₹", "zł", "kr", "CHF", "EUR", "USD", "US$", "R$", "Kč", "kg",
    "mg/l", "°C", "k", "M", "Mio.", "°", "m²", "h", "₽", "＄",
)  # fmt: skip
BOOLEANS = (
    "true", "false", "yes", "no", "ja", "nein", "oui", "non", "sí", "si", "sì", "não", "sim",
    "tak", "nie", "да", "нет", "はい", "いいえ", "是", "否", "نعم", "لا", "evet", "hayır", "kyllä",
    "ei", "t", "f", "y", "n", "on", "off", "1", "0", "1.0", "0.0", "vrai", "faux", "wahr",
    "falsch", "✓", "x",
)  # fmt: skip
MARKERS = (
    "", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "none", "?", "-", "--", ".",
    "#N/A", "<NA>", "NaT", "missing", "k.A.", "unbekannt", "999", "-99", "-99.0", "-99,0",
    "-9.9e1", "-999", "Na", "Null", "Nan", "\\N", "#REF!", "#DIV/0!", "n.b.", "..", "*", "NIL",
)  # fmt: skip
WORDS = (
    "Zürich", "zürich", "Zu\u0308rich", " Zürich", "ZÜRICH", "Geneve", "Bern\u200b", "東京",
    "القاهرة", "\u202eBern", "नई दिल्ली", "😀", "👩‍👩‍👧", "🇨🇭", "é" * 40, "\u0000", "a\u0000b",
    "=1+1", "@SUM(A1)", "sep=;", 'say "no"', '"', '""', "'5'", '"5"', "a,b;c\td|e",
    "two\nlines", "two\r\nlines", "one\rreturn", "\x85", "\u2028", "\x1a", "\x7f", "\x1b[0m",
    "inf", "-Infinity", "½", "1/2", "IV", "0x1F", "1_000", "two", "Namibia", "x" * 3000,
    "<b>5</b>", "{}", "[1]", "\\", "\\n", "\ufffd", "＝1", "5 5", "#", "//",
)  # fmt: skip
DATES = (
    "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%y", "%Y%m%d", "%d %b %Y",
    "%d. %B %Y", "%Y/%m/%d", "%Y-%m", "%Y", "%b %d, %Y", "%d-%b-%y", "%Y-%j", "%G-W%V-%u",
    "%Y年%m月%d日",
)  # fmt: skip
TIMES = (
    "", "", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M", " %I:%M %p", "T%H%M%S", " %H.%M",
)  # fmt: skip
FRACTIONS = ("", "", ".5", ".123", ".123456", ".123456789", ",5", ".000", ".1234567890123")
ZONES = (
    "",
    "",
    "Z",
    "+02:00",
    "-0530",
    "+00",
    " UTC",
    " Europe/Berlin",
    "+14:00",
    "-99:99",
    " CET",
)
IMPOSSIBLE = (
    "31.02.2020", "2020-02-30", "0000-00-00", "9999-12-31", "0001-01-01", "10000-01-01",
    "1/2/3", "2020-13-01", "24:00:00", "2020-01-01 25:61", "99991231", "00010101", "20201301",
    "44197", "-1", "1677-09-21", "2262-04-12 00:00:00", "9999-12-31 23:59:59.999999999",
    "10:30", "1e8", "1700000000",
)  # fmt: skip
ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


def _digits(random: Random) -> str:
    length = random.choice((1, 1, 2, 3, 4, 6, 15, 16, 17, 19, 20, 40))
    text = "".join(random.choice("0123456789") for _ in range(length))
    return random.choice(("", "", "", "0", "00", "000")) + text


def _grouped(random: Random, digits: str) -> str:
    mark = random.choice(MARKS)
    size = random.choice((3, 3, 3, 2, 4))
    head, rest = len(digits) % size or size, digits
    return mark.join([rest[:head], *(rest[i : i + size] for i in range(head, len(rest), size))])


def number(random: Random) -> str:
    """Signs, marks, zeros, dots, exponents and units, in any order that occurs."""
    text = _digits(random)
    if random.random() < 0.3:
        text = _grouped(random, text)
    if random.random() < 0.5:
        zeros = random.choice(("", "", "0", "00", "5", "50", "500", "000000", "3" * 17))
        text += random.choice((".", ".", ",", ",", "٫")) + zeros
    if random.random() < 0.1:
        text = random.choice((".", ",")) + text
    if random.random() < 0.15:
        text += random.choice(EXPONENTS)
    if random.random() < 0.1:
        text = text.translate(random.choice((ARABIC, WIDE)))
    sign, unit = random.choice(SIGNS), random.choice(UNITS)
    space = random.choice(("", "", " ", "\u00a0", "\u202f", "  "))
    shape = random.random()
    if shape < 0.6:
        return sign + text
    if shape < 0.75:
        return f"{sign}{unit}{space}{text}"
    if shape < 0.8:
        return f"{unit}{space}{sign}{text}"
    return f"({text})" if shape > 0.97 else f"{sign}{text}{space}{unit}"


def moment(random: Random) -> str:
    """A day or a time of it in one of the formats of the world, or one that no calendar has."""
    if random.random() < 0.3:
        return random.choice(IMPOSSIBLE)
    when = dt.datetime(random.choice((1, 1600, 1969, 1999, 2020, 2024, 9999)), 1, 1)
    when += dt.timedelta(seconds=random.randrange(365 * 86_400 - 1))
    clock = random.choice(TIMES)
    text = when.strftime(random.choice(DATES) + clock)
    if "%S" in clock:
        text += random.choice(FRACTIONS)
    return text + (random.choice(ZONES) if clock else "")


def truth(random: Random) -> str:
    """Yes or no in ten languages, in any case."""
    return random.choice((str, str.upper, str.title))(random.choice(BOOLEANS))


def _of(words: Sequence[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(words)


_PARTS = (number, number, number, moment, moment, truth, _of(MARKERS), _of(WORDS))


def spelling(random: Random, ordinary: Sequence[str] = ()) -> str:
    """One cell's text, anything that the grammar has.

    Args:
      random: what draws.
      ordinary: cells as the column has them, which are then changed a little.
    """
    if ordinary and random.random() < 0.25:
        text = _nearly(random, random.choice(ordinary))
    else:
        text = random.choice(_PARTS)(random)
    shape = random.random()
    if shape < 0.1:
        return random.choice(BLANKS) + text
    if shape < 0.2:
        return text + random.choice(BLANKS)
    return f"{random.choice(BLANKS)}{text}{random.choice(BLANKS)}" if shape < 0.25 else text


def _nearly(random: Random, text: str) -> str:
    """A cell that differs a little from an ordinary one, or means the same in other words."""
    changes: tuple[Callable[[], str], ...] = (
        lambda: f"+{text}",
        lambda: f"0{text}",
        lambda: f"{text}0",
        lambda: f"{text}.0",
        lambda: f"{text}.",
        lambda: f"{text}e0",
        lambda: text.upper(),
        lambda: text.lower(),
        lambda: text[:-1],
        lambda: text.translate({ord(","): ".", ord("."): ","}),
        lambda: text.replace(" ", "\u00a0"),
        lambda: f"{text}{text}",
        lambda: f'"{text}"',
    )
    return random.choice(changes)()


def value(random: Random, ordinary: Sequence[object] = ()) -> object:
    """One cell of a source with types of its own: any type, and text in every spelling.

    Args:
      random: what draws.
      ordinary: cells as the column has them.
    """
    day = dt.datetime(2020, 1, 1) + dt.timedelta(seconds=random.randrange(10**8))
    kinds: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: float("nan"),
        lambda: random.choice((float("inf"), float("-inf"), 1e300, -0.0, 5e-324, 0.1 + 0.2)),
        lambda: random.choice((0, 1, -1, -99, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**25)),
        lambda: random.randrange(1000) / 8,
        lambda: random.choice((True, False)),
        lambda: day,
        lambda: day.date(),
        lambda: day.replace(tzinfo=dt.timezone(dt.timedelta(hours=random.randrange(-12, 14)))),
        lambda: Decimal(random.randrange(10**6)) / 100,
        lambda: random.choice(
            (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
        ),
        lambda: spelling(random, [str(one) for one in ordinary]),
        lambda: spelling(random, [str(one) for one in ordinary]),
        lambda: spelling(random, [str(one) for one in ordinary]),
        lambda: str(random.choice(ordinary)) if ordinary else "",
    )
    return random.choice(kinds)()
