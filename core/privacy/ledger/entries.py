"""Entries of the ledger: their form, their hash chain, and what an account has left."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Column, Integer, MetaData, String, Table, Text

__all__ = ["GENESIS", "PURCHASE", "ChainReport", "Entry", "Left", "check_chain", "entries_table"]

# not in older ones
LATER = (
    "columns", "column_digests", "groups", "shift", "domain_digest", "words", "statements",
    "failure", "unit",
)  # fmt: skip
PURCHASE = "schema"  # what stands for a model where bounds and lists were bought
GENESIS = "0" * 64  # what the first entry calls the hash before it

entries_table = Table(
    "ledger",
    MetaData(),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("people", String, nullable=False, index=False),
    Column("run", String, unique=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
)


class Entry(BaseModel):
    """One line of the ledger; never changed once written.

    Attributes:
      seq: 1, 2, 3, … over all accounts.
      time: seconds since 1970-01-01 UTC.
      kind: "account" opens an account with its limit, "release" pays for a plan, "statement" is
        something the steward declared about an account, "shift" settles the function by which
        its tagged releases of some groups, strength and declared domains are all shifted.
      people: the account.
      run: key of a release, None for an account.
      model: registry id of what was released.
      plan: digest of the plan; of a shift, of its function.
      epsilon: the limit, or the release's ε at its own δ; None for no differential privacy.
      delta: the limit's or the release's δ.
      rho: the release's Rényi divergence at the account's order.
      previous: hash of the entry before.
      columns: names of the columns that were released, sorted; None where nobody said.
      column_digests: of what each of them declares, its name apart, in their order.
      groups: the tagged columns (α-LMDP), each group sorted; empty without tags.
      shift: strength of their shift; None without tags.
      domain_digest: of the tagged columns' declared domains; its name in the chain is "frame".
      words: what the steward wrote, when the entry needed it.
      statements: what certificates must repeat, each with what it is about ("people", "shift" or
        "limit"); see `core.privacy.ledger.shift_consistency`.
      failure: the part of a release's δ that its divergence does not cover: the probability that
        it shows what one person alone holds.
      unit: whom a release protects, see `Person.words`; empty where nobody said, which is a row.
      hash: SHA-256 of everything above. What is left at its default is not part of it, so entries
        of older versions keep their hash.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    seq: int
    time: float
    kind: Literal["account", "release", "statement", "shift"]
    people: str
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
    domain_digest: str = Field(default="", alias="frame")
    words: str = ""
    statements: tuple[tuple[str, str], ...] = ()
    failure: float = 0.0
    unit: str = ""
    hash: str = ""

    @property
    def id(self) -> str:
        """A short name for certificates: place in the chain and the head of its hash."""
        return f"{self.seq}-{self.hash[:12]}"

    @property
    def private(self) -> bool:
        """Whether any differential privacy is claimed."""
        return self.epsilon is not None

    @property
    def purchase(self) -> bool:
        """Whether it paid for bounds and lists, and not for rows."""
        return self.kind == "release" and self.model == PURCHASE

    @property
    def limit(self) -> float:
        """ε, inf for no differential privacy."""
        return math.inf if self.epsilon is None else self.epsilon

    def body(self) -> str:
        """Canonical JSON of everything but the hash."""
        defaults = {name: type(self).model_fields[name].default for name in LATER}
        unused = {name for name in LATER if getattr(self, name) == defaults[name]}
        fields = self.model_dump(mode="json", by_alias=True, exclude={"hash", *unused})
        return json.dumps(fields, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def sealed(self) -> Self:
        """This entry with its hash."""
        return self.model_copy(update={"hash": _digest(self.body())})

    def row(self) -> dict[str, Any]:
        """The database's row."""
        return {"body": self.body(), **self.model_dump(include={"seq", "people", "run", "hash"})}

    @classmethod
    def read(cls, body: str, digest: str) -> Self:
        """The entry a row holds."""
        return cls(**json.loads(body), hash=digest)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


class ChainReport(BaseModel):
    """Whether the chain holds; true in a condition exactly when it does.

    Attributes:
      sound: no entry was changed, removed from the middle, added between or reordered.
      entries: how many were checked.
      head: hash of the newest sound entry; compare it with the one in a certificate to see whether
        entries were cut off the end.
      problem: what is wrong, in one sentence, naming the first bad entry.
    """

    model_config = ConfigDict(frozen=True)

    sound: bool
    entries: int
    head: str
    problem: str = ""

    def __bool__(self) -> bool:
        return self.sound


def check_chain(rows: Sequence[dict[str, Any]]) -> ChainReport:
    """Follow the chain through the database's rows, in order."""
    head = GENESIS
    for place, row in enumerate(rows, start=1):
        problem = _problem(row, place, head)
        if problem:
            return ChainReport(sound=False, entries=place - 1, head=head, problem=problem)
        head = row["hash"]
    return ChainReport(sound=True, entries=len(rows), head=head)


def _problem(row: dict[str, Any], place: int, head: str) -> str:
    if row["seq"] != place:
        return f"Entry {place} is missing; the next one is numbered {row['seq']}."
    if _digest(row["body"]) != row["hash"]:
        return f"Entry {place} was changed after it was written."
    try:
        entry = Entry.read(row["body"], row["hash"])
    except ValueError:
        return f"Entry {place} cannot be read."
    if entry.previous != head:
        return f"Entry {place} does not follow the entry before it."
    if entry.row() != row:
        return f"Entry {place} is filed under another number, account or run than it states."
    return ""


class Left(BaseModel):
    """What an account still allows.

    Attributes:
      limit, delta: (ε_g, δ_g).
      order: α*.
      releases: private releases so far.
      non_private: releases without differential privacy; with any, no limit holds for what they
        showed.
      filter: "rdp" (amounts are Rényi divergences at α*) or "sum" (amounts are ε).
      capacity, spent: in the filter's unit.
      delta_spent: Σδ under the sum filter, else 0.
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

    @property
    def share(self) -> float:
        """The part of the limit that is left, in [0, 1]."""
        if self.capacity <= 0.0:
            return 0.0 if self.releases else 1.0
        return min(1.0, max(0.0, 1.0 - self.spent / self.capacity))

    def epsilon(self, delta: float) -> float:
        """About the largest ε one more release at that δ could have; 0 when nothing is left.

        Before the first release the whole limit. Under the RDP filter the ε of a Gaussian that uses
        up the rest, at most the whole limit: other mechanisms may get a little less or more.

        Args:
          delta: the release's own δ, in (0, 1).
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
        return f"about ε {value:.2f}" if value >= 0.005 else "nothing"
