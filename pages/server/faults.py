"""Faults: whatever is raised, the page ends in one plain sentence and the console has the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.errors import FragmentHandledException
from streamlit.runtime.scriptrunner import RerunException, StopException

from core.privacy.ledger.admission import LedgerError
from core.reading.cells import TableReadError
from core.runs.errors import RunStoreError, storage_trouble
from core.schema.column import SchemaError
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain

REFUSALS = (TableReadError, SchemaError, RunStoreError, LedgerError)  # their words are for people
# how the server itself goes from one run of a page to the next, and how a process ends
NO_FAULTS = (
    RerunException,
    StopException,
    FragmentHandledException,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
)
UNFORESEEN = to_say("Something unexpected went wrong")
KEPT = to_say("Your last action may be incomplete. Everything saved before is still there.")
_log = logging.getLogger(__name__)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Show whatever goes wrong in the block as one plain sentence.

    The product's own refusals bring their words. Of anything else people see no type, value or
    path of a file; the server's console has them. Faults of libraries written in Rust
    (`PanicException`) are no `Exception`, so everything is caught but what is no fault.
    """
    try:
        yield
    except NO_FAULTS:
        raise
    except REFUSALS as error:
        st.error(plain(said(error)), icon=":material/error:")
    except BaseException as error:
        _log.error("Fault on a page", exc_info=error)
        known = storage_trouble(error)
        trouble = (
            said(known)
            if known
            else f"{said(UNFORESEEN)}. {say('Try again. The console of this server has details.')}"
        )
        st.error(f"{trouble} {said(KEPT)}", icon=":material/error:")
