"""What a server sends to a page: more than the page shows, and without drawing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from google.protobuf.text_format import MessageToString
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

PATIENCE = 30.0  # s


def sent(client: httpx.Client, url: str, page: str = "", query: str = "") -> str:
    """All that a server sends from the opening of a page to the end of its script, as one text.

    Args:
      client: whose cookies go along.
      url: of the server, without a path.
      page: as in the page's address; "" for the first one.
      query: of the address, without its question mark.
    """
    asked = BackMsg()
    asked.rerun_script.page_name, asked.rerun_script.query_string = page, query
    texts = []
    with opened(client, url) as stream:
        stream.send(asked.SerializeToString())
        while True:
            message = ForwardMsg.FromString(stream.recv(timeout=PATIENCE))
            texts.append(MessageToString(message, as_utf8=True))
            if message.WhichOneof("type") == "script_finished":
                return "\n".join(texts).replace("\u2060", "")  # see `pages.shared.plain`


@contextmanager
def opened(client: httpx.Client, url: str) -> Iterator[ClientConnection]:
    """The WebSocket of a page, opened with a client's cookies."""
    client.get(f"{url}/_stcore/health")  # where a page gets its token
    cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    with connect(
        f"{url.replace('http', 'ws', 1)}/_stcore/stream",
        origin=url,
        subprotocols=["streamlit", client.cookies["_streamlit_xsrf"]],
        additional_headers={"Cookie": cookies},
        proxy=None,
        max_size=None,
    ) as stream:
        yield stream
