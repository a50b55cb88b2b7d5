"""Answers in words: what the synthetic table says, and how far that may be off."""

from __future__ import annotations

from core.inference.estimates import FIRST, GAP, INTERCEPT, SECOND, Scale
from core.inference.intervals import Answer, Figure
from core.inference.questions import MODELS, Question, Statistic, words
from core.message import Message, joined

ENDS = ("table", "population", "naive")  # the intervals of a figure
TEST_LEVEL = 0.05  # below which a difference counts as one
LEAST_TOLD = 0.001  # one decimal of a percentage shows no less


def shown(value: float, scale: Scale) -> Message:
    """One value, in its unit.

    >>> shown(0.1823, "share"), shown(1200, "count"), shown(3.14159, "number")
    ('18.2%', '1,200', '3.142')
    """
    if scale == "share":
        return Message("{x:.1%}", x=value)
    return Message("{x:,.0f}", x=value) if scale == "count" else Message("{x:.4g}", x=value)


def label(question: Question, figure: Figure) -> Message:
    """What one value of an answer is of."""
    name = figure.name
    if not name:
        return words(question)
    if question.statistic is Statistic.TABLE:
        cells = zip((question.column, *question.by), name, strict=True)
        return joined([Message("{a} = {b}", a=a, b=b) for a, b in cells], ", ")
    if question.statistic is Statistic.SURVIVAL:
        return Message("{column} > {time}", column=question.column, time=name[0])
    if name[0] in (FIRST, SECOND):
        name = (question.by[0], question.groups[name[0] == SECOND])
    if len(name) == 2:
        return Message("{a} = {b}", a=name[0], b=name[1])
    plain = {GAP: Message("difference"), INTERCEPT: INTERCEPT}
    return plain.get(name[0], Message("{name}", name=name[0]))


def conclusions(answer: Answer) -> tuple[Figure, ...]:
    """The values that a question is asked for: no intercepts, and of groups their difference."""
    beside = {FIRST, SECOND, INTERCEPT}
    return tuple(figure for figure in answer.figures if not beside & set(figure.name[:1]))


def clear(figure: Figure) -> bool:
    """Whether the population's value is not 0: by its test, else by its interval."""
    if figure.chance is not None:
        return figure.chance < TEST_LEVEL
    ends = figure.population
    return ends is not None and not ends.low <= 0 <= ends.high


def sentence(answer: Answer) -> Message:
    """The answer in one or two sentences."""
    question, figures = answer.question, conclusions(answer)
    if not figures:
        return joined([answer.reason])
    known, what = [figure for figure in figures if not figure.reason], words(question)
    if question.statistic in MODELS:
        names = joined([label(question, one) for one in known if clear(one)], ", ")
        return Message(
            "{what}: {n} of {all} coefficients clearly differ from 0{names}.",
            what=what,
            n=sum(clear(one) for one in known),
            all=len(figures),
            names=Message(" ({names})", names=names) if names else "",
        )
    if question.statistic is Statistic.TABLE:
        return Message(
            "{what}: {n} of {all} cells are larger than the noise.",
            what=what,
            n=len(known),
            all=len(figures),
        )
    last = figures[-1]
    value, about = shown(last.value, last.scale), {"column": question.column, "x": question.value}
    if question.statistic is Statistic.SURVIVAL:
        what = joined([what, label(question, last)], ", ")
    first = Message("{what}: {value}.", what=what, value=value)
    if question.statistic is Statistic.SHARE and not question.where:
        first = Message("{share} of rows have {column} = {x}.", share=value, **about)
    return joined([first, *_ends(last, answer.level), *_tested(last)])


def _ends(figure: Figure, level: float) -> list[Message]:
    if figure.table is None or figure.population is None:
        return []
    numbers = (*vars(figure.table).values(), *vars(figure.population).values())
    ends = zip(("low", "high", "below", "above"), numbers, strict=True)
    return [
        Message(
            "In the real table it lies between {low} and {high}, and among all people like these "
            "between {below} and {above} ({level:.0%} intervals).",
            level=level,
            **{name: shown(end, figure.scale) for name, end in ends},
        )
    ]


def _tested(figure: Figure) -> list[Message]:
    if figure.chance is None:
        return []
    if figure.chance < LEAST_TOLD:
        return [
            Message(
                "If the groups did not differ, a difference this large would almost never appear."
            )
        ]
    return [
        Message(
            "If the groups did not differ, chance and noise would produce a difference this large "
            "in {chance:.1%} of cases.",
            chance=figure.chance,
        )
    ]


def notes(answer: Answer) -> list[str]:
    """What must be known beside the values: refusals and cautions, each once."""
    reasons = [figure.reason for figure in conclusions(answer)]
    return list(dict.fromkeys(filter(None, [answer.reason, answer.caution, *reasons])))


def rows(answer: Answer) -> list[dict[str, object]]:
    """Each value with both intervals and the naive one, for tables and JSON."""
    return [
        {"of": label(answer.question, figure), "value": figure.value, "note": figure.reason}
        | {
            f"{name} {end}": getattr(getattr(figure, name), end, None)
            for name in ENDS
            for end in ("low", "high")
        }
        | ({} if figure.chance is None else {"p": figure.chance})
        for figure in answer.figures
    ]
