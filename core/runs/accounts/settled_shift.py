"""The function that shifts an account's tagged columns: settled once, kept, used for every release.

It comes from a secret key and, through scales and strength, from the records of the model it was
found on. Were it found anew for each release, what two of them have in common would be the real
distribution. So the first release that finds it keeps it as a secret of the workspace, and the
ledger keeps its digest: one that is lost or was changed is refused before anything is spent.

Where the steward confirmed another strength, other groups or other declared domains in words, those
have a function of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from core.message import Message, to_say
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.shift_consistency import ReleaseScope
from core.privacy.plan import Plan
from core.runs.errors import RunStoreError
from core.runs.storage.storages import open_storage
from core.runs.storage.store import RunStore
from core.runs.storage.workspace_secrets import shift_key
from core.schema.schema import Domain

LOST = to_say(
    "The function that shifts the tagged columns of these people is {how} (`{name}` among the "
    "secrets of the workspace). Nothing was read or spent. Put it back from a copy of the "
    "workspace: another function would show what this one hides."
)
NOT_PRIVATE = to_say(
    "The function that shifts the tagged columns was settled by a release about these people "
    "without differential privacy (ledger entry {entry}), and ε does not cover what it shows."
)


class SettledShift:
    """The function of one account and setting.

    Args:
      plan: whose tagged columns are shifted, and how far.

    Attributes:
      key: the secret that a new function comes from.

    Raises:
      RunStoreError: the key on disk is not whole, or as `kept`.
    """

    def __init__(self, store: RunStore, account_id: str, plan: Plan, domain: Domain):
        self.key = shift_key(store.workspace, account_id)
        self._ledger, self._storage = store.ledger, open_storage(store.workspace)
        self._account_id, self._plan = account_id, plan
        self._scope = ReleaseScope.of(plan, domain)
        setting = [account_id, self._scope.groups, self._scope.shift, self._scope.domain_digest]
        self._name = f"shifts/{_digest(json.dumps(setting).encode())[:32]}.json"
        self.kept()

    def kept(self) -> bytes | None:
        """The function that was settled; None before any release has found one.

        Raises:
          RunStoreError: the ledger holds another one, or one that is gone.
        """
        if not self._scope.shift:
            return None
        entry, content = self._entry(), self._storage.read_secret(self._name)
        if entry is not None and content is None:
            raise RunStoreError(LOST, how=Message("gone"), name=self._name)
        if entry is not None and content is not None and entry.plan != _digest(content):
            changed = Message("not the one that was settled")
            raise RunStoreError(LOST, how=changed, name=self._name)
        return content

    def settle(self, find: Callable[[], bytes]) -> bytes:
        """The function to use: the one that is kept, else a new one, kept from now on.

        Of two first releases at once the function of one is settled, and both use it.

        Args:
          find: finds a function, from synthetic records.

        Raises:
          RunStoreError: as `kept`.
        """
        if self.kept() is None:
            self._storage.create_secret(self._name, find())
        content = self._storage.read_secret(self._name)
        assert content is not None
        private = self._plan.budget.private
        self._ledger.settle_shift(self._account_id, self._scope, _digest(content), private=private)
        self.kept()  # the ledger may hold another one since
        return content

    def conditions(self) -> tuple[str, ...]:
        """What a certificate must say of the function, a sentence each."""
        entry = self._entry() if self._scope.shift else None
        if entry is None or entry.private or not self._plan.budget.private:
            return ()
        return (Message(NOT_PRIVATE, entry=entry.id),)

    def _entry(self) -> Entry | None:
        return self._ledger.settled_shift(self._account_id, self._scope)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
