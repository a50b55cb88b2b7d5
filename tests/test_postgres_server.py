"""The server that tests of PostgreSQL stand on."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from tests.postgres_server import PostgresServer


def test_each_test_has_a_database_of_its_own(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    engine = create_engine(postgres_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE a (b INTEGER)")
    other = postgres_server.fresh()
    second = create_engine(other)
    with second.connect() as connection:
        tables = connection.exec_driver_sql(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        )
        assert tables.scalar_one() == 0
    for one in (engine, second):
        one.dispose()
    postgres_server.drop(other)


def test_nobody_comes_in_without_the_password(postgres_server: PostgresServer) -> None:
    engine = create_engine(postgres_server.url(password="guess"))
    with pytest.raises(OperationalError, match="password authentication failed"):
        engine.connect()
    engine.dispose()


def test_it_comes_back_after_a_stop(postgres_server: PostgresServer, postgres_url: str) -> None:
    postgres_server.stop("immediate")
    postgres_server.start()
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    engine.dispose()
    assert os.stat(postgres_server.folder).st_mode & 0o077 == 0
