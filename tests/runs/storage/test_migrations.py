"""Databases of earlier versions become today's, on SQLite and PostgreSQL; newer ones are refused.

Earlier states are those that the models had in the project's history before steps were counted:
each lacked a few tables, the first ones a column of `runs`; nothing else ever changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, String, event, inspect, text

from core.privacy.ledger.entries import entries_table
from core.runs.errors import RunStoreError
from core.runs.storage.engine import open_engine
from core.runs.storage.migrations import current
from core.runs.storage.migrations.current import HEAD, METADATA, bring_up_to_date, migrating
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace
from core.services import runs
from tests.postgres_server import BOTH

pytestmark = BOTH
FIXTURES = Path(__file__).parents[2] / "fixtures"
WORDS = "shift_words"  # the one column that came later
# what each earlier version's models lacked, oldest first
LATER = ("notes", "looks", "sketches", "access", "purchases")
STATES = {
    "first": (WORDS, *LATER),
    "notes": (WORDS, *LATER[1:]),
    "looks": (WORDS, *LATER[2:]),
    "sketches without looks": ("looks", "access", "purchases"),
    "sketches": ("access", "purchases"),
    "access": ("purchases",),
    "last uncounted": (),
}
ROWS = {
    "tables": {"id": "t1", "name": "visits", "n": 40, "source": "a file", "created": 1.7e9 + 0.125,
               "account_id": "p1", "schema": "{}", "profile": '{"n": 40}'},
    "runs": {"id": "r1", "table_id": "t1", "name": "", "plan": "{}", "schema": "{}", "rows": 5,
             "device": "cpu", "confirmation": "", "state": "done", "signal": "go on",
             "message": "Done.", "created": 1.7e9 + 0.5, "queued": 1.7e9, "attempt": 1,
             "guarantee": "{}", "seconds": "{}", "seed": 7},
    "events": {"run_id": "r1", "seq": 1, "time": 1.7e9, "kind": "state", "data": '{"a": 1}'},
    "notes": {"table_id": "t1", "run_id": "r1", "time": 1.7e9, "author": "Ada", "kind": "comment",
              "view": "inside", "about": "", "text": "Good."},
    "sketches": {"table_id": "t1", "account_id": "p1", "title": "visits", "created": 1.7e9,
                 "exact": "e", "body": b"\x00\x01", "alike": "[]", "words": ""},
    "ledger": {"seq": 1, "account_id": "p1", "run": "r1", "body": "{}", "hash": "f" * 64},
}  # fmt: skip

ENDS = pytest.mark.parametrize(
    "lacks", [STATES["first"], STATES["last uncounted"]], ids=["first", "last"]
)


@pytest.fixture
def engine(database: str, tmp_path: Path) -> Iterator[Engine]:
    Workspace(tmp_path / "home")
    opened = open_engine(database)
    yield opened
    opened.dispose()


def earlier(engine: Engine, lacks: tuple[str, ...]) -> None:
    """Make the database of an earlier version, with a row in each table."""
    ddl = (FIXTURES / f"unversioned.{engine.dialect.name}.sql").read_text(encoding="utf-8")
    with engine.begin() as connection:
        for statement in ddl.partition("\n")[2].split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)
        entries_table.create(connection)
        for name in set(lacks) - {WORDS}:
            connection.exec_driver_sql(f"DROP TABLE {name}")
        if WORDS in lacks:
            connection.exec_driver_sql(f"ALTER TABLE runs DROP COLUMN {WORDS}")
        for name, row in ROWS.items():
            if name not in lacks:
                columns, values = ", ".join(row), ", ".join(f":{key}" for key in row)
                connection.execute(text(f"INSERT INTO {name} ({columns}) VALUES ({values})"), row)


def form(engine: Engine) -> dict[str, object]:
    """Every table with its columns, indexes and keys, and what step the database says it is at."""
    look = inspect(engine)
    tables: dict[str, object] = {
        name: (
            sorted((c["name"], str(c["type"]), c["nullable"]) for c in look.get_columns(name)),
            sorted(str(index["name"]) for index in look.get_indexes(name)),
            sorted(str(key["referred_table"]) for key in look.get_foreign_keys(name)),
        )
        for name in look.get_table_names()
    }
    if "alembic_version" in tables:
        with engine.connect() as connection:
            mark = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        tables["at"] = mark
    return tables


def content(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """All rows of the tables that `ROWS` fills and that are there, in the columns it names."""
    there = inspect(engine).get_table_names()
    with engine.connect() as connection:
        return {
            name: [
                dict(found._mapping)
                for found in connection.exec_driver_sql(f"SELECT {', '.join(row)} FROM {name}")
            ]
            for name, row in ROWS.items()
            if name in there
        }


def other_default(*compared: object) -> bool:
    """Whether two defaults differ; Alembic takes SQLite's empty text for another one."""
    there, wanted = (
        None if default is None else str(default).partition("::")[0].strip("()'")
        for default in (compared[3], compared[5])
    )
    return there != wanted


def differences(engine: Engine) -> list[object]:
    """What Alembic would change to make the database what the models say."""
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": other_default}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, list(METADATA)))


def test_the_newest_step_is_the_one_the_code_names(database: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(current.FOLDER))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [HEAD]
    steps = sorted((current.FOLDER / "versions").glob("step_*.py"))
    assert [path.stem.removeprefix("step_") for path in steps] == sorted(
        step.revision for step in script.walk_revisions()
    )


def test_a_new_database_is_what_the_models_say(engine: Engine) -> None:
    bring_up_to_date(engine)
    assert differences(engine) == [] and form(engine)["at"] == HEAD


@pytest.mark.parametrize("lacks", STATES.values(), ids=STATES)
def test_an_earlier_database_becomes_what_the_models_say(
    engine: Engine, lacks: tuple[str, ...]
) -> None:
    earlier(engine, lacks)
    before = content(engine)
    assert differences(engine) or lacks == ()
    bring_up_to_date(engine)
    assert differences(engine) == [] and form(engine)["at"] == HEAD
    after = content(engine)
    assert {name: after[name] for name in before} == before
    with engine.connect() as connection:
        looks = connection.exec_driver_sql("SELECT run_id, author, account_id FROM looks").all()
        words = connection.exec_driver_sql(f"SELECT {WORDS} FROM runs").scalars().all()
    # a run that ended before looks were recorded counts as looked at; later ones do not
    assert [tuple(look) for look in looks] == ([("r1", "", "p1")] if "looks" in lacks else [])
    assert words == [""]


@ENDS
def test_made_at_once_and_made_by_steps_are_the_same(
    engine: Engine, lacks: tuple[str, ...], tmp_path: Path
) -> None:
    with migrating(engine) as connection:
        current._make(connection)
    at_once = form(engine)
    with migrating(engine) as connection:
        for metadata in (*METADATA, current._mark.metadata):
            metadata.drop_all(connection)
    earlier(engine, lacks)
    bring_up_to_date(engine)
    assert form(engine) == at_once


class Cut(Exception):
    pass


@ENDS
def test_what_fails_in_the_middle_changes_nothing(engine: Engine, lacks: tuple[str, ...]) -> None:
    """At every statement that changes something: the database stays as it was, and opens next."""
    earlier(engine, lacks)
    before, rows = form(engine), content(engine)
    changes = {"at": 0, "stop": 0}

    def count(_connection, _cursor, statement, *_more: object) -> None:
        if statement.lstrip().split(" ")[0].upper() in ("CREATE", "ALTER", "INSERT", "UPDATE"):
            changes["at"] += 1
            if changes["at"] == changes["stop"]:
                raise Cut

    event.listen(engine, "before_cursor_execute", count)
    for stop in range(1, 100):
        changes.update(at=0, stop=stop)
        try:
            bring_up_to_date(engine)
        except Cut:
            assert form(engine) == before and content(engine) == rows, stop
            continue
        break
    assert stop > 3 and differences(engine) == [], "some were cut, and the last one was not"


KILLED = """
import os, sys
from sqlalchemy import event
from core.runs.storage.engine import open_engine
from core.runs.storage.migrations.current import bring_up_to_date
engine = open_engine(sys.argv[1])

def kill(_connection, _cursor, statement, *_more):
    if "INSERT INTO alembic_version" in statement: os.kill(os.getpid(), 9)

event.listen(engine, "before_cursor_execute", kill)
bring_up_to_date(engine)
"""


def test_a_process_killed_at_it_leaves_it_to_the_next(engine: Engine, database: str) -> None:
    earlier(engine, STATES["first"])
    before = form(engine)
    engine.dispose()
    done = subprocess.run(
        [sys.executable, "-m", "tests.script", KILLED, database], cwd=PROJECT_ROOT, check=False
    )
    assert done.returncode == -9
    assert form(engine) == before
    bring_up_to_date(engine)
    assert differences(engine) == []


def test_a_newer_database_is_refused_and_stays_as_it_is(engine: Engine, tmp_path: Path) -> None:
    bring_up_to_date(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0099'")
        connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN unheard_of INTEGER")
    before = form(engine)
    with pytest.raises(RunStoreError, match="Nothing was changed. Start the newer version"):
        RunStore(Workspace(tmp_path / "home"))
    assert form(engine) == before


OPENED = """
import sys, time
from pathlib import Path
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
sys.stdin.readline()
with RunStore(Workspace(Path(sys.argv[1]))) as store:
    print(len(store.runs()))
"""


def test_a_database_that_another_process_makes_between_two_looks(
    engine: Engine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, look = open_engine(database), current.inspect

    def late(connection: object) -> object:
        monkeypatch.setattr(current, "inspect", look)
        bring_up_to_date(other)
        return look(connection)

    monkeypatch.setattr(current, "inspect", late)
    bring_up_to_date(engine)
    other.dispose()
    assert form(engine)["at"] == HEAD


@pytest.mark.parametrize("state", ["empty", "first"])
def test_processes_that_open_it_at_once_all_find_it_done(
    engine: Engine, tmp_path: Path, state: str
) -> None:
    home = tmp_path / "home"
    if state != "empty":
        earlier(engine, STATES[state])
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM runs")  # what they hold here is no run's
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.script", OPENED, str(home)],
            cwd=PROJECT_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120) for process in processes]
    assert [out for out, _ in said] == ["0\n"] * 4, said
    assert differences(engine) == []


def test_alembic_is_imported_only_where_a_step_is_needed(engine: Engine, tmp_path: Path) -> None:
    look = (
        "import sys; from pathlib import Path; from core.runs.storage.store import RunStore;"
        "from core.runs.workspace import Workspace;"
        "RunStore(Workspace(Path(sys.argv[1]))).close(); print('alembic' in sys.modules)"
    )

    def asked() -> bool:
        command = [sys.executable, "-c", look, str(tmp_path / "home")]
        done = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
        return bool(json.loads(done.stdout.lower()))

    assert not asked(), "a new database"
    assert not asked(), "one of this version"
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE sign_ins")  # of the last step
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        for table, column in (("runs", "unit_words"), ("sketches", "owner")):
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    assert asked(), "one of an earlier version"


def test_a_table_made_anew_keeps_the_rows_that_hang_on_it(engine: Engine) -> None:
    """SQLite changes a table by making another; its events must not go with the old one."""
    earlier(engine, ())
    bring_up_to_date(engine)
    rows = content(engine)
    with migrating(engine) as connection:
        change = Operations(MigrationContext.configure(connection))
        with change.batch_alter_table("runs") as batch:
            batch.alter_column("device", existing_type=String(), nullable=True)
    assert content(engine) == rows and rows["events"] and rows["notes"]
    (device,) = (c for c in inspect(engine).get_columns("runs") if c["name"] == "device")
    assert device["nullable"]


@pytest.mark.databases("postgresql")
def test_a_database_that_is_not_utf8_is_refused(postgres_server, tmp_path, monkeypatch) -> None:
    url = postgres_server.fresh("-E", "LATIN1", "-T", "template0", "--locale", "C")
    monkeypatch.setenv("FACSIMILE_DATABASE", url)
    with pytest.raises(RunStoreError, match="UTF-8. Nothing was changed"):
        runs.open_store(tmp_path / "home")
    engine = open_engine(url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()
    postgres_server.drop(url)
