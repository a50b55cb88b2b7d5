"""Files to take along: made on click, for whoever clicked, handed over within a minute.

Rights are looked at when the button is pressed and again when the file is fetched: neither a page
left open nor a kept address outlives them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import streamlit as st

from core.runs import operations_log
from core.runs.records import RunRecord
from core.services import discussion, reviews
from pages.server import download_tokens, guard
from pages.shared import visible
from pages.shared.workspace_store import store

Data = bytes | str


def offer(
    label: str,
    make: Callable[[], Data],
    *,
    table_id: str,
    file_name: str,
    role: guard.Role = "steward",
    inside: bool = False,
    reviewed: RunRecord | None = None,
    mime: str | None = None,
    icon: str | None = None,
    help: str | None = None,
    type: Literal["primary", "secondary"] = "secondary",
    width: Literal["stretch", "content"] = "content",
) -> None:
    """A download button.

    Args:
      make: what the file holds; called on click, outside the page's run.
      table_id: the table it was made from, which the person must be allowed to see.
      inside: whether it shows real data without noise, which the table's rule must allow too.
      reviewed: a run whose reviews must be in, also when the button is pressed.
      mime, icon, help, type, width: as for `st.download_button`.
    """
    address = guard.address()
    allowed = partial(_allowed, address, role, table_id, inside=inside, reviewed=reviewed)
    st.download_button(
        label,
        data=partial(_made, make, address, table_id, allowed),
        file_name=file_name,
        mime=mime,
        icon=icon,
        help=help,
        type=type,
        width=width,
        on_click="ignore",
    )


def _allowed(
    address: str,
    role: guard.Role,
    table_id: str,
    *,
    inside: bool = False,
    reviewed: RunRecord | None = None,
) -> bool:
    """Whether an address may have a file now; see `offer`."""
    roles = guard.roles_of(address)
    looks = not inside or discussion.rule(store(), table_id).inside
    if "steward" not in roles and not (role in roles and looks):
        return False
    if reviewed is not None and reviews.waits_for(store(), reviewed):
        return False
    return table_id not in visible.hidden(address)


def _made(
    make: Callable[[], Data], address: str, table_id: str, allowed: Callable[[], bool]
) -> bytes:
    """The file's bytes, entered for whoever pressed the button, by their address; see `offer`.

    Raises:
      PermissionError: the person may not have it any more; nothing was made.
    """
    if not allowed():
        raise PermissionError("This account may not take this file any more. Nothing was made.")
    data = make()
    body = data.encode() if isinstance(data, str) else data
    download_tokens.enter(body, address, allowed)
    operations_log.record("download", table=table_id)
    return body
