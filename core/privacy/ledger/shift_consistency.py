"""Shifts that stay consistent (α-LMDP): an account's first tagged release settles them for all.

What a shift hides can be computed from several releases that are shifted differently: two strengths
extrapolate to the real marginal, two groupings have two functions that average out. A release
without tags shows the marginal outright, or, without the tagged columns, the real shares of others,
from which expectation maximisation finds the hidden ones (`core.lmdp.recovery`). So the groups, the
declared domains of their columns and the strength are those of the first tagged release, and none
is without tags. Whatever else the steward wants has to be confirmed in words, and each later
certificate repeats that.

Columns are known by their names and declared values. A name that no earlier release had, or that
had other values, may be a tagged column under another name, so it needs words too. A column whose
cells were rewritten into another's values is not recognised.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from core.message import Message
from core.privacy.ledger.entries import Entry
from core.privacy.ledger.units import unit_statements
from core.privacy.plan import Plan
from core.schema.column import Column
from core.schema.person import Unit
from core.schema.schema import Domain

MAX_WORDS = 300  # characters of a confirmation
NO_OTHER_ACCOUNT = "The steward declared that these people have no other account."
SHARED_PEOPLE = (
    "The privacy officer noted that some of these people are also in tables of another owner. This "
    "account does not count releases of those tables: together they may exceed the limit."
)
COMPUTED = Message(
    "the hidden shares can be computed from them (in a test, a distance of .156 to the real shares "
    "fell to .002)"
)


@dataclass(frozen=True, kw_only=True)
class ReleaseScope:
    """What a plan would release, as far as hidden distributions go, and whom it protects."""

    columns: tuple[str, ...] | None
    column_digests: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    shift: float | None
    domain_digest: str
    unit: Unit

    @classmethod
    def of(cls, plan: Plan, domain: Domain | None) -> ReleaseScope:
        """What a plan for a domain releases; without the domain its columns are not known."""
        tags = {} if plan.protection is None else plan.protection.groups
        groups = tuple(sorted(tuple(sorted(names)) for names in tags.values()))
        tagged = {name for names in groups for name in names}
        modelled = () if domain is None else domain.modelled
        columns = sorted(modelled, key=lambda column: column.name)
        hidden = [[c.name, *_domain(c)] for c in columns if c.name in tagged]
        return cls(
            columns=None if domain is None else tuple(column.name for column in columns),
            column_digests=tuple(_digest(_domain(column))[:12] for column in columns),
            groups=groups,
            shift=None if plan.protection is None else plan.protection.shift,
            domain_digest=_digest(hidden) if hidden else "",
            unit=Unit.of(plan.unit),
        )

    def settles(self, entry: Entry) -> bool:
        """Whether an entry settles by which function such a release is shifted."""
        same = (entry.groups, entry.shift, entry.domain_digest)
        return entry.kind == "shift" and same == (self.groups, self.shift, self.domain_digest)

    def fields(self) -> dict[str, Any]:
        """What an entry keeps of it."""
        return dict(vars(self))


def _digest(facts: object) -> str:
    return sha256(json.dumps(facts).encode()).hexdigest()


def _domain(column: Column) -> list[object]:
    """What fixes the scale that a column is shifted on, and tells it from others; no name."""
    spikes, categories = list(column.spikes), list(column.categories or ())
    bounds = [column.low, column.high, column.step, column.scale]
    codes = [list(column.codes)] if column.codes else []
    return [column.kind.value, column.missing, *bounds, spikes, categories, *codes]


def objection(earlier: Sequence[Entry], scope: ReleaseScope) -> Message | None:
    """Why a release would reveal hidden distributions, from nothing that rows say; None if not."""
    releases = [entry for entry in earlier if entry.kind == "release"]
    fixed = next((entry for entry in releases if entry.groups), None)
    if fixed is None:
        return _after_untagged(releases, scope) if scope.groups else None
    problem = (
        _groups(fixed, scope)
        or _strength(fixed, scope)
        or _names(releases, scope)
        or _values(releases, scope)
    )
    if problem is None:
        return None
    return Message(
        "{problem} The first tagged release about these people fixed the tags {groups} and the "
        "strength {shift:g}. Nothing was spent. Plan with those tags, that strength and the "
        "columns as they were, or confirm in words that the hidden distributions may become known.",
        problem=problem,
        groups="; ".join(", ".join(group) for group in fixed.groups),
        shift=fixed.shift,
    )


def _after_untagged(releases: Sequence[Entry], scope: ReleaseScope) -> Message | None:
    """As `objection`, before any tagged release."""
    tagged = {name for names in scope.groups for name in names}
    shown = {name for entry in releases for name in entry.columns or ()}
    if not releases:
        return None
    if which := ", ".join(sorted(tagged & shown)):
        why = Message(
            "An earlier release about these people shows {columns} without a shift.", columns=which
        )
    elif any(entry.columns is None for entry in releases):
        why = Message(
            "An earlier release about these people may show the tagged columns without a shift."
        )
    else:
        why = Message(
            "Earlier releases about these people have no tags. They show the real shares of other "
            "columns, and {computed}.",
            computed=COMPUTED,
        )
    return Message(
        "{why} A shift cannot hide what was shown before. Nothing was spent. Continue without "
        "tags, or confirm in words that the hidden distributions may be known.",
        why=why,
    )


def _groups(fixed: Entry, scope: ReleaseScope) -> Message | None:
    if not scope.groups:
        return _untagged(fixed, scope)
    if scope.groups != fixed.groups:
        return Message(
            "Other tags or other groups get other shifts, and the real distribution can be found "
            "from two different shifts of a column."
        )
    if scope.domain_digest != fixed.domain_digest:
        return Message(
            "Other bounds, categories or scales of the tagged columns give another shift, and the "
            "real distribution can be found from two different shifts of a column."
        )
    return None


def _untagged(fixed: Entry, scope: ReleaseScope) -> Message | None:
    """What a release without tags would show."""
    if scope.columns is None:
        return Message("This release has no tags and does not say which columns it shows.")
    tagged = {name for names in fixed.groups for name in names}
    if shown := ", ".join(sorted(tagged & set(scope.columns))):
        return Message("This release would show {columns} without the shift.", columns=shown)
    return Message(
        "Without tags this release would show the real shares of other columns, even if the tagged "
        "ones are left out, and {computed}.",
        computed=COMPUTED,
    )


def _strength(fixed: Entry, scope: ReleaseScope) -> Message | None:
    if not scope.groups:
        return None
    if scope.shift != fixed.shift:
        return Message(
            "A different strength would undo the shift: two shifts at strengths .40 and .95 "
            "extrapolate to the real distribution (in a test, distances of .067 and .134 fell to "
            ".019)."
        )
    if not scope.shift:
        return Message(
            "Without a shift each training changes the tagged columns in another way, and the real "
            "distribution can be found from two of them."
        )
    return None


def _names(releases: Sequence[Entry], scope: ReleaseScope) -> Message | None:
    if scope.columns is None:
        return Message("This release does not say which columns it shows.")
    fresh = set(scope.columns).difference(*(entry.columns or () for entry in releases))
    if not fresh:
        return None
    return Message(
        "New column names ({names}) may be hidden columns under another name.",
        names=", ".join(sorted(fresh)),
    )


def _values(releases: Sequence[Entry], scope: ReleaseScope) -> Message | None:
    seen: dict[str, set[str]] = {}
    for entry in releases:
        for name, digest in zip(entry.columns or (), entry.column_digests, strict=False):
            seen.setdefault(name, set()).add(digest)
    own = zip(scope.columns or (), scope.column_digests, strict=True)
    changed = [name for name, digest in own if digest not in seen.get(name, {digest})]
    if not changed:
        return None
    return Message(
        "Columns that declare other values than before ({names}) may be hidden columns under "
        "another name.",
        names=", ".join(changed),
    )


def statements(entries: Sequence[Entry], n: int) -> tuple[tuple[str, str], ...]:
    """What a certificate must say of the account, oldest first, each with what it is about."""
    return tuple(dict.fromkeys(_said(entries, n)))


def _said(entries: Sequence[Entry], n: int) -> Iterator[tuple[str, str]]:
    yield from unit_statements(entries)
    for entry in entries:
        if entry.kind == "account" and entry.delta * n >= 1.0:  # opened with fewer records
            yield (
                "limit",
                Message(
                    "The limit of all releases about these people, δ {delta:.3g}, was set for a "
                    "smaller table: it is not below one over this table's {n} records.",
                    delta=entry.delta,
                    n=n,
                ),
            )
        if entry.kind == "statement":
            yield "people", NO_OTHER_ACCOUNT
        elif entry.kind == "shared":
            yield "people", SHARED_PEOPLE
        elif entry.kind == "release" and entry.words:
            yield (
                "shift",
                Message(
                    "The steward confirmed that a release about these people may reveal what is "
                    "hidden of tagged columns (ledger entry {entry}): “{words}”.",
                    entry=entry.seq,
                    words=entry.words,
                ),
            )
