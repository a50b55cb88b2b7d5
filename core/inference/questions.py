"""Questions: a statistic of a table, chosen by columns and values, checked against its domain.

A question holds nothing but words that a schema declares, so it can be kept, sent and asked of any
table with these columns: the synthetic one, its replicas, or the real one where somebody may look.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from enum import StrEnum

from core.message import Message, joined, to_say
from core.models.card import Frozen
from core.schema.column import DomainColumn, Kind, SchemaError
from core.schema.conditions import Condition, parse_conditions
from core.schema.schema import Domain

MOST_LABELS = 30  # of a column in a cross table or a regression
MEASURED = 2  # columns whose joint shares every model measures


class QuestionError(SchemaError):
    """A question that cannot be asked of this table; the message says what to change."""


class Statistic(StrEnum):
    """What is computed."""

    COUNT = "count"
    SHARE = "share"
    MEAN = "mean"
    QUANTILE = "quantile"
    TABLE = "table"
    DIFFERENCE = "difference"
    LINEAR = "linear"
    LOGISTIC = "logistic"
    SURVIVAL = "survival"


MODELS = (Statistic.LINEAR, Statistic.LOGISTIC)
NUMBERS = (Statistic.MEAN, Statistic.QUANTILE, Statistic.LINEAR, Statistic.SURVIVAL)
VALUES = (Statistic.SHARE, Statistic.LOGISTIC)  # which need one of the outcome


class Question(Frozen):
    """One question.

    Attributes:
      column: what it is about; the outcome of a regression, the time of a survival curve.
      value: of `column`, or for survival of `by`, as a condition has it after its sign: "yes",
        "40..60"; what a share, a difference of shares or a logistic regression counts, and what
        ended a time.
      by: the other column of a cross table, groups, predictors, or the event's column.
      groups: the two values of `by` that a difference compares.
      level: of a quantile, in (0, 1).
      where: conditions that rows keep, see `core.schema.conditions`.
    """

    statistic: Statistic
    column: str = ""
    value: str = ""
    by: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    level: float = 0.5
    where: tuple[str, ...] = ()

    def conditions(self, domain: Domain) -> tuple[Condition, ...]:
        """The conditions that rows keep."""
        return parse_conditions(self.where, domain)

    def counted(self, domain: Domain) -> Condition | None:
        """What the value says of its column; None where there is none."""
        name = self.by[0] if self.statistic is Statistic.SURVIVAL else self.column
        return parse_conditions([f"{name}={self.value}"], domain)[0] if self.value else None

    def columns(self, domain: Domain) -> tuple[str, ...]:
        """Every column that is read, each once; any one for a plain count."""
        named = [self.column, *self.by, *(c.column.name for c in self.conditions(domain))]
        return tuple(dict.fromkeys(filter(None, named))) or (domain.modelled[0].name,)


def named(domain: Domain, name: str) -> DomainColumn:
    """The column of that name; KeyError where there is none."""
    return {column.name: column for column in domain.modelled}[name]


def check(question: Question, domain: Domain, hidden: Collection[str] = ()) -> None:
    """Refuse a question that this table has no answer to.

    Args:
      hidden: columns whose distribution is not the real one, on purpose.

    Raises:
      QuestionError, ConditionError: what is wrong with it, in a sentence.
    """
    columns = {column.name: column for column in domain.modelled}
    for name in (question.column, *question.by):
        if name and name not in columns:
            raise QuestionError("The synthetic table has no column '{name}' to ask of.", name=name)
    for name in question.columns(domain):
        if name in hidden:
            raise QuestionError(
                "The distribution of '{name}' is hidden on purpose, so no figure of it says "
                "anything about the real table.",
                name=name,
            )
    if question.column in question.by or len(set(question.by)) < len(question.by):
        raise QuestionError("Choose different columns.")
    _check_outcome(question, columns.get(question.column))
    _check_others(question, [columns[name] for name in question.by])
    question.counted(domain)


def _check_outcome(question: Question, own: DomainColumn | None) -> None:
    statistic = question.statistic
    numbers = statistic in NUMBERS or (statistic is Statistic.DIFFERENCE and not question.value)
    if numbers and (own is None or own.kind not in (Kind.INTEGER, Kind.NUMBER)):
        raise QuestionError("Choose a column of numbers.")
    if statistic in VALUES and not (own is not None and question.value):
        raise QuestionError("Choose a column and a value.")
    if statistic is Statistic.TABLE and own is not None:
        _listed(own)
    if not 0.0 < question.level < 1.0:
        raise QuestionError("A quantile lies between 0 and 1, such as 0.5 for the median.")


def _check_others(question: Question, others: Sequence[DomainColumn]) -> None:
    statistic = question.statistic
    if statistic is Statistic.TABLE and (not question.column or len(others) != 1):
        raise QuestionError("Choose two columns.")
    if statistic in MODELS and not others:
        raise QuestionError("Choose at least one column that may explain the outcome.")
    if statistic is Statistic.SURVIVAL and (len(others) != 1 or not question.value):
        raise QuestionError("Choose the column that says whether the event happened, and a value.")
    if statistic is Statistic.DIFFERENCE:
        labels = {label for column in others for label in column.categories or ()}
        groups = set(question.groups)
        if len(others) != 1 or len(groups) != 2 or not groups <= labels:
            raise QuestionError("Choose a column of groups and two of its values.")
    for column in others:
        if statistic is Statistic.TABLE or (statistic in MODELS and not column.kind.numeric):
            _listed(column)


def _listed(column: DomainColumn) -> None:
    if not column.kind.listed:
        raise QuestionError("'{name}' is no list of values.", name=column.name)
    if len(column.categories or ()) > MOST_LABELS:
        raise QuestionError(
            "'{name}' has more than {most} values, too many for one answer.",
            name=column.name,
            most=MOST_LABELS,
        )


def beyond(question: Question, domain: Domain, measured: Collection[frozenset[str]] = ()) -> int:
    """How many more columns have to be known together than the model measured, ≥ 0.

    Coefficients follow from pairs: of the outcome with each predictor, and of predictors.

    Args:
      measured: sets of three and more columns that were measured together.
    """
    filters = {condition.column.name for condition in question.conditions(domain)}
    own, alone = {question.column} - {""}, question.statistic in MODELS
    others = [{name} for name in question.by] if alone else [{*question.by}]
    sets = [own | other | filters for other in others]
    return max(
        max(0, len(needed) - max([MEASURED, *(len(needed & one) for one in measured)]))
        for needed in sets
    )


def read_question(
    statistic: str,
    of: str = "",
    *,
    by: Sequence[str] = (),
    where: Sequence[str] = (),
    at: float = 0.5,
    domain: Domain,
) -> Question:
    """A question in words of the command line.

    Args:
      statistic: as in `Statistic`.
      of: a column, or one with a value: "readmitted=yes".
      by: other columns; of a difference "sex=F|M", of survival "died=yes".
      at: level of a quantile.
    """
    column, value = _parted(of, domain)
    others = [_parted(text, domain) for text in by]
    groups: tuple[str, ...] = ()
    if statistic == Statistic.DIFFERENCE and others:
        groups = tuple(others[0][1].split("|"))
    elif statistic == Statistic.SURVIVAL and others:
        value = others[0][1]
    return Question(
        statistic=Statistic(statistic),
        column=column,
        value=value,
        by=tuple(name for name, _ in others),
        groups=groups,
        level=at,
        where=tuple(where),
    )


def question_words(question: Question) -> list[str]:
    """A question as words of the command `ask`, see `read_question`."""
    ended = question.statistic is Statistic.SURVIVAL
    of = "=".join(filter(None, [question.column, "" if ended else question.value]))
    by = list(question.by)
    if question.groups or ended:
        by[0] += f"={question.value if ended else '|'.join(question.groups)}"
    options = [*(f"--by={one}" for one in by), *(f"--where={one}" for one in question.where)]
    options += [f"--at={question.level}"] if question.statistic is Statistic.QUANTILE else []
    return [str(question.statistic), *filter(None, [of]), *options]


def read_words(text: str, domain: Domain) -> Question:
    """A question from one text of such words: "share readmitted=yes --where=age=60.."."""
    try:
        every, names = shlex.split(text), ("--by=", "--where=")
        by, where = ([w.removeprefix(n) for w in every if w.startswith(n)] for n in names)
        plain = [word for word in every if not word.startswith(names)]
        return read_question(*plain, by=by, where=where, domain=domain)
    except (TypeError, ValueError):
        raise QuestionError(
            "'{text}' is no question. Write it like this: share readmitted=yes --where=age=60..",
            text=text,
        ) from None


def _parted(text: str, domain: Domain) -> tuple[str, str]:
    """A column's name, which may hold the sign itself, and its value; "" for none."""
    names = [c.name for c in domain.modelled if text == c.name or text.startswith(f"{c.name}=")]
    name = max(names, key=len, default=text.partition("=")[0])
    return name, text[len(name) + 1 :]


def words(question: Question) -> Message:
    """What is asked, a few words for a heading or the beginning of a sentence."""
    template = _WORDS[question.statistic]
    if question.statistic is Statistic.DIFFERENCE and question.value:
        template = _SHARES
    asked = Message(
        template,
        column=question.column,
        value=question.value,
        by=", ".join(question.by),
        first=question.groups[0] if question.groups else "",
        second=question.groups[-1] if question.groups else "",
        level=question.level,
    )
    if not question.where:
        return asked
    return joined([asked, Message("where {rows}", rows=", ".join(question.where))])


_SHARES = to_say("Difference in the share of {column} = {value} ({by}: {first} minus {second})")
_WORDS = {
    Statistic.COUNT: to_say("Number of rows"),
    Statistic.SHARE: to_say("Share of {column} = {value}"),
    Statistic.MEAN: to_say("Mean of {column}"),
    Statistic.QUANTILE: to_say("{level:.0%} quantile of {column}"),
    Statistic.TABLE: to_say("{column} by {by}"),
    Statistic.DIFFERENCE: to_say(
        "Difference in the mean of {column} ({by}: {first} minus {second})"
    ),
    Statistic.LINEAR: to_say("{column} explained by {by} (linear regression)"),
    Statistic.LOGISTIC: to_say("{column} = {value} explained by {by} (logistic regression)"),
    Statistic.SURVIVAL: to_say("{column} until {by} = {value} (Kaplan–Meier)"),
}
