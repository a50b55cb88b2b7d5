"""How much of one person is taken at once, counting what is still on its way."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from pages.server import uploads
from pages.server.uploads import MOST_FILES, Uploads

MB = 2**20


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Sizes of files in memory by session; sessions are named after whose they are."""
    kept: dict[str, list[int]] = {}
    monkeypatch.setenv(uploads.LIMIT, "10")
    monkeypatch.setattr(uploads.runtime, "exists", lambda: True)
    monkeypatch.setattr(uploads, "steward_of", lambda session, _: session.split("-")[0] or None)
    monkeypatch.setattr(uploads.sessions, "waiting_files", lambda: kept)
    monkeypatch.setattr(uploads.sessions, "free_ended", lambda: None)
    monkeypatch.setattr(uploads.sessions, "known", lambda _: True)
    return kept


class Line:
    """A server that keeps what is sent, when it is told to."""

    def __init__(self, kept: dict[str, list[int]]) -> None:
        self.kept, self.go_on, self.began = kept, asyncio.Event(), 0
        transport = httpx.ASGITransport(Uploads(self.serve))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def serve(self, scope, receive, send):
        self.began += 1
        await self.go_on.wait()
        size = int(dict(scope["headers"])[b"content-length"])
        self.kept.setdefault(scope["path"].split("/")[3], []).append(size)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def put(self, session: str, size: int | None) -> int:
        length = {} if size is None else {"content-length": str(size)}

        async def nothing():
            yield b""

        path = f"/_stcore/upload_file/{session}/x"
        return (await self.client.put(path, headers=length, content=nothing())).status_code


def test_files_under_way_count_before_they_are_there(waiting):
    async def story() -> None:
        line = Line(waiting)
        first = asyncio.ensure_future(line.put("ann-1", 7 * MB))
        while not line.began:
            await asyncio.sleep(0.01)
        assert await line.put("ann-2", 7 * MB) == 413
        second = asyncio.ensure_future(line.put("ada-1", 7 * MB))  # somebody else
        line.go_on.set()
        assert (await first, await second) == (204, 204)
        assert await line.put("ann-2", 7 * MB) == 413  # it is there now
        waiting["ann-1"] = []  # and taken
        assert await line.put("ann-2", 7 * MB) == 204

    asyncio.run(story())


def test_a_file_that_broke_off_counts_no_longer(waiting):
    async def story() -> None:
        line = Line(waiting)
        line.go_on.set()
        line.kept = None  # type: ignore[assignment]  # the server fails
        with pytest.raises(AttributeError):
            await line.put("ann-1", 7 * MB)
        line.kept = waiting
        assert await line.put("ann-1", 7 * MB) == 204

    asyncio.run(story())


def test_many_small_files_are_too_many(waiting):
    async def story() -> list[int]:
        line = Line(waiting)
        line.go_on.set()
        return [await line.put(f"ann-{i}", 0) for i in range(MOST_FILES + 1)]

    assert asyncio.run(story()) == [204] * MOST_FILES + [413]


def test_a_file_of_unsaid_length_and_a_strangers_are_not_begun(waiting):
    async def story() -> None:
        line = Line(waiting)
        line.go_on.set()
        assert await line.put("ann-1", None) == 411
        assert await line.put("-1", 5) == 403
        assert line.began == 0

    asyncio.run(story())


@pytest.mark.parametrize(
    ("asked", "megabytes"), [("", 1024), ("5", 5), ("none", 1024), ("-1", 1024)]
)
def test_one_file_of_the_largest_size_fits_unless_said_otherwise(monkeypatch, asked, megabytes):
    monkeypatch.setenv(uploads.LIMIT, asked)
    assert uploads.most_bytes() == megabytes * MB
