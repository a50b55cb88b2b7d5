"""Bringing in tables: rows are kept as raw cells, with a schema and a picture that they propose.

Files and addresses are read in a process of its own, some rows at a time, whatever their size.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Required, TypedDict, Unpack

import pandas as pd

from core.importing.apart import Request, read_apart
from core.importing.raw_table import Progress, RawTable
from core.privacy.discovery.open_domain import as_learned
from core.proposing.propose import Counts, propose_table
from core.reading.address import Address, Allowed
from core.reading.raw_cells import raw_frame
from core.reading.typed_cells import typed_rows
from core.runs.accounts.people import choose_account
from core.runs.accounts.record_linkage import Compared
from core.runs.errors import NO_RECORDS, RunStoreError
from core.runs.records import TableRecord
from core.runs.storage.access import accesses
from core.runs.storage.artefacts import ROWS
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import people_key
from core.schema.form import FileForm
from core.schema.rules.gaps import free_name

__all__ = ["FORM", "Progress", "import_address", "import_file", "import_frame", "keep_table"]

FORM = "form"  # of a table's profile: how its file was read, see `FileForm`


class About(TypedDict, total=False):
    """What is said of a table that comes in.

    Attributes:
      account_id: ledger account of the people in it; by default the one whose rows these are among
        what the owner may see, see `core.runs.accounts.people`, or a fresh one.
    """

    name: Required[str]
    source: Required[str]
    account_id: str | None
    owner: str


def import_file(
    store: RunStore,
    content: Path | BinaryIO,
    *,
    form: FileForm | None = None,
    progress: Progress = lambda rows: None,
    **about: Unpack[About],
) -> TableRecord:
    """Keep the table in a file.

    Args:
      progress: hears how many rows have passed; if it raises, nothing is kept.
    """
    path, stream = (content, None) if isinstance(content, Path) else (None, content)
    request = Request(path=path, name=about["name"], declared=form)
    return _import_apart(store, request, stream, progress, about)


def import_address(
    store: RunStore,
    text: str,
    *,
    query: str = "",
    password: str = "",
    signed_in: bool = False,
    form: FileForm | None = None,
    account_id: str | None = None,
    owner: str = "",
    progress: Progress = lambda rows: None,
) -> TableRecord:
    """Keep the table at an address; the password is neither stored nor said."""
    address = Address.of(text, query=query, password=password)
    allowed = Allowed.here(signed_in=signed_in, forbidden=store.workspace.home)
    request = Request(address=address, allowed=allowed, declared=form)
    about = About(name=address.name, source=address.words, account_id=account_id, owner=owner)
    return _import_apart(store, request, None, progress, about)


def import_frame(store: RunStore, frame: pd.DataFrame, **about: Unpack[About]) -> TableRecord:
    """Keep a table of n ≥ 1 rows that is in memory, with its proposed schema and its profile."""
    if not len(frame):
        raise RunStoreError(NO_RECORDS)
    raw, table_id = raw_frame(frame), secrets.token_hex(5)
    schema, profile = propose_table(Counts.of([raw]), lambda names: [raw.select(names)])
    described = _described(store, typed_rows(raw, schema.columns), table_id, about)
    return store.add_table(
        raw,
        schema=as_learned(schema),
        profile=profile.model_dump(mode="json"),
        table_id=table_id,
        **described,
    )


def _import_apart(
    store: RunStore, request: Request, content: BinaryIO | None, progress: Progress, about: About
) -> TableRecord:
    """Keep what another process reads: `content` where the request names no file."""
    return keep_table(
        store, partial(read_apart, request, content=content, progress=progress), about
    )


def keep_table(store: RunStore, read: Callable[[Path], RawTable], about: About) -> TableRecord:
    """Keep the raw cells that `read` writes to a file, with the schema that they propose."""
    table_id = secrets.token_hex(5)
    with store.unfinished.begun(table_id) as (artefacts, scratch):
        raw = read(scratch / ROWS)
        assert raw.schema is not None and raw.profile is not None
        form = raw.form.model_dump(mode="json", exclude_unset=True)
        key, part = people_key(store.workspace), raw.compared(raw.schema)
        compared = Compared.of_part(part, raw.n, raw.names, raw.sums, key)
        described = _described(store, compared, table_id, about)
        with artefacts.filling(ROWS) as path:
            shutil.move(raw.path, path)
        return store.add_written(
            table_id,
            schema=as_learned(raw.schema),
            profile=raw.profile.model_dump(mode="json") | {FORM: form},
            n=raw.n,
            **described,
        )


def _described(
    store: RunStore, rows: pd.DataFrame | Compared, table_id: str, about: About
) -> dict[str, str]:
    """What is said of a table, with the ledger account of the people whose rows these are."""
    account_id, owner = about.get("account_id"), about.get("owner", "")
    shut = {key for key, access in accesses(store).items() if access.owner != owner.lower()}
    ending = Path(about["name"]).suffix
    seen = {one.name.removesuffix(ending) for one in store.tables() if one.id not in shut}
    name = free_name(about["name"].removesuffix(ending), seen) + ending
    chosen = choose_account(
        store, rows, title=name, table_id=table_id, account_id=account_id, owner=owner
    )
    return {
        "name": name,
        "source": about["source"],
        "account_id": chosen.account_id,
        "owner": owner,
    }
