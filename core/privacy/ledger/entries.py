"""Entries of the ledger: their form, and what an account has left."""

from __future__ import annotations

import json
import math
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Column, Integer, MetaData, String, Table, Text

from core.message import Message
from core.message import Text as SavedText
from core.privacy.ledger.chain import seal
from core.schema.person import Unit

entries_table = Table(
    "ledger",
    MetaData(),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("account_id", String, nullable=False, index=False),
    Column("run", String, unique=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
)


class Entry(BaseModel):
    """One line of the ledger; never changed once written.

    Attributes:
      kind: "account" opens an account with its limit, "release" pays for a plan, "statement" is the
        steward's, that its people have no other account, "shared" the privacy officer's, that some
        have one of another owner, "shift" settles the function by which its tagged releases of some
        groups, strength and declared domains are all shifted.
      plan: digest of the plan; of a shift, of its function.
      epsilon: the limit, or the release's ε at its own δ; None for no differential privacy.
      rho: the release's Rényi divergence at the account's order.
      columns: names of the columns that were released, sorted; None where nobody said.
      column_digests: of what each of them declares, its name apart, in their order.
      groups: the tagged columns (α-LMDP), each group sorted; `shift`, their strength.
      statements: what certificates must repeat, each with what it is about.
      failure: the part of a release's δ that its divergence does not cover: the probability that it
        shows what one person alone holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    time: float
    kind: Literal["account", "release", "statement", "shared", "shift"]
    account_id: str
    run: str | None
    model: str
    plan: str
    epsilon: float | None
    delta: float
    rho: float
    previous: str
    columns: tuple[str, ...] | None = None
    column_digests: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    shift: float | None = None
    domain_digest: str = ""
    words: str = ""
    statements: tuple[tuple[str, SavedText], ...] = ()
    failure: float = 0.0
    unit: Unit = Unit()
    unit_words: str = ""
    hash: str = ""

    @property
    def id(self) -> str:
        """A short name for certificates: its number and the first digits of its hash."""
        return f"{self.seq}-{self.hash[:12]}"

    @property
    def private(self) -> bool:
        """Whether any differential privacy is claimed."""
        return self.epsilon is not None

    @property
    def limit(self) -> float:
        """ε, inf for no differential privacy."""
        return math.inf if self.epsilon is None else self.epsilon

    def body(self) -> str:
        """Canonical JSON of everything but the hash."""
        fields = self.model_dump(mode="json", exclude={"hash"})
        return json.dumps(fields, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def sealed(self, key: bytes) -> Self:
        """This entry with its hash, by the key of the workspace."""
        row = self.model_dump(include={"seq", "account_id", "run", "previous"})
        return self.model_copy(update={"hash": seal(key, **row, body=self.body())})

    def row(self) -> dict[str, Any]:
        """The database's row."""
        return {
            "body": self.body(),
            **self.model_dump(include={"seq", "account_id", "run", "hash"}),
        }

    @classmethod
    def read(cls, body: str, digest: str) -> Self:
        """The entry a row holds."""
        return cls(**json.loads(body), hash=digest)


class Left(BaseModel):
    """What an account still allows.

    Attributes:
      order: α*.
      non_private: releases without differential privacy; with any, no limit holds for these.
      filter: "rdp" (amounts are Rényi divergences at α*) or "sum" (amounts are ε).
      capacity, spent: in the filter's unit; `delta_spent`, Σδ under the sum filter, else 0.
      units: that its private releases protect; with several the limit holds for none of them.
    """

    model_config = ConfigDict(frozen=True)

    limit: float
    delta: float
    order: float
    releases: int
    non_private: int
    filter: Literal["rdp", "sum"]
    capacity: float
    spent: float
    delta_spent: float
    units: tuple[Unit, ...] = ()

    @property
    def share(self) -> float:
        """The part of the limit that is left, in [0, 1]."""
        if self.capacity <= 0.0:
            return 0.0 if self.releases else 1.0
        return min(1.0, max(0.0, 1.0 - self.spent / self.capacity))

    def epsilon(self, delta: float) -> float:
        """About the largest ε one more release at that δ could have; 0 when nothing is left.

        Before the first release the whole limit. Under the RDP filter the ε of a Gaussian that uses
        up the rest, at most the whole limit.
        """
        if self.releases == 0:
            return self.limit if delta <= self.delta else 0.0
        rest = self.capacity - self.spent
        if rest <= 0.0:
            return 0.0
        if self.filter == "sum":
            return rest if self.delta_spent + delta <= self.delta else 0.0
        from dp_accounting.gaussian_mechanism import get_epsilon_gaussian  # costs 65 MB

        gaussian = float(get_epsilon_gaussian(math.sqrt(self.order / (2.0 * rest)), delta))
        return min(gaussian, self.limit)

    def words(self, delta: float) -> str:
        """For a sentence: "about ε 0.31" or "nothing"."""
        value = self.epsilon(delta)
        return Message("about ε {value:.2f}", value=value) if value >= 0.005 else Message("nothing")
