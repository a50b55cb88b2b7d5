"""Tables page: opening from a path or a database; the password is gone with the request."""

from __future__ import annotations

import pandas as pd
import pytest

from pages.server import guard
from tests.pages.screen import button, whole, words

pytestmark = pytest.mark.slow

SECRET = "word-that-nobody-may-see"


def fill(at, address: str, *, query: str = "", password: str = ""):
    """Type into the fields and send them."""
    fields = {field.label: field for field in at.text_input}
    fields["Address"].set_value(address)
    fields["Password (if needed)"].set_value(password)
    at.text_area[0].set_value(query)
    return whole(button(at, "Open table").click().run())


def test_a_folder_becomes_a_table(store, show, tmp_path):
    folder = tmp_path / "visits"
    folder.mkdir()
    pd.DataFrame({"age": [*range(20)] * 3}).to_parquet(folder / "0.parquet", index=False)
    at = fill(show("tables"), str(folder))
    assert not at.error
    (table,) = store.tables()
    assert (table.n, table.name, table.source) == (60, "visits", f"path {folder}")


def test_a_refusal_is_one_sentence_and_keeps_no_password(store, show):
    address = f"postgresql://me:{SECRET}@/none?host=/nowhere"
    at = fill(show("tables"), address, query="SELECT 1", password=SECRET)
    (error,) = at.error
    assert "Nothing was read" in error.value and SECRET not in words(at).replace(address, "")
    assert store.tables() == []
    kept = at.session_state.to_dict()
    assert kept["source_address"] == address  # to be corrected; the password is typed again
    assert SECRET not in repr({key: text for key, text in kept.items() if key != "source_address"})


def test_where_people_sign_in_paths_are_closed(store, show, tmp_path, monkeypatch):
    pd.DataFrame({"age": range(60)}).to_parquet(tmp_path / "a.parquet", index=False)
    at = show("tables")
    monkeypatch.setattr(guard, "configured", lambda: True)
    monkeypatch.setattr(guard, "sign_in", lambda: None)
    monkeypatch.setattr(guard, "roles", lambda: set(guard.ROLES))
    monkeypatch.setattr(guard, "address", lambda: "")
    monkeypatch.setattr(guard, "who_is_here", lambda: None)
    at = fill(at, str(tmp_path / "a.parquet"))
    assert "does not let anyone open this address" in at.error[0].value and store.tables() == []
