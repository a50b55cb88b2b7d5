"""An answer's code: the command and the Python that find the same figure in the downloaded file."""

from __future__ import annotations

import math
from collections.abc import Iterator

from core.inference.questions import MODELS, Question, Statistic, named, question_words
from core.runs.records import RunRecord
from core.schema.column import Kind
from core.schema.conditions import Condition
from core.schema.schema import Domain
from core.services.export import file_name
from core.services.recipe import Code, command_text


def answer_code(run: RunRecord, question: Question) -> Code:
    """The command gives intervals too; the Python needs the CSV file alone."""
    python = "\n".join(_python(question, run.schema.domain(), file_name(run, "csv")))
    return Code(command_text(["ask", run.id, *question_words(question)]), python)


def _python(question: Question, domain: Domain, file: str) -> Iterator[str]:
    by, cells = list(question.by), [f"rows[{name!r}]" for name in (question.column, *question.by)]
    counted = question.counted(domain)
    hits = cells[0] if counted is None else f"({_mask(counted)})"
    yield "import pandas as pd"
    if question.statistic in MODELS:
        yield "import statsmodels.api as sm"
    elif question.statistic is Statistic.SURVIVAL:
        yield "from statsmodels.duration.survfunc import SurvfuncRight"
    yield f"\nrows = pd.read_csv({file!r})"
    yield from (f"rows = rows[{_mask(one)}]" for one in question.conditions(domain))
    if question.statistic is Statistic.DIFFERENCE:
        yield f"means = {hits}.groupby({cells[1]}.astype(str)).mean()"
    elif question.statistic in MODELS or question.statistic is Statistic.SURVIVAL:
        yield f"rows = rows.dropna(subset={[question.column, *by]!r})"
    for column in (named(domain, name) for name in by if question.statistic in MODELS):
        if column.kind.listed:  # coefficients compare with the first label
            own, labels = f"rows[{column.name!r}]", list(column.categories or ())
            yield f"{own} = pd.Categorical({own}.astype(str), {labels!r})"
    if question.statistic in MODELS:
        yield f"terms = pd.get_dummies(rows[{by!r}], drop_first=True, dtype=float)"
        yield "terms = sm.add_constant(terms.loc[:, terms.any()])"
    figures = {
        Statistic.COUNT: "len(rows)",
        Statistic.SHARE: f"{hits}.mean()",
        Statistic.MEAN: f"{hits}.mean()",
        Statistic.QUANTILE: f"{hits}.quantile({question.level})",
        Statistic.TABLE: f"pd.crosstab({', '.join(cells)}, dropna=False) / len(rows)",
        Statistic.DIFFERENCE: " - ".join(f"means[{group!r}]" for group in question.groups),
        Statistic.LINEAR: f"sm.OLS({hits}, terms).fit().summary()",
        Statistic.LOGISTIC: f"sm.Logit({hits}.astype(float), terms).fit().summary()",
        Statistic.SURVIVAL: f"SurvfuncRight({cells[0]}, {hits}.astype(int)).summary()",
    }
    yield f"print({figures[question.statistic]})"


def _mask(condition: Condition) -> str:
    """The rows that keep a condition."""
    cells = f"rows[{condition.column.name!r}]"
    if condition.missing:
        return f"{cells}.isna()"
    if condition.labels is not None:
        return f"{cells}.astype(str).isin({list(condition.labels)!r})"
    if condition.column.kind is Kind.DATETIME:
        epoch = "pd.Timestamp(0, tz='UTC')"
        cells = f"(pd.to_datetime({cells}, utc=True) - {epoch}).dt.total_seconds()"
    ends = (condition.low, condition.high)
    texts = (f"float('{end}')" if math.isinf(end) else f"{end:.15g}" for end in ends)
    return f"{cells}.between({', '.join(texts)})"
