"""Object stores to test against: fsspec's in memory, and S3 by its protocol where a server is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from core.runs.storage.store import RunStore
from tests.runs.conftest import frame, here, plan, schema, table  # noqa: F401

EXTRAS = "S3 by its protocol is tested with requirements-cluster.txt"


@dataclass
class S3Server:
    """A server that speaks S3 and keeps objects in this process; it can go away and come back."""

    server: Any
    client: Any
    port: int

    @contextmanager
    def away(self) -> Iterator[None]:
        """While the block lasts nobody answers; what was kept is kept."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self.server.start()

    def keys(self, bucket: str) -> list[str]:
        """Keys of all objects of a bucket, unfinished uploads among them."""
        listed = self.client.list_objects_v2(Bucket=bucket).get("Contents", [])
        unfinished = self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        return sorted(one["Key"] for one in [*listed, *unfinished])


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    pytest.importorskip("s3fs", reason=EXTRAS)
    moto = pytest.importorskip("moto.server", reason=EXTRAS)
    boto3 = pytest.importorskip("boto3", reason=EXTRAS)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",  # the driver's own patience would make tests wait
        }.items():
            environment.setenv(name, value)
        environment.setattr("s3fs.core.S3FileSystem.retries", 1)
        server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        _, port = server.get_host_and_port()
        environment.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{port}")
        one = S3Server(server, boto3.client("s3"), port)
        yield one
        one.stop()


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A fresh bucket, which the workspaces of the test keep everything in."""
    name = f"b{uuid.uuid4().hex}"
    s3_server.client.create_bucket(Bucket=name)
    monkeypatch.setenv("FACSIMILE_STORAGE", f"s3://{name}/workspace")
    return name


@pytest.fixture(params=["memory", "s3"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An object store that workspaces of the test keep everything in; its URL."""
    if request.param == "s3":
        return f"s3://{request.getfixturevalue('bucket')}/workspace"
    url = f"memory://{uuid.uuid4().hex}"
    monkeypatch.setenv("FACSIMILE_STORAGE", url)
    return url


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[RunStore]:
    """A store whose artefacts lie in the object store that the test asked for."""
    from core.runs.workspace import Workspace

    assert {"storage", "bucket"} & set(request.fixturenames)
    for name in ("storage", "bucket"):
        if name in request.fixturenames:
            request.getfixturevalue(name)
    with RunStore(Workspace(tmp_path / "home")) as opened:
        yield opened
