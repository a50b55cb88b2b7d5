"""Hostile Parquet files: few bytes that stand for gigabytes, and every type that arrow has."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.files import EITHER, REFUSED, TABLE, HostileFile

ROWS = 1_000_000
NANOSECOND = 1_700_000_000_000_000_001


def written(table: pa.Table, **options: Any) -> bytes:
    """The bytes of a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


PLAIN = written(pa.table({"name": ["a", "b", None], "n": [1, 2, 3], "x": [0.5, None, 2.0]}))


def typed_columns() -> dict[str, tuple[pa.Array, str]]:
    """Arrays by name, and how a file of each ends."""
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16] * 3, pa.binary(16)))
    far, ints = {"s": 10**14, "ms": 10**15, "us": 10**18}, [1, None, 3]
    made = {
        **{f"int-{kind}": (pa.array(ints, kind), TABLE) for kind in (
            pa.int8(), pa.int16(), pa.int32(), pa.int64(),
            pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
        **{f"float-{kind}": (pa.array([0.5, None, np.inf], kind), TABLE) for kind in (
            pa.float16(), pa.float32(), pa.float64())},
        **{f"far-{unit}": (pa.array([0, last, None], pa.timestamp(unit)), TABLE)
           for unit, last in far.items()},
        **{f"zoned-{unit}": (pa.array([0, 10**9, None], pa.timestamp(unit, "Europe/Paris")), TABLE)
           for unit in ("s", "ms", "us", "ns")},
        "far-days": (pa.array([0, 2**31 - 1, -(2**31)], pa.date32()), TABLE),
        "far-date64": (pa.array([0, 86_400_000 * 10**10, None], pa.date64()), TABLE),
        "nanoseconds": (pa.array([NANOSECOND, 0, None], pa.timestamp("ns")), TABLE),
        "time-ns": (pa.array([1, 2, None], pa.time64("ns")), TABLE),
        "duration": (pa.array([1, 2**62, None], pa.duration("s")), TABLE),
        "decimal": (pa.array([1, 2, None], pa.decimal128(38, 10)), TABLE),
        "decimal-wide": (pa.array([10**60, 2, None], pa.decimal256(76, 2)), TABLE),
        "giant": (pa.array([1.7e308, -1.7e308, 1.0]), TABLE),
        "largest-int": (pa.array([2**64 - 1, 2**63, 0], pa.uint64()), TABLE),
        "bool": (pa.array([True, None, False]), TABLE),
        "null": (pa.nulls(3), TABLE),
        "category": (pa.array(["x", "y", None]).dictionary_encode(), TABLE),
        "category-int": (pa.array([1, 2, None]).dictionary_encode(), TABLE),
        "large-string": (pa.array(["x", None, "y"], pa.large_string()), TABLE),
        "string-view": (pa.array(["x", None, "y"], pa.string_view()), EITHER),
        "nul": (pa.array(["a\0b", "a", None]), TABLE),
        "binary": (pa.array([b"a", None, b"b"]), REFUSED),
        "large-binary": (pa.array([b"a", None, b"b"], pa.large_binary()), REFUSED),
        "fixed-binary": (pa.array([b"abcd", None, b"efgh"], pa.binary(4)), REFUSED),
        "list": (pa.array([[1], None, [2, 3]]), REFUSED),
        "struct": (pa.array([{"a": 1}, None, {"a": 2}]), REFUSED),
        "map": (pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())), REFUSED),
        "uuid": (uuids, REFUSED),
    }  # fmt: skip
    return made


def files() -> Iterator[HostileFile]:
    """All of them."""
    yield HostileFile("plain.parquet", PLAIN, TABLE)
    for name, (column, ends) in typed_columns().items():
        table = pa.table({"k": ["p", "q", "r"], "v": column})
        yield HostileFile(f"type-{name}.parquet", written(table), ends)
    words = pa.array(["x" * 2000 + str(i) for i in range(50)])
    codes = pa.array(np.arange(ROWS, dtype=np.int32) % 50)
    spread = pa.table({"s": pa.DictionaryArray.from_arrays(codes, words)})
    yield HostileFile("dictionary.parquet", written(spread), EITHER, own=True)
    plain = spread.replace_schema_metadata(None)
    bare = written(plain, store_schema=False)
    yield HostileFile("dictionary-bare.parquet", bare, EITHER, own=True)
    runs = pa.table({f"c{i}": pa.array(np.zeros(10 * ROWS, np.int64)) for i in range(8)})
    yield HostileFile("run-length.parquet", written(runs), TABLE)
    odd = {"dot": "a.b", "markup": "<b>", "long": "n" * 5000, "quote": "'"}
    for name, header in odd.items():
        yield HostileFile(f"header-{name}.parquet", written(pa.table({header: [1, 2]})), TABLE)
    for name, header in {"blank": " ", "nul": "a\0b"}.items():
        yield HostileFile(f"header-{name}.parquet", written(pa.table({header: [1, 2]})), EITHER)
    both = pa.table({"a": [1, 2], "a.b": [3, 4]})
    yield HostileFile("header-prefix.parquet", written(both), TABLE)
    twice = pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])
    yield HostileFile("header-twice.parquet", written(twice), TABLE, says="earlier column")
    yield HostileFile(
        "no-rows.parquet", written(pa.table({"a": pa.array([], pa.int64())})), REFUSED
    )
    yield HostileFile("no-columns.parquet", written(pa.table({})), REFUSED)
    wide = pa.table({f"c{i}": [1] for i in range(3000)})
    yield HostileFile("wide.parquet", written(wide), REFUSED, says="columns")
    yield HostileFile("csv.parquet", b"a,b\n1,2\n", REFUSED, says="ends in .parquet")
    yield HostileFile("magic-only.parquet", b"PAR1PAR1", REFUSED, says="damaged")
    for codec in ("snappy", "gzip", "zstd", "lz4", "brotli"):
        table = pa.table({"a": list(range(500)), "b": ["w"] * 500})
        yield HostileFile(f"codec-{codec}.parquet", written(table, compression=codec), TABLE)
