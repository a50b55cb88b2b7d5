"""The command line: the same services as the pages, no browser.

    python -m core.cli schema | plan | synth | sample | ask | review | evidence | ledger | audit …

With `--json` the last line of the output is one JSON object, an error too: "error" and "exit". An
error is one line on stderr and exit code 2; a file is written whole or not at all.
"""

# Everything heavier than argparse is imported where it is used: `--help` and a typing error answer
# at once.
from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import traceback
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NoReturn

from core.cli import shared_options as shared

FAILED = 2
ADDRESS = re.compile(r"\S+://\S+")
INTERRUPTED = 130
EXIT_CODES = {
    0: "Done.",
    1: "`audit` only: the claim is refuted.",
    FAILED: "Refused or failed: one line on stderr says what happened and what to do, and no file "
    "is half-written. Of `ledger verify`: the chain is broken.",
    INTERRUPTED: "Stopped from the keyboard; what was spent stays spent, no file was written.",
}


class _UsageError(ValueError):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        hidden = ADDRESS.sub("ADDRESS", message)  # one in the wrong place may hold a password
        raise _UsageError(f"{hidden} (see: {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one command; one of `EXIT_CODES`.

    Args:
      arguments: of the command line, without the program's name.
    """
    debug = False
    try:
        options = command_line().parse_args(arguments)
        debug = options.traceback
        module = importlib.import_module(f"core.cli.{options.module}")
        status: int = getattr(module, options.command)(options)
    except KeyboardInterrupt:
        words = "stopped; what was spent stays spent, no file was written"
        return _ended(words, INTERRUPTED, arguments)
    except Exception as error:
        # the process's edge: whatever it is, people get one line
        if debug:
            traceback.print_exc()
        return _ended(_plain(error), FAILED, arguments)
    return status


def _ended(words: str, status: int, arguments: Sequence[str] | None) -> int:
    """Say on stderr why there is no result, and with `--json` on stdout too; the exit code."""
    print(f"error: {words}", file=sys.stderr)
    if "--json" in (sys.argv[1:] if arguments is None else arguments):
        print(json.dumps({"error": words, "exit": status}, ensure_ascii=False), flush=True)
    return status


def _plain(error: Exception) -> str:
    """One line on an error; the text of those that are known to quote no private value."""
    if isinstance(error, _UsageError):
        return str(error)
    # an error's class is only asked for once there is an error; --help must not wait for pandas
    from core.privacy.ledger.admission import LedgerError
    from core.reading.cells import TableReadError
    from core.runs.errors import RunStoreError, storage_trouble
    from core.runs.execution.pipeline import DeviceError
    from core.schema.column import SchemaError
    from core.services.synthesis.options import RefusedError

    known = (RefusedError, LedgerError, DeviceError, RunStoreError, TableReadError, SchemaError)
    if isinstance(error, known):
        return " ".join(str(error).split())
    trouble = None if isinstance(error, OSError) else storage_trouble(error)
    if trouble is not None:
        return trouble
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}: {error.filename or 'a file'}"
    return f"an unexpected problem ({type(error).__name__}); --traceback shows where"


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands; a wrong command line raises ValueError with one line."""
    parser = _Parser(prog="python -m core.cli", description="Private synthetic tables.")
    parser.add_argument("--traceback", action="store_true", help="show where an error arose")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    commands.add_parser("models", help="the models, one line each")
    schema = commands.add_parser("schema", help="a table's proposed schema, to check and change")
    _schema_options(schema)
    plan = commands.add_parser("plan", help="what a run would spend; touches no row for it")
    synth = commands.add_parser("synth", help="make a synthetic table")
    for command in (plan, synth):
        _plan_options(command)
    _synth_options(synth)
    sample = commands.add_parser("sample", help="more rows of a trained model; spends nothing")
    shared.sample_options(sample)
    ask = commands.add_parser("ask", help="a figure of a run, and how far off it may be; is free")
    shared.ask_options(ask)
    review = commands.add_parser("review", help="compare a synthetic table with the real one")
    _review_options(review)
    evidence = commands.add_parser("evidence", help="what those need who must judge a release")
    _evidence_options(evidence)
    replicas = commands.add_parser(
        "replicas", help="repeat a run on rows of its own model, for error bars; spends nothing"
    )
    replicas.add_argument("run", help="a finished run of the workspace: its id or folder")
    replicas.add_argument("--count", type=int, default=20, help="how many in all (20)")
    ledger = commands.add_parser("ledger", help="what was spent on which table")
    ledger.add_argument(
        "what",
        nargs="?",
        default="show",
        choices=("show", "verify"),
        help="verify recomputes the chain of hashes",
    )
    audit = commands.add_parser(
        "audit", help="attack a model's own code for a lower bound on its ε; 1 refutes its claim"
    )
    _audit_options(audit)
    for name, command in commands.choices.items():
        command.set_defaults(module="synth" if name == "plan" else name, command=name)
        command.add_argument("--traceback", action="store_true", default=argparse.SUPPRESS)
        command.add_argument("--json", action="store_true", help="one JSON object, last line")
    return parser


def _schema_options(command: argparse.ArgumentParser) -> None:
    shared.table_options(command, optional=True)
    command.add_argument(
        "--delimiter",
        choices=("comma", "semicolon", "tab", "bar"),
        help="what separates the cells of a text file; by default as its first lines suggest",
    )
    command.add_argument(
        "--encoding",
        metavar="NAME",
        help="of a text file, such as utf-8 or cp1252; by default as its first lines suggest",
    )
    command.add_argument("--target", help="the column that others should predict")
    _rule(command)
    command.add_argument(
        "--like",
        type=Path,
        metavar="FILE",
        help="a schema of an earlier table: columns of the same name are declared as there, and "
        "what is new, gone or declared otherwise is said",
    )
    command.add_argument(
        "--json-schema",
        action="store_true",
        help="print or write what a schema file may hold, as JSON Schema; needs no table",
    )
    command.add_argument("--out", type=Path, help="a .json file; needed with a table")


def _synth_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--rows", type=int, help="synthetic rows; as many as there are records")
    command.add_argument("--seed", type=int, help="of data-free randomness, never of noise")
    command.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        help="where to compute; auto takes a graphics card when there is one",
    )
    shared.output_options(command)
    command.add_argument(
        "--save",
        type=Path,
        metavar="FOLDER",
        help="a new folder for the trained model and its certificate, from which `sample` draws",
    )
    shared.escape_and_flag(command)
    command.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _review_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("real", type=Path, help="the real table")
    command.add_argument("synthetic", type=Path, help="the synthetic table")
    command.add_argument("--holdout", type=Path, help="real records that no model saw")
    _keep_out(command)
    command.add_argument("--target", help="the column to predict")
    _declaration(command)
    command.add_argument(
        "--view",
        default="inside",
        choices=("inside", "outside"),
        help="outside: figures of the synthetic table alone, in the schema's bins",
    )
    command.add_argument(
        "--group",
        action="append",
        metavar="COLUMN",
        help="figures within its values, also NIST's score; again for groups of two columns",
    )
    command.add_argument(
        "--columns-at-a-time", type=int, default=2, choices=(1, 2, 3, 4), help="for NIST's score"
    )
    command.add_argument("--out", type=Path, required=True, help="a .html file")


def _audit_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", required=True, help="an id that `models` prints")
    command.add_argument("--epsilon", type=float, required=True, help="the claim, > 0")
    command.add_argument("--delta", type=float, help="min(1e-6, 1/(10 n)) when left out")
    command.add_argument(
        "--rows-per-person",
        type=int,
        default=1,
        metavar="M",
        help="attack people who have M rows each",
    )
    command.add_argument("--canaries", type=int, help="records that a coin puts in or leaves out")
    command.add_argument("--seed", type=int, help="the user's; the attacker knows it")
    command.add_argument("--long", action="store_true", help="default settings; minutes a model")


def _evidence_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", help="a finished run of the workspace: its id or folder")
    command.add_argument("--out", type=Path, required=True, help="a .zip file")
    command.add_argument(
        "--view",
        choices=("outside", "inside"),
        default="outside",
        help="inside adds what was measured on real rows without noise, such as attacks",
    )
    for name in ("organisation", "purpose", "recipient", "legal-basis"):
        command.add_argument(f"--{name}", metavar="WORDS", help="for the sheets; kept with the run")
    command.add_argument(
        "--review-date", type=date.fromisoformat, help="when this is looked at again: 2027-01-31"
    )
    command.add_argument(
        "--language", choices=("en", "de"), default="en", help="of the sheets and the report"
    )


def _keep_out(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep-out",
        type=float,
        metavar="SHARE",
        help="share of records kept out of training, by their place in the file, 0 to .5",
    )


def _rule(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rule",
        action="append",
        metavar="RULE",
        help="what holds in every row and shall in the synthetic table: 'label <- code', "
        "'if age < 15 then income is missing', 'start <= end', 'booked = paid', "
        "'total = a + b', 'stay = end - start', 'combinations a, b', 'missing together a, b' or, "
        "of a person's next row, 'start[t+1] >= end[t]'; again for another rule",
    )


def _declaration(command: argparse.ArgumentParser) -> None:
    command.add_argument("--schema", type=Path, help="a declared schema, as `schema` writes it")
    command.add_argument(
        "--declare-public",
        action="store_true",
        help="declare public, unseen, the bounds and categories that are read from the rows",
    )


def _learning(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--learn",
        action="append",
        default=[],
        metavar="COLUMN",
        help="learn this column's bounds or list with noise although it is declared; without "
        "--schema and --declare-public all columns are learned",
    )
    command.add_argument(
        "--references",
        action="store_true",
        help="before learning, use domains that anybody could name by a column's name and kind, "
        "such as ages from 0 to 120",
    )
    command.add_argument(
        "--learned-by",
        metavar="RUN",
        help="use what a finished run about the same people learned: its id or folder, or a folder "
        "that `synth --save` wrote; the claim adds what that run spent on learning",
    )


def _plan_options(command: argparse.ArgumentParser) -> None:
    shared.table_options(command)
    command.add_argument("--model", required=True, help="an id that `models` prints")
    command.add_argument("--epsilon", type=float, required=True, help="> 0, or inf for no privacy")
    command.add_argument("--delta", type=float, help="min(1e-6, 1/(10 n)) when left out")
    command.add_argument("--target", help="the column that others should predict")
    _declaration(command)
    _learning(command)
    _keep_out(command)
    _rule(command)
    shared.person_options(command)
    shared.linked_options(command)
    command.add_argument(
        "--people",
        metavar="NAME",
        help="whose people these are: an account that `ledger show` lists, or a name for another; "
        "'new' for people no earlier table is about; by default whose rows they share",
    )
    command.add_argument(
        "--settings",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="advanced settings of the model; docs/reference.md lists them",
    )
    shared.added_options(command)
    shared.pay_options(command)
