"""Options that several commands share, and those of `sample`; nothing heavy is imported here."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.services.synthesis.locations import PASSWORD, Url, location

# those of `core.inference.questions`, which `--help` must not wait for
STATISTICS = (
    "count", "share", "mean", "quantile", "table", "difference", "linear", "logistic", "survival",
)  # fmt: skip
TABLE = (
    "CSV, TSV, Parquet or Excel file, a folder of Parquet files, or an address: postgresql://, "
    "sqlite:///, s3://"
)


def files(*tables: Path | Url | None) -> list[Path]:
    """Those of some tables that are files, which no output may replace."""
    return [table for table in tables if isinstance(table, Path)]


def table_options(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The table, and the query that it needs where it is a database."""
    command.add_argument("table", type=location, nargs="?" if optional else None, help=TABLE)
    command.add_argument(
        "--query",
        default="",
        metavar="SQL",
        help="what to read from a database, one SELECT; the password may stand in "
        f"{PASSWORD} instead of in the address",
    )


def escape_and_flag(command: argparse.ArgumentParser) -> None:
    """Add what every command that writes synthetic rows takes."""
    command.add_argument(
        "--escape-formulas",
        action="store_true",
        help="CSV only: put an apostrophe before text that a spreadsheet would run as a formula",
    )
    command.add_argument(
        "--without-privacy",
        action="store_true",
        help="write a table that has no differential privacy (--epsilon inf); OUT.not-private.json "
        "beside it says so",
    )


def person_options(command: argparse.ArgumentParser) -> None:
    """Whose rows are protected together."""
    command.add_argument(
        "--person",
        metavar="COL[,COL]",
        help="columns that say together who a row is of: ε is then per person, not per row",
    )
    command.add_argument(
        "--rows-per-person",
        type=int,
        metavar="M",
        help="at most M rows of one person; with --person more are left out (10 when not given), "
        "without it your word for it, and all noise is for M rows",
    )


def output_options(command: argparse.ArgumentParser) -> None:
    """Where rows of `synth` go."""
    command.add_argument(
        "--out", type=Path, required=True, help="a .csv or .parquet file, or with --linked a .zip"
    )
    command.add_argument(
        "--to",
        metavar="ADDRESS",
        help="also write new tables, with keys that hold, to postgresql://user@host/database or "
        f"sqlite:///file.db; the password may stand in {PASSWORD}",
    )


def linked_options(command: argparse.ArgumentParser) -> None:
    """A second file, and how a person's rows follow on one another."""
    command.add_argument(
        "--linked",
        type=Path,
        action="append",
        metavar="FILE",
        help="a second file with rows of the same people, such as visits: how they follow on one "
        "another is learned, and --out is a .zip of the files, whose keys match; --rows-per-person "
        "says how many rows of one person are used; again for another file, also for one whose "
        "rows belong to rows of a linked one",
    )
    command.add_argument(
        "--key",
        metavar="COL[=COL[,COL]]",
        help="the column that says who, in the table and, if it is called otherwise there, in the "
        "linked file or each of them; FILE.COL where rows belong to rows of a linked file "
        "(household=household,people.person), FILE.COL=COL if it is called otherwise",
    )
    command.add_argument(
        "--order",
        metavar="COLUMN",
        help="the column that sorts a person's rows, of the linked file or with --person: how they "
        "follow on one another is learned; of several linked files, one each, COL,COL",
    )
    command.add_argument(
        "--constant",
        metavar="COL[,COL]",
        help="with --person: columns that hold one value for a person",
    )
    command.add_argument(
        "--counter",
        metavar="COLUMN",
        help="with --order: a column that counts a person's rows in that order, 1, 2, 3, …",
    )


def sample_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `sample`."""
    command.add_argument(
        "run", help="a folder that `synth --save` wrote, or a run of the workspace: id or folder"
    )
    command.add_argument("--rows", type=int, required=True, help="of each table, at least 1")
    _where(command)
    command.add_argument(
        "--share",
        metavar="SHARES",
        help="shares of one column's values: sex:F=.5,M=.5 or age:..39=.3,40..=.7; what is left "
        "of 1 goes to all other values",
    )
    command.add_argument(
        "--fill-missing",
        action="store_true",
        help="no missing cells: they come from the most similar drawn row; rows of people are left "
        "out instead",
    )
    command.add_argument(
        "--seed",
        type=int,
        action="append",
        help="of what is drawn; again for another table, whose seed is then in its name "
        "(x.seed-1.csv)",
    )
    command.add_argument(
        "--out",
        type=Path,
        required=True,
        help="a .csv or .parquet file, or a .zip of tables, dictionary and certificate",
    )
    escape_and_flag(command)


def ask_options(command: argparse.ArgumentParser) -> None:
    """Add the options of `ask`."""
    command.add_argument("run", help="a finished run of the workspace: its id or folder")
    command.add_argument("statistic", choices=STATISTICS, help="what is computed")
    command.add_argument(
        "of", nargs="?", default="", help="a column, or one with a value: readmitted=yes, age=60.."
    )
    command.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="the other column of a cross table, a predictor (again for another), the groups of a "
        "difference as sex=F|M, or what ends a survival time as died=yes",
    )
    _where(command)
    command.add_argument("--at", type=float, default=0.5, help="level of a quantile (.5)")
    command.add_argument("--level", type=float, default=0.95, help="of the intervals (.95)")


def _where(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="only rows with this value: readmitted=yes, ward=a|b, age=40..60, age=40.., "
        "visited=2024-01-01..2024-06-30, or bmi= for missing; again for another condition",
    )


def added_options(command: argparse.ArgumentParser) -> None:
    """What is protected or paid for beside the model's own training."""
    command.add_argument(
        "--sensitive",
        action="append",
        metavar="A,B",
        help="columns whose distribution must not be revealed; again for another group",
    )
    command.add_argument(
        "--alpha",
        type=float,
        help="level of the tests of tagged columns in all attempts together (.05)",
    )
    command.add_argument(
        "--shift",
        type=float,
        help="how different tagged columns must be: the share of groups of 128 records that would "
        "notice, above .06, to .99; 0 for none, with a model whose training hides by itself (PPEM)",
    )
    command.add_argument(
        "--confirm-shift",
        metavar="WORDS",
        help="allow a release that may undo what earlier ones hide; certificates repeat the words",
    )
    command.add_argument(
        "--confirm-unit",
        metavar="WORDS",
        help="allow a release that protects others than earlier ones do, such as doctors after "
        "patients; certificates repeat the words",
    )
    command.add_argument(
        "--certificate",
        type=float,
        metavar="EPSILON",
        help="pay this much ε, for each group and attempt, for a private certificate",
    )
    command.add_argument(
        "--score",
        type=float,
        metavar="SHARE",
        help="share of the budget, up to .5, that buys a noisy score: runs can be compared by it "
        "without looking at real data",
    )
    command.add_argument(
        "--review",
        type=float,
        metavar="SHARE",
        help="share of the budget, up to .5, that buys noisy pictures of real columns for people "
        "outside; synth --save keeps them as outside.html",
    )
    command.add_argument(
        "--attempts", type=int, help="begin anew until the check passes; all are paid"
    )


def pay_options(command: argparse.ArgumentParser) -> None:
    """Questions whose figures are bought for people outside."""
    command.add_argument(
        "--pay",
        action="append",
        metavar="QUESTION",
        help="measure a question on the real rows, with noise, for 2 %% of the budget: 'share "
        "readmitted=yes --where=age=60..', or mean, count, difference; again for another",
    )
