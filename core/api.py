"""Plain functions with the command line's names and options, for notebooks and programs.

    from core.api import read_table, synthesize

    result = synthesize(read_table("people.csv"), epsilon=1)
    result.write("synthetic.csv")

Each does what the command does, with the same refusals (exceptions of one plain line, all of them
`ValueError`s) and the same ledger in the same workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core.inference.intervals import Answer
from core.inference.replicas import COUNT, Replica, replicas_of
from core.models.card import Card
from core.models.events import FitEvent, Signal
from core.models.registry import cards, load_fitted
from core.models.shaped_output import Shape, ShapeFacts, draw_shaped
from core.privacy.plan import Guarantee, Plan
from core.quality.report.types import Report
from core.runs.execution.threads import limit_threads
from core.schema.schema import Schema
from core.services.inference.asking import ask_run
from core.services.inference.replicas import make
from core.services.linking.files import LinkedFile, keys_of, link_all
from core.services.linking.unlinking import unlink
from core.services.runs import open_store
from core.services.shaping import certificate_of
from core.services.synthesis import synthesize as synthesis
from core.services.synthesis import table_files
from core.services.synthesis.frames import mark_read, rows_of, schema_of, typed_rows_of
from core.services.synthesis.locations import location
from core.services.synthesis.options import SynthesisOptions, options_of
from core.services.synthesis.saved_runs import trained_model
from core.services.synthesis.schema_options import with_rules, with_schema, with_target


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Synthetic rows with what is said of them.

    Attributes:
      table: synthetic rows [rows, columns].
    """

    table: pd.DataFrame
    certificate: dict[str, Any]
    schema: Schema

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Of two linked tables, the rows of each by its name."""
        return {name: rows for name, (rows, _) in unlink(self.table, self.schema).items()}

    def write(self, out: str | Path, *, escape_formulas: bool = False) -> None:
        """Write the rows as the original was written, whole or not at all; a ZIP of linked ones.

        Beside it OUT.synthetic.json says what it is, and OUT.not-private.json where it has no
        differential privacy.

        Args:
          escape_formulas: put an apostrophe before text that a spreadsheet would run (CSV only).

        Raises:
          ValueError: the file has another ending.
        """
        endings = (".zip",) if self.schema.linked else table_files.OUT_ENDINGS
        path = table_files.out_path(Path(out), endings=endings, inputs=[])
        if not self.certificate["private"]:
            table_files.mark_without_privacy(path, self.certificate)
        papers, schema = self.certificate, self.schema
        table_files.write_table(
            self.table, path, papers, schema=schema, escape_formulas=escape_formulas
        )


@dataclass(frozen=True, kw_only=True)
class Synthetic(_Rows):
    """What a run came to.

    Attributes:
      ledger: what was recorded, in words.
      measured: what paid questions (`pay="share income=>50K"`) came to, a sentence each.
    """

    guarantee: Guarantee
    ledger: str
    measured: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Drawn(_Rows):
    """Rows that were drawn from a trained model."""

    facts: ShapeFacts


def read_table(
    path: str | Path, *, query: str = "", schema: Schema | str | Path | None = None
) -> pd.DataFrame:
    """The rows of a table, as every command reads them, in memory.

    How they were read goes along in `attrs`, so that what is made of the rows is written alike.

    Args:
      path: a CSV, TSV, Parquet or Excel file, a folder of Parquet files, or the address of a
        database or an object store.
      schema: that exists already, or its file: each cell is read as its column declares it. Without
        one, what columns are is proposed from all rows together.
    """
    declared = schema_of(schema)
    rows, known = table_files.read_file(location(str(path)), query=query, schema=declared)
    frame = table_files.typed_frame(rows, known)
    if declared is not None:
        table_files.say_misfits(rows, declared.columns)
    mark_read(frame, known, declared=declared is not None)
    return frame


def models() -> tuple[Card, ...]:
    """The models, see the command `models`."""
    return cards()


def schema(frame: pd.DataFrame, *, target: str | None = None, rule: Sequence[str] = ()) -> Schema:
    """The proposed schema of a table, to check and change; see the command `schema`.

    Args:
      target: the column that others should predict.
      rule: what holds in every row, see `--rule`.
    """
    rows, proposed = rows_of(frame, None)
    typed = rows if isinstance(rows, pd.DataFrame) else table_files.typed_frame(rows, proposed)
    return with_rules(with_target(proposed, target), rule, typed)


def plan(
    frame: pd.DataFrame,
    *,
    epsilon: float,
    model: str = "pearl",
    schema: Schema | str | Path | None = None,
    **options: Any,
) -> Plan:
    """What a run itself would spend, without what `learned_by` adds. See the command `plan`.

    Args:
      epsilon: > 0, or inf for no privacy.
      model: an id that `models` gives.
      options: the command's own, by name, such as `target="income"`.
    """
    asked = _options({"epsilon": epsilon, "model": model, **options}, schema)
    synthesis.check_amounts(asked.request)
    return synthesis.foreseen(asked, *typed_rows_of(asked, frame, schema))[1]


def synthesize(
    frame: pd.DataFrame,
    *,
    epsilon: float,
    model: str = "pearl",
    schema: Schema | str | Path | None = None,
    **options: Any,
) -> Synthetic:
    """Make a synthetic table in this process. See the command `synth`.

    Args:
      epsilon: > 0, or inf for no privacy (with `without_privacy=True`).
      model: an id that `models` gives.
      schema: as declared, or its file. Without it, and without `declare_public=True`, the run
        learns bounds and lists with noise, for a part of ε.
      options: the command's own, by name: `rows=500`, `target="income"`, `settings={"steps": 99}`,
        `rule=["start <= end"]`, `save="folder"`. `name` is the table's in certificate and ledger.

    Raises:
      ValueError: one plain line; says what was spent, if anything.
    """
    asked = _options({"epsilon": epsilon, "model": model, **options}, schema)
    synthesis.check_options(asked)
    return _synthetic(
        synthesis.synthesize(asked, *typed_rows_of(asked, frame, schema), on_event=_go_on)
    )


def _synthetic(made: synthesis.Synthesis) -> Synthetic:
    return Synthetic(
        table=made.outcome.tables.synthetic,
        guarantee=made.outcome.guarantee,
        certificate=made.certificate,
        ledger=made.ledger,
        measured=made.measured,
        schema=made.schema,
    )


def synthesize_linked(
    frame: pd.DataFrame,
    *linked: pd.DataFrame,
    epsilon: float,
    key: str,
    order: str | None = None,
    rows_per_person: int | None = None,
    model: str = "scan_focus",
    names: Sequence[str] = ("people", "events"),
    **options: Any,
) -> Synthetic:
    """Make synthetic tables whose keys match; see `--linked` of the command `synth`.

    Args:
      frame: one row a person.
      linked: rows of the same people, one table or several, or rows of such rows.
      key: the column that says who, "id=user_id" where it is called otherwise in `linked`, and
        "home=home,people.id" where the second one's rows belong to rows of `people`.
      order: the column of `linked` that sorts its rows; of several, "day,when".
      rows_per_person: at most so many rows of one person are used of each; public.

    Raises:
      ValueError: one plain line; says what was spent, if anything.
    """
    asked = _options({"epsilon": epsilon, "model": model, "name": names[0], **options}, None)
    synthesis.check_options(asked)
    read = (rows_of(rows, None) for rows in (frame, *linked))
    given = zip(read, names, keys_of(key, len(linked)), strict=True)
    files = [LinkedFile(rows, schema, name, own) for (rows, schema), name, own in given]
    all_rows = link_all(files, order=order, most=rows_per_person)
    typed = with_schema(asked, all_rows.rows, all_rows.schema)
    return _synthetic(synthesis.synthesize(asked, *typed, on_event=_go_on))


def sample(
    run: str | Path,
    *,
    rows: int,
    where: Sequence[str] = (),
    share: str | None = None,
    fill_missing: bool = False,
    seed: int | None = None,
    without_privacy: bool = False,
) -> Drawn:
    """More rows of a trained model, and how common such rows are in what it draws.

    Spends nothing. See the command `sample`.

    Args:
      run: a folder that `save` named, or a run of the workspace: id or folder.
      rows: ≥ 1.
      where: conditions that every row keeps, such as "age=40..60".
      share: shares of one column's values, such as "sex:F=.5,M=.5".
      without_privacy: whether rows of a run without differential privacy are wanted.

    Raises:
      ValueError: one plain line; such rows cannot be had, or are too rare.
    """
    trained = trained_model(str(run))
    if not trained.private:
        table_files.require_consent(given=without_privacy)
    limit_threads()
    shape = Shape(where=tuple(where), share=share, fill_missing=fill_missing)
    fitted = load_fitted(trained.model, trained.folder)
    drawn = draw_shaped(fitted, rows, shape, seed)
    return Drawn(
        table=drawn.table,
        facts=drawn.facts,
        certificate=certificate_of(trained.certificate, [drawn.facts]),
        schema=trained.written(fitted.domain),
    )


def replicas(run: str | Path, *, count: int = COUNT) -> tuple[Replica, ...]:
    """Repeat a finished run on rows of its own model, for error bars; made once, then read.

    Spends nothing. See the command `replicas`.

    Args:
      run: of the workspace: its id or folder.
      count: how many in all, ≥ 1.
    """
    limit_threads()
    make(run, _go_on, count=count)
    with open_store() as store:
        return replicas_of(store.artefacts(Path(run).name))


def ask(run: str | Path, statistic: str, of: str = "", **asked: Any) -> Answer:
    """A figure of a run's synthetic table, and how far it may be off; see the command `ask`.

        ask("4f2a", "share", "readmitted=yes", where=["age=60.."])
        ask("4f2a", "logistic", "readmitted=yes", by=["age", "triage"])

    Args:
      run: of the workspace: its id or folder.
      asked: the command's options by name: "by", "where", "at", "level".

    Raises:
      ValueError: one plain line; it cannot be asked of this table.
    """
    return ask_run(run, statistic, of, **asked)


def review(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    *,
    schema: Schema | None = None,
    holdout: pd.DataFrame | None = None,
) -> Report:
    """A synthetic table against the real one; inside only. See the command `review`.

    Args:
      schema: as declared; proposed from the real rows when None.
      holdout: real rows that no model saw.
    """
    from core.quality.report.build_report import build_report  # scikit-learn, POT

    limit_threads()
    declared = rows_of(real, None)[1] if schema is None else schema
    return build_report(real, synthetic, declared, test=holdout)


def _go_on(event: FitEvent) -> Signal:
    return Signal.GO_ON


def _options(given: Mapping[str, Any], schema: Schema | str | Path | None) -> SynthesisOptions:
    """Options as the command line has them; `name` is the table's."""
    own = {option: value for option, value in given.items() if option != "name"}
    table = str(given.get("name", "table"))
    return options_of(own, table=table, declared=schema is not None)
