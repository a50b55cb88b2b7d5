"""A server whose people sign in against a provider that speaks the real protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from joserfc import jwt
from joserfc.jwk import OctKey

from core.runs.records import RunRecord
from core.runs.request import RunRequest
from core.runs.storage.access import set_access
from core.services import imports, planning, runs, tables
from core.services.sample_tables import sample_table
from tests.browser.provider import CLIENT, PASSWORD, Provider
from tests.pages.screen import finish
from tests.ports import free_port

COOKIE_SECRET = "0123456789abcdef0123456789abcdef"
USER = "_streamlit_user"
PEOPLE = {
    "steward": ["ann@x.org", "ada@x.org"],
    "reviewer": ["bob@x.org"],
    "privacy_officer": ["pat@x.org"],
}
NEW, OLD = "wages 2025", "old census"


class House:
    """A server whose people sign in, its provider, its secrets file and its workspace."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.provider, self.port = provider, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.secrets, self.home = folder / "secrets.toml", folder / "home"
        self.say(PEOPLE)
        self.store = runs.open_store(self.home)
        self.old, self.new = (self._finished(name) for name in (OLD, NEW))
        set_access(self.store, self.new.table_id, owner="ann@x.org")

    def say(self, people: dict[str, list[str]]) -> None:
        """Write the secrets file."""
        roles = "\n".join(f"{role} = {names!r}" for role, names in people.items())
        self.secrets.write_text(
            f"""[auth]
redirect_uri = "{self.url}/oauth2callback"
cookie_secret = "{COOKIE_SECRET}"
client_id = "{CLIENT}"
client_secret = "{PASSWORD}"
server_metadata_url = "{self.provider.url}/.well-known/openid-configuration"
[roles]
{roles}
"""
        )

    def _finished(self, name: str) -> RunRecord:
        table = imports.import_frame(
            self.store, sample_table(60), name=name, source="test", account_id=name
        )
        table = tables.declare_all(self.store, table)
        self.store.attest(table.id)
        request = RunRequest(model="pearl", epsilon=1.0)
        run = self.store.create_run(
            table.id,
            planning.make_plan(table.schema, table.training_n, request),
            request.model_copy(
                update=dict(
                    rows=3,
                    seed=1,
                    device="cpu",
                    name=f"run of {name}",
                )
            ),
            schema=table.schema,
        )
        finish(self.store, run)
        return self.store.run(run.id)


@contextmanager
def http_sign_in(house: House, email: str = "ann@x.org") -> Iterator[httpx.Client]:
    """A client that went where the page's button leads, and wherever it was sent from there."""
    house.provider.person = {"email": email, "email_verified": True, "name": email}
    payload = {"provider": "default", "exp": int(time.time()) + 60}
    token = jwt.encode({"alg": "HS256"}, payload, OctKey.import_key(COOKIE_SECRET))
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        client.get(f"{house.url}/auth/login", params={"provider": token})
        yield client
