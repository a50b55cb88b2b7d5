"""Open pages as the server has them: whose they are and what they uploaded, from outside a script.

Streamlit has no public door to any of it; tests watch that these are there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import HTTPConnection
from streamlit import runtime
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME


def claims_of(connection: HTTPConnection) -> dict[str, Any]:
    """Whom a request's cookies say it comes from, as Streamlit signed them; {} for nobody."""

    def one(name: str) -> bytes | None:
        value = connection.cookies.get(name)
        if value is None:
            return None
        return decode_signed_value(get_cookie_secret(), name, value.encode("latin-1"))

    cookie = get_cookie_with_chunks(one, USER_COOKIE_NAME)
    claims = {} if cookie is None else json.loads(cookie)
    return claims if isinstance(claims, dict) else {}


def claims_in(session_id: str) -> dict[str, Any] | None:
    """Whom an open page belongs to, {} for nobody who signed in; None where none is open."""
    session = runtime.get_instance().get_app_session(session_id)
    return None if session is None else dict(session._user_info)


def draw_anew(whose: Callable[[Mapping[str, Any]], bool]) -> None:
    """Have other open pages drawn anew, as by a click, and free what they uploaded.

    Args:
      whose: told a page's claims, whether it is among them.
    """
    if not runtime.exists():
        return
    server, own = runtime.get_instance(), get_script_run_ctx()
    for open_page in server._session_mgr.list_active_sessions():
        session = open_page.session
        if (own is None or session.id != own.session_id) and whose(session._user_info):
            _uploaded().remove_session_files(session.id)
            loop = server._get_async_objs().eventloop
            loop.call_soon_threadsafe(session.request_rerun, session._client_state)


def known(session_id: str) -> bool:
    """Whether a page is open, or was until a moment ago and may be taken up again."""
    return runtime.get_instance()._session_mgr.get_session_info(session_id) is not None


def waiting_files() -> dict[str, list[int]]:
    """The sizes in bytes of the files that each page uploaded and nobody freed yet."""
    return {
        session_id: [len(file.data) for file in list(files.values())]
        for session_id, files in list(_uploaded().file_storage.items())
    }


def free_ended() -> None:
    """Free the files of pages that nobody can take up again."""
    for session_id in waiting_files():
        if not known(session_id):
            _uploaded().remove_session_files(session_id)


def _uploaded() -> MemoryUploadedFileManager:
    manager = runtime.get_instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)
    return manager
