"""Questions: a statistic of a table, chosen by columns and values, checked against its domain.

A question holds nothing but words that a schema declares, so it can be kept, sent and asked of any
table with these columns: the synthetic one, its replicas, or the real one where somebody may look.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from core.message import Message, ReportedError, joined, to_say
from core.models.card import Frozen
from core.schema.column import DomainColumn, Kind
from core.schema.conditions import Condition, parse_conditions
from core.schema.schema import Domain

MOST_LABELS = 30  # of a column in a cross table or a regression
MEASURED = 2  # columns whose joint shares every model measures
GUESSED = 1  # more than were measured, which a model's form still ties together


class QuestionError(ReportedError):
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
    own = columns.get(question.column)
    others = [columns[name] for name in question.by]
    if question.column in question.by or len(set(question.by)) < len(question.by):
        raise QuestionError("Choose different columns.")
    _CHECKS[question.statistic](question, own, others)
    question.counted(domain)


def _about_rows(question: Question, own: DomainColumn | None, _: Sequence[DomainColumn]) -> None:
    return None


def _about_values(question: Question, own: DomainColumn | None, _: Sequence[DomainColumn]) -> None:
    if own is None or not question.value:
        raise QuestionError("Choose a column and a value.")


def _about_numbers(question: Question, own: DomainColumn | None, _: Sequence[DomainColumn]) -> None:
    _numeric(own)
    if not 0.0 < question.level < 1.0:
        raise QuestionError("A quantile lies between 0 and 1, such as 0.5 for the median.")


def _about_pairs(
    question: Question, own: DomainColumn | None, others: Sequence[DomainColumn]
) -> None:
    if own is None or len(others) != 1:
        raise QuestionError("Choose two columns.")
    for column in (own, *others):
        _listed(column)


def _about_groups(
    question: Question, own: DomainColumn | None, others: Sequence[DomainColumn]
) -> None:
    if len(others) != 1 or len(set(question.groups)) != 2:
        raise QuestionError("Choose a column of groups and two of its values.")
    if not question.value:
        _numeric(own)
    labels = others[0].categories or ()
    if not others[0].kind.listed or not set(question.groups) <= set(labels):
        raise QuestionError("Choose a column of groups and two of its values.")


def _about_models(
    question: Question, own: DomainColumn | None, others: Sequence[DomainColumn]
) -> None:
    if not others:
        raise QuestionError("Choose at least one column that may explain the outcome.")
    if question.statistic is Statistic.LINEAR:
        _numeric(own)
    else:
        _about_values(question, own, others)
    for column in others:
        if not column.kind.numeric:
            _listed(column)


def _about_times(
    question: Question, own: DomainColumn | None, others: Sequence[DomainColumn]
) -> None:
    _numeric(own)
    if len(others) != 1 or not question.value:
        raise QuestionError("Choose the column that says whether the event happened, and a value.")


def _numeric(column: DomainColumn | None) -> None:
    if column is None or column.kind not in (Kind.INTEGER, Kind.NUMBER):
        raise QuestionError("Choose a column of numbers.")


def _listed(column: DomainColumn) -> None:
    if not column.kind.listed:
        raise QuestionError("'{name}' is no list of values.", name=column.name)
    if len(column.categories or ()) > MOST_LABELS:
        raise QuestionError(
            "'{name}' has more than {most} values, too many for one answer.",
            name=column.name,
            most=MOST_LABELS,
        )


_CHECKS = {
    Statistic.COUNT: _about_rows,
    Statistic.SHARE: _about_values,
    Statistic.MEAN: _about_numbers,
    Statistic.QUANTILE: _about_numbers,
    Statistic.TABLE: _about_pairs,
    Statistic.DIFFERENCE: _about_groups,
    Statistic.LINEAR: _about_models,
    Statistic.LOGISTIC: _about_models,
    Statistic.SURVIVAL: _about_times,
}


def sets_needed(question: Question, domain: Domain) -> tuple[frozenset[str], ...]:
    """The sets of columns that have to be known together for an answer.

    Coefficients follow from pairs: of the outcome with each predictor, and of predictors.
    """
    filters = {condition.column.name for condition in question.conditions(domain)}
    if question.statistic in (Statistic.LINEAR, Statistic.LOGISTIC):
        pairs = [{question.column, name} for name in question.by]
        return tuple(frozenset(pair | filters) for pair in pairs)
    return (frozenset({question.column, *question.by, *filters} - {""}),)


def beyond(question: Question, domain: Domain, measured: Collection[frozenset[str]] = ()) -> int:
    """How many more columns have to be known together than the model measured, ≥ 0.

    Args:
      measured: sets of three and more columns that were measured together.
    """
    known = [
        max([MEASURED, *(len(needed & one) for one in measured if len(needed & one) > MEASURED)])
        for needed in sets_needed(question, domain)
    ]
    needed = [len(one) for one in sets_needed(question, domain)]
    return max([0, *(n - k for n, k in zip(needed, known, strict=True))])


def words(question: Question) -> Message:
    """What is asked, a few words within a sentence or a heading."""
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


_SHARES = to_say("difference in the share of {column} = {value}, {by}: {first} less {second}")
_WORDS = {
    Statistic.COUNT: to_say("number of rows"),
    Statistic.SHARE: to_say("share of {column} = {value}"),
    Statistic.MEAN: to_say("mean of {column}"),
    Statistic.QUANTILE: to_say("{level:.0%} quantile of {column}"),
    Statistic.TABLE: to_say("{column} by {by}"),
    Statistic.DIFFERENCE: to_say("difference in the mean of {column}, {by}: {first} less {second}"),
    Statistic.LINEAR: to_say("{column} explained by {by} (linear regression)"),
    Statistic.LOGISTIC: to_say("{column} = {value} explained by {by} (logistic regression)"),
    Statistic.SURVIVAL: to_say("{column} until {by} = {value} (Kaplan–Meier)"),
}
