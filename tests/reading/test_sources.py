"""Tables from a path, a folder, a database or an object store: the same cells, or one line."""

import errno
import gzip
import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text

from core.reading import sql
from core.reading.address import Address, Allowed
from core.reading.cells import TableReadError
from core.reading.opening import open_address
from core.reading.raw_cells import Source, is_written, raw_frame
from tests.postgres_server import postgres_server as postgres_server
from tests.postgres_server import postgres_url as postgres_url

N = 300
FRAME = pd.DataFrame(
    {
        "age": np.arange(N) % 90,
        "cost": np.arange(N) / 8,
        "ward": ["a", "b", None] * (N // 3),
        "gone": pd.Series(range(N), dtype="Int64").mask(np.arange(N) > N - 9),
        "day": pd.date_range("2024-01-01", periods=N).as_unit("us"),
    }
).astype({"ward": "str"})
CELLS = raw_frame(FRAME)
SECRET = "word-that-nobody-may-see"


def anything(tmp_path: Path) -> Allowed:
    """What a single person at this machine may open."""
    return Allowed(None, tmp_path / "workspace")


def prepared(tmp_path: Path, address: str, query: str = "", password: str = "") -> Source:
    """The source at an address, ready to be read."""
    folder = tmp_path / "fetched"
    folder.mkdir(exist_ok=True)
    where = Address.of(address, query=query, password=password)
    return open_address(where, anything(tmp_path), folder)


def read(tmp_path: Path, address: str, query: str = "", password: str = "") -> pa.Table:
    """All raw cells at an address, which come again."""
    source = prepared(tmp_path, address, query, password)
    cells = pa.concat_tables(source.batches())
    assert pa.concat_tables(source.batches()).equals(cells)
    return cells


def values(cells: pa.Table, name: str) -> list[Any]:
    """A column's cells."""
    return list(cells.column(name).to_pylist())


@pytest.fixture
def memory() -> Iterator[str]:
    """A prefix of an object store that lives in this process."""
    system = fsspec.filesystem("memory")
    yield "memory://bucket/visits"
    system.rm("/bucket", recursive=True)


# -- the same rows, wherever they lie --------------------------------------------------------------


def halves(folder: Path) -> Path:
    """The table as a folder of two parts, and things that are none."""
    folder.mkdir()
    FRAME.iloc[:100].to_parquet(folder / "part-0.parquet", index=False)
    FRAME.iloc[100:].to_parquet(folder / "part-1.parquet", index=False, row_group_size=64)
    FRAME.iloc[:0].to_parquet(folder / "part-2.parquet", index=False)
    (folder / "_SUCCESS").write_text("")
    FRAME.to_parquet(folder / "_tmp.parquet", index=False)
    return folder


def test_files_and_folders(tmp_path: Path) -> None:
    whole = tmp_path / "rows.parquet"
    FRAME.to_parquet(whole, index=False)
    for where in (whole, halves(tmp_path / "parts"), f"file://{whole}"):
        assert read(tmp_path, str(where)).to_pylist() == CELLS.to_pylist()
    FRAME[["age"]].to_csv(tmp_path / "rows.csv", index=False)
    written = read(tmp_path, str(tmp_path / "rows.csv"))
    assert is_written(written.schema) and values(written, "age") == list(map(str, FRAME["age"]))


def test_an_object_store(tmp_path: Path, memory: str) -> None:
    system = fsspec.filesystem("memory")
    for part in sorted(halves(tmp_path / "parts").glob("*.parquet")):
        system.pipe(f"/bucket/visits/{part.name}", part.read_bytes())
    assert read(tmp_path, memory).to_pylist() == CELLS.to_pylist()
    one = read(tmp_path, f"{memory}/part-0.parquet")
    assert values(one, "age") == [*range(90), *range(10)]
    for name, content in (
        ("rows.csv", b"age\n1\n2\n"),
        ("rows.csv.gz", gzip.compress(b"age\n1\n2\n")),
    ):
        system.pipe(f"/bucket/visits/{name}", content)
        assert values(read(tmp_path, f"{memory}/{name}"), "age") == ["1", "2"]


def sqlite(tmp_path: Path) -> str:
    """The table in an SQLite database; its address."""
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as connection:
        plain = FRAME.assign(day=FRAME["day"].dt.strftime("%Y-%m-%d"))
        plain.to_sql("visits", connection, index=False)
    connection.close()
    return f"sqlite:///{file}"


def test_sqlite(tmp_path: Path) -> None:
    address = sqlite(tmp_path)
    rows = read(tmp_path, address, "SELECT age, cost, ward, gone FROM visits ORDER BY rowid;")
    assert rows.to_pylist() == CELLS.select(["age", "cost", "ward", "gone"]).to_pylist()
    twice = prepared(tmp_path, address, "SELECT age, cost, age FROM visits")
    assert [batch.column_names for batch in twice.batches()] == [["age", "cost", "age (2)"]]
    assert "'age (2)'" in twice.doubts[0]
    some = read(tmp_path, address, "SELECT age FROM visits WHERE ward LIKE 'a%' AND ward <> ':x'")
    assert len(some) == N // 3


def test_types_that_change_between_rows_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.reading.raw_cells.BATCH_ROWS", 10)
    file = tmp_path / "mixed.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        rows = [(i, None if i < 25 else i, i) for i in range(30)]
        rows += [(0.5, None, 0), (7, 1, 0), (8, 2, "text")]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    connection.close()
    address = f"sqlite:///{file}"
    frame = read(tmp_path, address, "SELECT a, b FROM t ORDER BY rowid")
    assert values(frame, "a") == [*map(float, range(30)), 0.5, 7.0, 8.0]
    assert frame.schema.field("b").type == pa.int64() and frame["b"].null_count == 26
    with pytest.raises(TableReadError, match="'c' holds values of different types"):
        read(tmp_path, address, "SELECT c FROM t ORDER BY rowid")


def test_no_value_of_a_query_says_what_others_are() -> None:
    prices = [Decimal("0.10"), None, Decimal("5")]
    for odd in (Decimal("1E-30"), Decimal(10**40), Decimal("NaN")):
        cells = sql._column([*prices, odd], "price")
        assert cells.type == pa.float64() and cells[:3].to_pylist() == [0.1, None, 5.0]
    hosts = [ip_address("10.0.0.1"), None, ip_address("::1")]
    assert sql._column(hosts, "host").to_pylist() == ["10.0.0.1", None, "::1"]
    for mixed in ([1, "x"], [ip_address("::1"), "x"], [b"x"]):
        with pytest.raises(TableReadError, match="different types|binary data"):
            sql._column(mixed, "mixed")


def test_sqlite_is_only_looked_at(tmp_path: Path) -> None:
    address, other = sqlite(tmp_path), tmp_path / "other.db"
    sqlite3.connect(other).close()
    before = (tmp_path / "shop.db").read_bytes()
    for query in (
        "DELETE FROM visits",
        "DROP TABLE visits",
        f"ATTACH DATABASE '{other}' AS o",
        "PRAGMA journal_mode = DELETE",
        "SELECT load_extension('x')",
        "SELECT 1; DROP TABLE visits",
    ):
        with pytest.raises(TableReadError, match="Nothing was kept"):
            read(tmp_path, address, query)
    assert (tmp_path / "shop.db").read_bytes() == before
    with pytest.raises(TableReadError, match="no such database"):
        read(tmp_path, f"sqlite:///{tmp_path / 'none.db'}", "SELECT 1")
    assert not (tmp_path / "none.db").exists()


def test_postgresql(tmp_path: Path, postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        FRAME.to_sql("visits", connection, index=False)
        connection.execute(text("ALTER TABLE visits ADD price numeric, ADD key uuid"))
        connection.execute(text("UPDATE visits SET price = cost, key = gen_random_uuid()"))
        connection.execute(text("CREATE TABLE log (x int)"))
    engine.dispose()
    query = "SELECT * FROM visits WHERE ward IS NULL OR ward LIKE '%' ORDER BY day::timestamp"
    source = prepared(tmp_path, postgres_url, query)
    rows = pa.concat_tables(source.batches())
    assert rows.select(CELLS.column_names).to_pylist() == CELLS.to_pylist()
    assert values(rows, "price") == FRAME["cost"].tolist() and len(set(values(rows, "key"))) == N
    assert source.doubts == (
        "'price' holds exact decimals; they were read as floating-point numbers.",
    )
    for query in ("INSERT INTO log VALUES (1) RETURNING x", "SELECT nothing FROM visits"):
        with pytest.raises(TableReadError, match="did not carry out"):
            read(tmp_path, postgres_url, query)
    with pytest.raises(TableReadError, match="could not be reached") as refused:
        read(tmp_path, postgres_url, "SELECT 1", password="wrong-" + SECRET)
    assert SECRET not in str(refused.value)


# -- parts that do not fit together ----------------------------------------------------------------


def parts_of(folder: Path, *tables: pa.Table) -> str:
    folder.mkdir()
    for i, table in enumerate(tables):
        pq.write_table(table, folder / f"{i}.parquet")
    return str(folder)


def test_whole_numbers_and_fractions_are_numbers(tmp_path: Path) -> None:
    where = parts_of(
        tmp_path / "p",
        pa.table({"a": pa.array([1, 2], pa.int32()), "b": pa.array([None, None])}),
        pa.table({"a": pa.array([0.5]), "b": pa.array(["x"]).dictionary_encode()}),
        pa.table({"b": pa.array(["y"]), "a": pa.array([7], pa.int64())}),
    )
    frame = read(tmp_path, where)
    assert values(frame, "a") == [1.0, 2.0, 0.5, 7.0]
    assert values(frame, "b") == [None, None, "x", "y"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (pa.table({"a": pa.array(["x"])}), "'a' holds values of different types"),
        (pa.table({"b": pa.array([1])}), "is in some files and not in others"),
        (pa.table({"a": pa.array([[1]])}), "different types|lists, records or binary"),
    ],
)
def test_parts_that_differ_are_refused(tmp_path: Path, other: pa.Table, words: str) -> None:
    where = parts_of(tmp_path / "p", pa.table({"a": pa.array([1, 2])}), other)
    with pytest.raises(TableReadError, match=words):
        read(tmp_path, where)


def test_a_name_that_stands_twice_in_parts_is_renamed(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    for name in ("0.parquet", "1.parquet"):
        pq.write_table(twice, tmp_path / name)
    source = prepared(tmp_path, str(tmp_path))
    assert pa.concat_tables(source.batches()).to_pylist() == [{"a": 1, "a (2)": "x"}] * 2
    assert len(source.doubts) == 1 and "'a (2)'" in source.doubts[0]


def test_types_of_parquet_columns_stay(tmp_path: Path) -> None:
    columns = {
        "cost": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "day": pa.array([0, 2**31 - 1], pa.date32()),
        "long": pa.array([1, None], pa.duration("s")),
        "word": pa.array(["x", "NA"], pa.large_string()),
        "ward": pa.array(["a", None]).dictionary_encode(),
        "__index_level_0__": pa.array([5, 9]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    source = prepared(tmp_path, str(tmp_path / "a.parquet"))
    (batch,) = source.batches()
    kinds = ["decimal128(9, 2)", "date32[day]", "duration[s]", "string", "string"]
    assert [str(kind) for kind in batch.schema.types] == kinds and not is_written(batch.schema)
    assert values(batch, "word") == ["x", "NA"]
    assert source.form.columns["ward"].arrow == "dictionary"
    assert source.doubts == ("The row index stored beside the table was left out.",)


def test_text_that_is_not_utf_8_moves_no_other_cell(tmp_path: Path) -> None:
    offsets, letters = pa.py_buffer(np.array([0, 2, 4, 6], np.int32)), pa.py_buffer(b"ab\xff\xfecd")
    text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, letters])
    pq.write_table(
        pa.table({"a": text, "b": text.slice(2, 1).take([0] * 3)}), tmp_path / "a.parquet"
    )
    source = prepared(tmp_path, str(tmp_path / "a.parquet"))
    assert [values(batch, "a") for batch in source.batches()] == [["ab", "\ufffd\ufffd", "cd"]]
    assert len(source.doubts) == 1 and "'a' holds text that is not in UTF-8" in source.doubts[0]


def test_long_text_comes_in_batches_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes of a dictionary stand for many; a long text that is none is as long in memory."""
    monkeypatch.setattr("core.reading.row_groups.BATCH_BYTES", 100_000)
    rng = np.random.default_rng(0)
    texts = {
        "few": ["x" * 2_000 + str(i % 3) for i in range(1_000)],
        "many": [rng.bytes(1_000).hex() for _ in range(1_000)],
    }
    for name, cells in texts.items():
        pq.write_table(pa.table({"a": cells}), tmp_path / f"{name}.parquet")
        batches = list(prepared(tmp_path, str(tmp_path / f"{name}.parquet")).batches())
        assert max(batch.nbytes for batch in batches) < 120_000
        assert [cell for batch in batches for cell in values(batch, "a")] == cells


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "year=2024").mkdir()
    FRAME.to_parquet(tmp_path / "year=2024" / "a.parquet")
    FRAME.iloc[:0].to_parquet(tmp_path / "none.parquet", index=False)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "year=2024/a.parquet").read_bytes()[:-99])
    for where, words in (
        ("empty", "no Parquet file"),
        ("absent", "no such file"),
        ("none.parquet", "no rows"),
        ("cut.parquet", "damaged"),
        (".", "named after values"),
    ):
        with pytest.raises(TableReadError, match=words):
            read(tmp_path, str(tmp_path / where))


def test_a_full_disk_is_not_blamed_on_where_rows_come_from(
    tmp_path: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    fsspec.filesystem("memory").pipe("/bucket/visits/rows.csv", b"age\n1\n2\n")
    monkeypatch.setattr("core.reading.sql.pq.write_table", full)
    monkeypatch.setattr(
        "core.reading.opening.tempfile.NamedTemporaryFile",
        lambda **_: open("/dev/full", "wb", buffering=0),  # noqa: SIM115
    )
    for address, query in (
        (sqlite(tmp_path), "SELECT age FROM visits"),
        (f"{memory}/rows.csv", ""),
    ):
        with pytest.raises(OSError, match="No space"):
            read(tmp_path, address, query)
