"""Databases are created, migrated or refused, on SQLite and PostgreSQL.

There is one revision so far: a second one is added to a copy of the steps to see how the next will
be migrated to.
"""

from __future__ import annotations

import json
import shutil
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
from sqlalchemy import Engine, String, Table, event, inspect

from core.runs.errors import RunStoreError
from core.runs.storage.engine import open_engine
from core.runs.storage.migrations import current
from core.runs.storage.migrations.current import HEAD, METADATA, bring_up_to_date, migrating
from core.runs.storage.store import RunStore
from core.runs.workspace import PROJECT_ROOT, Workspace
from core.services import runs
from tests.postgres_server import BOTH

pytestmark = [BOTH, pytest.mark.slow]
NEXT = "0.1.1"
NEXT_STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0.1.1", "0.1.0"


def upgrade():
    for table in ("tables", "runs"):
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("later", sa.String, nullable=False, server_default="new"))
"""
VALUES = {int: 1, float: 1.7e9 + 0.125, bool: True, bytes: b"\x00\x01", dict: {"n": 40}}


@pytest.fixture
def engine(database: str, tmp_path: Path) -> Iterator[Engine]:
    Workspace(tmp_path / "home")
    opened = open_engine(database)
    yield opened
    opened.dispose()


@pytest.fixture
def next_revision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process runs a later version, whose database has one more revision."""
    folder = tmp_path / "migrations"
    shutil.copytree(current.FOLDER, folder)
    (folder / "versions" / "step_0_1_1.py").write_text(NEXT_STEP)
    monkeypatch.setattr(current, "FOLDER", folder)
    monkeypatch.setattr(current, "HEAD", NEXT)


def created(engine: Engine) -> None:
    """Create the database of this version, with a row in each table."""
    with migrating(engine) as connection:
        current.create_tables(connection)
        current._revision.create(connection)
        connection.execute(current._revision.insert().values(version_num=HEAD))
        for table in ours():
            row = {
                column.name: VALUES.get(column.type.python_type, "a") for column in table.columns
            }
            connection.execute(table.insert().values(row))


def ours() -> list[Table]:
    return [table for metadata in METADATA for table in metadata.sorted_tables]


def form(engine: Engine) -> dict[str, object]:
    """Every table with its columns, indexes and keys, and the database's revision."""
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
            revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
            tables["at"] = revision.scalar()
    return tables


def content(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables, in the columns of this version."""
    with engine.connect() as connection:
        return {
            table.name: [dict(row._mapping) for row in connection.execute(table.select())]
            for table in ours()
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


@pytest.mark.databases("sqlite")
def test_the_newest_step_is_the_one_the_code_names(database: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(current.FOLDER))
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [HEAD]
    steps = sorted(path.name for path in (current.FOLDER / "versions").glob("step_*.py"))
    assert steps == sorted(current._file_name(step.revision) for step in script.walk_revisions())


def test_a_new_database_is_what_the_models_say(engine: Engine) -> None:
    bring_up_to_date(engine)
    assert differences(engine) == [] and form(engine)["at"] == HEAD


def test_created_at_once_and_by_steps_are_the_same(engine: Engine) -> None:
    bring_up_to_date(engine)
    at_once = form(engine)
    with migrating(engine) as connection:
        for metadata in (*METADATA, current._revision.metadata):
            metadata.drop_all(connection)
        current._upgrade(connection)
    assert form(engine) == at_once


@pytest.mark.usefixtures("next_revision")
def test_the_next_step_keeps_all_rows(engine: Engine) -> None:
    created(engine)
    before = content(engine)
    bring_up_to_date(engine)
    assert form(engine)["at"] == NEXT and content(engine) == before and all(before.values())
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT later FROM runs").scalars().all() == ["new"]


class Cut(Exception):
    pass


@pytest.mark.usefixtures("next_revision")
@pytest.mark.parametrize("empty", [True, False])
def test_what_fails_in_the_middle_changes_nothing(engine: Engine, empty: bool) -> None:
    """At every statement that changes something: the database stays as it was, and opens next."""
    if not empty:
        created(engine)
    before, rows = form(engine), {} if empty else content(engine)
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
            assert form(engine) == before and (empty or content(engine) == rows), stop
            continue
        break
    assert stop > 3 and form(engine)["at"] == NEXT, "some were cut, and the last one was not"


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


def test_a_killed_process_leaves_it_to_the_next(engine: Engine, database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.script", KILLED, database], cwd=PROJECT_ROOT, check=False
    )
    assert done.returncode == -9
    assert form(engine) == {}
    bring_up_to_date(engine)
    assert differences(engine) == []


@pytest.mark.parametrize("revision", ["0099", "0004", None])
def test_a_database_of_another_version_is_refused_by_name(
    engine: Engine, tmp_path: Path, revision: str | None
) -> None:
    created(engine)
    with engine.begin() as connection:
        if revision is None:  # of before revisions were recorded
            connection.exec_driver_sql("DROP TABLE alembic_version")
        else:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
        connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN unheard_of INTEGER")
    before, rows = form(engine), content(engine)
    name = Path(engine.url.database or "").name
    with pytest.raises(RunStoreError, match=f"'{name}' was made by another version"):
        RunStore(Workspace(tmp_path / "home"))
    assert form(engine) == before and content(engine) == rows


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


def test_processes_that_open_it_at_once_all_find_it_done(engine: Engine, tmp_path: Path) -> None:
    home = tmp_path / "home"
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

    def imported() -> bool:
        command = [sys.executable, "-c", look, str(tmp_path / "home")]
        done = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
        return bool(json.loads(done.stdout.lower()))

    assert not imported(), "a new database"
    assert not imported(), "one of this version"


def test_a_table_made_anew_keeps_the_rows_that_hang_on_it(engine: Engine) -> None:
    """SQLite changes a table by making another; its events must not go with the old one."""
    created(engine)
    rows = content(engine)
    with migrating(engine) as connection:
        change = Operations(MigrationContext.configure(connection))
        with change.batch_alter_table("runs") as batch:
            batch.alter_column("message", existing_type=String(), nullable=True)
    assert content(engine) == rows and rows["events"] and rows["notes"]
    (message,) = (c for c in inspect(engine).get_columns("runs") if c["name"] == "message")
    assert message["nullable"]


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
