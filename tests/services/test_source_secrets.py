"""A password of a source is nowhere once the rows are in, and nowhere when they are refused."""

import logging
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import create_engine

from core.cli.main import main
from core.reading.address import SOURCES
from core.reading.cells import TableReadError
from core.runs.storage.access import accesses
from core.runs.storage.store import RunStore
from core.services.imports import import_address
from tests.postgres_server import PASSWORD
from tests.postgres_server import postgres_server as postgres_server
from tests.postgres_server import postgres_url as postgres_url

pytestmark = pytest.mark.slow

SECRET = "word-that-nobody-may-see"
FRAME = pd.DataFrame({"age": range(40), "sex": ["f", "m"] * 20})


def holding(folder: Path, secret: str) -> list[Path]:
    """Files below a folder that hold a secret, in any common spelling."""
    spelled = [secret.encode(), secret.encode("utf-16-le"), secret.encode().hex().encode()]
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if any(one in file.read_bytes() for one in spelled)]


def test_the_search_finds_what_was_left(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"postgresql://me:{SECRET}@db/x")
    assert holding(tmp_path, SECRET) == [tmp_path / "log"]


def test_a_database_password_is_kept_nowhere(
    store: RunStore,
    postgres_url: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert PASSWORD in postgres_url
    engine = create_engine(postgres_url)
    FRAME.to_sql("visits", engine, index=False)
    engine.dispose()
    caplog.set_level(logging.DEBUG)
    query = f"SELECT *, '{SECRET}' = 'x' AS known FROM visits"
    table = import_address(store, postgres_url, query=query)
    assert table.n == 40 and table.source.startswith("database ")
    bare = postgres_url.replace(f":{PASSWORD}", "")
    assert import_address(store, bare, query=query, password=PASSWORD).n == 40
    for wrong in ("SELECT nothing FROM visits", "SELEC"):
        with pytest.raises(TableReadError) as refused:
            import_address(store, postgres_url, query=f"{wrong} -- {SECRET}")
        assert PASSWORD not in repr(refused.value) and SECRET not in repr(refused.value)
    said = capfd.readouterr()
    for text in (said.out, said.err, caplog.text):
        assert PASSWORD not in text and SECRET not in text
    assert holding(store.workspace.home, PASSWORD) == holding(store.workspace.home, SECRET) == []


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@/none?host=/nowhere",
        f"s3://me:{SECRET}@bucket/none",
        f"https://example.org/rows.csv?token={SECRET}",
        f"postgresql://me:{SECRET}@[",
    ],
)
def test_a_refusal_repeats_no_address(
    store: RunStore,
    address: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    caplog.set_level(logging.DEBUG)
    query = "SELECT 1" if address.startswith("postgresql") else ""
    with pytest.raises(TableReadError) as refused:
        import_address(store, address, query=query)
    assert SECRET not in repr(refused.value)
    monkeypatch.setenv("FACSIMILE_HOME", str(store.workspace.home))
    options = ["--model", "pearl", "--epsilon", "1", "--declare-public", "--query", query]
    assert main(["plan", address, *options]) == 2
    assert main(["plan", "a.csv", address, *options]) == 2  # in a wrong place
    said = capfd.readouterr()
    for text in (said.out, said.err, caplog.text):
        assert SECRET not in text
    assert holding(store.workspace.home, SECRET) == [] and store.tables() == []


@pytest.mark.usefixtures("fresh")
def test_a_process_of_its_own_obeys_what_the_server_allows(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in" / "rows.parquet"
    file.parent.mkdir()
    FRAME.to_parquet(file, index=False)
    with pytest.raises(TableReadError, match="does not let"):
        import_address(store, str(file), signed_in=True)
    monkeypatch.setenv(SOURCES, str(file.parent))
    heard: list[int] = []
    table = import_address(store, str(file), signed_in=True, progress=heard.append)
    assert set(heard) == {40} and table.source == f"path {file}" and table.name == "rows.parquet"
    pd.testing.assert_frame_equal(store.load_frame(table.id), FRAME)


@pytest.mark.usefixtures("fresh")
def test_whoever_leaves_while_a_table_comes_in_has_none(store: RunStore, tmp_path: Path) -> None:
    class Left(Exception):
        """A page that was closed or reloaded stops where it next says something."""

    def leave(_rows: int) -> None:
        raise Left

    file = tmp_path / "rows.parquet"
    FRAME.to_parquet(file, index=False)
    with pytest.raises(Left):
        import_address(store, str(file), owner="Ann@x.org", progress=leave)
    assert store.tables() == []
    kept = import_address(store, str(file), owner="Ann@x.org")
    held = accesses(store)[kept.id]
    assert held.owner == "ann@x.org" and not held.admits("bob@x.org", steward=True)


def test_the_command_line_reads_folders_and_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FACSIMILE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(2):
        FRAME.to_parquet(folder / f"{i}.parquet", index=False)
    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    FRAME.to_sql("visits", engine, index=False)
    engine.dispose()
    options = ["--model", "pearl", "--epsilon", "1", "--declare-public"]
    assert main(["plan", str(folder), *options]) == 0
    query = ["--query", "SELECT * FROM visits"]
    assert main(["plan", f"sqlite:///{tmp_path / 'shop.db'}", *query, *options]) == 0
    assert "on 80 records" in (said := capsys.readouterr().out) and "on 40 records" in said
