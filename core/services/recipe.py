"""Recipe: a run, rows drawn from it or a figure, as the command and the Python that ask for it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.inference.questions import MODELS, Question, Statistic, named, question_words
from core.runs.execution.launching.launcher import SampleRequest
from core.runs.records import RunRecord
from core.runs.request import RunRequest
from core.schema.column import Kind
from core.schema.conditions import Condition
from core.schema.schema import Domain, Schema
from core.services.export import file_name
from core.services.linking.unlinking import (
    ForeignKey,
    file_columns,
    file_names,
    foreign_keys,
)

FILES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".xls", ".gz", ".zip")
SCHEMA, OUT, SAVE = "schema.json", "synthetic.csv", "run"


@dataclass(frozen=True)
class Code:
    """The same request twice: for a terminal, and for a program."""

    command: str
    python: str


def run_code(table: str, request: RunRequest, *, account_id: str, schema: Schema) -> Code:
    """The command `synth` and the function `synthesize` for one run.

    Args:
      table: its name; the file is called so.
      account_id: whose people these are; "" where the command shall say.
      schema: says which two files a table was linked from.
    """
    asked = request.model_dump(exclude_defaults=True, exclude={"name", "without_privacy"})
    for field, option in (("shift_words", "confirm_shift"), ("unit_words", "confirm_unit")):
        if field in asked:
            asked[option] = asked.pop(field)
    if account_id:
        asked["people"] = account_id
    if request.review is not None:
        asked["save"] = SAVE
    if request.epsilon == math.inf:
        asked["without_privacy"] = True
    options = {"schema": SCHEMA, **asked}
    if schema.linked:
        return _linked_code(schema, options)
    file = table if table.lower().endswith(FILES) else f"{table}.csv"
    command = ["synth", file, *option_words({**options, "out": OUT})]
    python = (
        "from core.api import read_table, synthesize\n\n"
        f"frame = read_table({file!r}, schema={SCHEMA!r})\n"
        f"result = synthesize(\n    frame,\n{_arguments({'name': file, **options})})\n"
        f"result.write({OUT!r})"
    )
    return Code(command_text(command), python)


def _linked_code(schema: Schema, options: Mapping[str, Any]) -> Code:
    """The same for two linked files; functions take their declarations from the rows."""
    person, names = schema.person, file_names(schema)
    assert person is not None and person.event is not None
    origins, out = file_columns(person, schema.names), str(Path(OUT).with_suffix(".zip"))
    files, orders = [f"{name}.csv" for name in names], [file.order for file in person.files]
    keys = ",".join(
        link.column if link.file == names[0] else _owned_key(link)
        for link in foreign_keys(person, schema.names).values()
    )
    sorts = ",".join("" if name is None else origins[name][1] for name in orders)
    linked = {
        "key": f"{person.columns[0]}={keys}",
        "order": sorts or None,
        "rows_per_person": person.rows,
    }
    words = option_words({"linked": files[1:], **linked, **options, "out": out})
    asked = {"names": names} | linked | {k: v for k, v in options.items() if k != "schema"}
    at = "abcdefghijklmnopqrstuvwxyz"[: len(files)]
    read = "\n".join(f"{one} = read_table({f!r})" for one, f in zip(at, files, strict=True))
    tables = "".join(f"    {one},\n" for one in at)
    python = (
        f"from core.api import read_table, synthesize_linked\n\n{read}\n"
        f"result = synthesize_linked(\n{tables}{_arguments(asked)})\n"
        f"result.write({out!r})"
    )
    return Code(command_text(["synth", files[0], *words]), python)


def _owned_key(link: ForeignKey) -> str:
    """What `keys_of` reads of a file whose rows belong to rows of another one."""
    own = "" if link.column == link.key else f"={link.column}"
    return f"{link.file}.{link.key}{own}"


def sample_code(run: RunRecord, request: SampleRequest, seeds: Sequence[int], *, out: str) -> Code:
    """The command and the function `sample` for rows drawn from a run.

    Args:
      seeds: one for each table; none for one table of a drawn seed.
    """
    shape = request.shape
    asked = {
        "rows": request.rows,
        "where": list(shape.where),
        "share": shape.share,
        "fill_missing": shape.fill_missing,
        "without_privacy": not run.private,
    }
    options = {name: value for name, value in asked.items() if value}
    written = {"seed": list(seeds), "escape_formulas": request.escape_formulas, "out": out}
    command = ["sample", run.id, *option_words({**options, **written})]
    first = {"seed": seeds[0]} if seeds else {}
    unpacked = out.endswith(".zip") and not run.schema.linked
    file = str(Path(out).with_suffix(".csv")) if unpacked else out
    escaped = ", escape_formulas=True" if request.escape_formulas else ""
    python = (
        "from core.api import sample\n\n"
        f"result = sample(\n    {run.id!r},\n{_arguments({**options, **first})})\n"
        f"result.write({file!r}{escaped})"
    )
    return Code(command_text(command), python)


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Options by name as words of the command line.

    >>> option_words({"rows": 5, "where": ["a=b", "-c=1"], "fill_missing": True, "seed": None})
    ['--rows=5', '--where=a=b', '--where=-c=1', '--fill-missing']
    """
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={_json(one)}" for key, one in value.items()]
        else:
            several = isinstance(value, Sequence) and not isinstance(value, str)
            words += [f"{option}={one}" for one in (value if several else [value])]
    return words


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def command_text(words: Sequence[str]) -> str:
    """One command in lines that a shell puts together."""
    quoted = [shlex.quote(word) for word in words]
    first = f"python -m core.cli {' '.join(quoted[:2])}"
    return " \\\n    ".join([first, *quoted[2:]])


def _arguments(options: Mapping[str, Any]) -> str:
    """Keyword arguments, a line each."""
    lines = []
    for name, value in options.items():
        text = "float('inf')" if value == math.inf else repr(value)
        lines.append(f"    {name}={text},\n")
    return "".join(lines)


def answer_code(run: RunRecord, question: Question) -> Code:
    """The command and the Python that find a figure in the downloaded file."""
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
