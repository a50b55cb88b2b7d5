"""Addresses: who may open which, and that nothing secret is in what is shown of them."""

from pathlib import Path

import pandas as pd
import pytest

from core.reading.address import SOURCES, Address, Allowed
from core.reading.cells import TableReadError
from core.reading.opening import open_address

SECRET = "word-that-nobody-may-see"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"postgresql://me:{SECRET}@db.example.org/shop", "database shop on db.example.org"),
        (f"postgresql+psycopg://me:{SECRET}@/shop?host=/run/pg", "database shop on /run/pg"),
        (f"s3://me:{SECRET}@bucket/visits", "s3://bucket/visits"),
        (f"abfs://me:{SECRET}@box/visits", "abfs://box/visits"),
    ],
)
def test_no_secret_is_shown(text: str, words: str) -> None:
    query = f"SELECT '{SECRET}'" if text.startswith("postgresql") else ""
    address = Address.of(text, query=query)
    assert address.words == words
    for shown in (address.words, address.name, address.reach, repr(address), str(address)):
        assert SECRET not in shown
    again = Address.of(text.replace(f":{SECRET}", ""), query=query, password=SECRET)
    assert again.words == words and (again.url or again.options) == (address.url or address.options)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/rows.parquet?token=" + SECRET,
        "http://169.254.169.254/latest",
        "ftp://x/y",
        "simplecache::s3://bucket/a",
        "s3://bucket/a::b",
        "s3://bucket/a?X-Amz-Signature=" + SECRET,
        "s3://bucket/allowed/../other",
        "mysql://me@db/x",
        "sqlite://",
        "sqlite:///file:/etc/passwd?uri=true",
        "postgresql://me@db/x?passfile=/root/.pgpass",
        "postgresql://me@db/x?service=" + SECRET,
        "",
    ],
)
def test_what_cannot_be_opened_is_refused_in_words(text: str) -> None:
    with pytest.raises(TableReadError, match=r"Nothing was read|needs a query") as refused:
        Address.of(text, query="SELECT 1" if "sql" in text.partition(":")[0] else "")
    assert SECRET not in str(refused.value)


def test_a_database_needs_a_query_and_nothing_else_takes_one() -> None:
    with pytest.raises(TableReadError, match="needs a query"):
        Address.of("postgresql://me@db/x")
    with pytest.raises(TableReadError, match="needs the address of a database"):
        Address.of("/data/rows.parquet", query="SELECT 1")


def allowed(tmp_path: Path, sources: str | None, *, signed_in: bool = True) -> Allowed:
    environment = {} if sources is None else {SOURCES: sources}
    return Allowed.here(signed_in=signed_in, forbidden=tmp_path / "home", environment=environment)


def opens(rule: Allowed, text: str) -> bool:
    """Whether a rule lets an address be opened."""
    try:
        rule.check(Address.of(text, query="SELECT 1" if "sql" in text else ""))
    except TableReadError as refused:
        assert "does not let" in str(refused) or "own" in str(refused)
        return False
    return True


def test_where_people_sign_in_nothing_is_open_that_is_not_named(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in" / "a.parquet", tmp_path / "in-too" / "a.parquet"
    named = allowed(tmp_path, f"{tmp_path / 'in'}, s3://research/, postgresql://db.example.org/")
    assert opens(named, str(inside)) and opens(named, f"sqlite:///{tmp_path}/in/b.db")
    assert opens(named, "s3://research/a") and opens(named, "postgresql://me:x@db.example.org/shop")
    for text in (
        str(outside),
        f"{tmp_path}/in/../secret",
        f"file://{outside}",
        f"sqlite:///{outside}",
        "s3://research-too/a",
        "s3://other/research/a",
        "postgresql://db.example.org.evil.net/shop",
        "postgresql://db.example.org:5433/shop",
        "postgresql://db.example.org/shop?host=evil.net",
        "postgresql://db.example.org,evil.net/shop",
        "postgresql:///shop?host=/run/postgresql",
    ):
        assert not opens(named, text), text
    closed = allowed(tmp_path, None)
    assert not any(opens(closed, text) for text in (str(inside), "s3://research/a", "memory://a/b"))
    assert opens(allowed(tmp_path, None, signed_in=False), str(outside))


def test_links_are_followed_before_a_path_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.parquet").write_bytes(b"PAR1")
    (tmp_path / "in" / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    named = allowed(tmp_path, str(tmp_path / "in"))
    assert not opens(named, str(tmp_path / "in" / "link.parquet"))
    with pytest.raises(TableReadError, match="link out of this folder"):
        open_address(Address.of(str(tmp_path / "in")), named, tmp_path)


def test_the_workspace_is_never_a_source(tmp_path: Path) -> None:
    home = tmp_path / "home"
    everything = allowed(tmp_path, None, signed_in=False)
    assert not opens(everything, f"sqlite:///{home / 'facsimile.db'}")
    own = home / "tables" / "x" / "rows.parquet"
    assert not opens(everything, str(own))
    own.parent.mkdir(parents=True)
    pd.DataFrame({"a": [1]}).to_parquet(own)
    for rule in (everything, allowed(tmp_path, str(tmp_path))):
        with pytest.raises(TableReadError, match="product's own"):
            open_address(
                Address.of(str(tmp_path)), rule, tmp_path
            )  # the folder that holds the workspace


def test_the_workspaces_object_store_is_never_a_source(tmp_path: Path) -> None:
    environment = {SOURCES: "s3://bucket", "FACSIMILE_STORAGE": "s3://bucket/prefix/"}
    named = Allowed.here(signed_in=True, forbidden=tmp_path, environment=environment)
    for text in (
        "s3://bucket",
        "s3://bucket/prefix",
        "s3://me:x@bucket/prefix/tables/x/rows.parquet",
    ):
        assert not opens(named, text), text
    assert opens(named, "s3://bucket/prefix-too/rows.parquet") and opens(
        named, "s3://bucket/visits"
    )
