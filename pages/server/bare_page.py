"""A page without Streamlit, for answers where the app itself may not or cannot speak."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse
from starlette.types import Scope
from streamlit import config

from core.language.catalogue import NAMES, Language, language
from pages.shared.language import PARAMETER, to_say

UNCACHED = {"cache-control": "no-store"}  # browsers and proxies keep nothing of the answer
_PAGE = """<!doctype html><html lang="{lang}"><head><meta charset="utf-8"><title>Facsimile</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>:root{color-scheme:light dark}body{font:16px/1.5 sans-serif;margin:12vh auto;max-width:36rem;
padding:0 1rem}a{color:inherit}code{white-space:nowrap}</style></head><body><main>
<h1>{title}</h1>
{body}</main></body></html>"""
_WAY = to_say("Go to the start page")
_CODE = re.compile(r"`([^`]+)`")


def bare_page(
    scope: Scope, status: int, title: str, paragraphs: Sequence[str], *, action_bar: bool = False
) -> HTMLResponse:
    """The answer to a request, in its browser's language.

    Args:
      title: a text of the catalogue, like each of `paragraphs`; `backticks` mark code.
      action_bar: whether a link to the first page stands at the end.
    """
    spoken = asked_for(scope)
    body = "".join(f"<p>{_marked(spoken.render(text))}</p>\n" for text in paragraphs)
    if action_bar:
        body += f'<p><a href="/{base()}">{html.escape(spoken.render(_WAY))}</a></p>\n'
    filled = _PAGE.replace("{lang}", spoken.code).replace("{body}", body)
    title = html.escape(spoken.render(title))
    return HTMLResponse(filled.replace("{title}", title), status_code=status, headers=UNCACHED)


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def asked_for(scope: Scope) -> Language:
    """The language in the address, else the one a browser asks for first."""
    wanted = QueryParams(scope.get("query_string", b"")).get(PARAMETER)
    if wanted in NAMES:
        return language(wanted)
    header = HTTPConnection(scope).headers.get("accept-language", "")
    return language(re.split("[-,;]", header)[0].strip().lower())


def base() -> str:
    """Where the server lies under its host, behind a proxy; "" for the top."""
    return str(config.get_option("server.baseUrlPath")).strip("/")


def below_base(path: str) -> str:
    """A path as it would be at the top of its host, without slashes at its ends."""
    return path.strip("/").removeprefix(base()).strip("/")
