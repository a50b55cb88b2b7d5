"""Two servers and four workers pay from the same accounts at once: none goes over its limit.

What the ledger did is checked from its entries alone, with the filter written out anew; the same
processes without the lock are the broken twin, which that check must find.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.models.planning import plan_fit
from core.privacy.accounting.accountant import epsilon
from core.privacy.ledger.entries import Entry
from core.privacy.plan import Budget, Plan
from core.runs.accounts.account import default_limit
from core.runs.workspace import PROJECT_ROOT
from core.services import runs
from tests.postgres_server import BOTH
from tests.runs import toy
from tests.runs.debtors import DEFAULTED, DOMAIN, LIMIT, N

pytestmark = pytest.mark.slow

ROLES = ("server", "server", "worker", "worker", "worker", "worker")
ACCOUNTS = {"crowded": 0.45, "also crowded": 0.3, DEFAULTED: 1.7, "quiet": 0.2}  # ε of a debit
DEBITS = 200  # of all processes together


def plan_of(wanted: float) -> Plan:
    return plan_fit(toy.Toy(), DOMAIN, N, Budget(epsilon=wanted, delta=1e-6), {})


def shares(plans: dict[str, Plan]) -> list[list[tuple[str, str, str]]]:
    """What each process pays: most from two accounts, some under keys that all share."""
    shared = [("crowded", plans["crowded"].model_dump_json(), f"all-{i}") for i in range(2)]
    turn = ("crowded", "also crowded", DEFAULTED, "crowded", "also crowded", "quiet")
    own = DEBITS - len(ROLES) * len(shared)
    lists: list[list[tuple[str, str, str]]] = [list(shared) for _ in ROLES]
    for number in range(own):
        account_id = turn[(number // len(ROLES)) % len(turn)]
        if account_id == "quiet" and number % 4:
            account_id = "crowded"
        debit = (account_id, plans[account_id].model_dump_json(), f"{number}")
        lists[number % len(ROLES)].append(debit)
    return lists


@dataclass(frozen=True)
class Race:
    """What became of the debits: the entry's name by key, "" where it was refused."""

    asked: dict[str, str]  # account by key
    told: list[dict[str, str]]
    seconds: float


def race(home: Path, plans: dict[str, Plan], *flags: str) -> Race:
    """Let all processes pay at the same moment."""
    command = [sys.executable, "-m", "tests.runs.debtors", str(home)]
    with ExitStack() as ended:
        processes = [
            ended.enter_context(
                subprocess.Popen(
                    [*command, role, *flags],
                    cwd=PROJECT_ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for role in ROLES
        ]
        for process in processes:  # before they are waited for, where one of them fails
            ended.callback(process.kill)
        return _pay(processes, shares(plans))


def _pay(processes: list[subprocess.Popen[str]], lists: list[list[tuple[str, str, str]]]) -> Race:
    """Tell each process its debits once all are ready, and take their answers."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process, debits in zip(processes, lists, strict=True):
        assert process.stdin is not None
        process.stdin.write(f"{json.dumps(debits)}\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(ROLES), said
    answers: list[dict[str, Any]] = [json.loads(out) for out, _ in said]
    asked = {key: account_id for debits in lists for account_id, _, key in debits}
    return Race(asked, [one["told"] for one in answers], max(one["seconds"] for one in answers))


def capacity(limit: float, delta: float) -> tuple[float, float]:
    """Order and room of the Rényi filter: Feldman & Zrnic 2021, Theorem 4.3."""
    order = 1.0 + 2.0 * math.log(1.0 / delta) / limit
    return order, limit + math.log(delta * order) / (order - 1.0) - math.log1p(-1.0 / order)


def problems(entries: tuple[Entry, ...], plans: dict[str, Plan], told: Race) -> list[str]:
    """What is wrong with a ledger after a race, worked out from nothing but its entries."""
    wrong = []
    debits = [entry for entry in entries if entry.kind == "release"]
    admitted = {key: name for one in told.told for key, name in one.items() if name}
    if {entry.run: entry.id for entry in debits} != admitted:
        wrong.append("what was told is not what was written")
    if any(one.get(key) not in (None, name) for one in told.told for key, name in admitted.items()):
        wrong.append("one key was told two things")
    for account_id, plan in plans.items():
        opened = [e for e in entries if e.kind == "account" and e.account_id == account_id]
        if len(opened) != 1:
            wrong.append(f"{account_id}: opened {len(opened)} times")
            continue
        (phase,) = plan.phases
        order, room = capacity(opened[0].limit, opened[0].delta)
        each = phase.count * order / (2.0 * phase.noise_multiplier**2)  # a Gaussian's divergence
        count = sum(entry.account_id == account_id for entry in debits)
        most = math.floor(room / each)
        asked = sum(account == account_id for account in told.asked.values())
        if count > most:
            wrong.append(f"{account_id}: over the limit, {count} debits where {most} have room")
        elif count < min(most, asked):
            wrong.append(f"{account_id}: {count} debits where {min(most, asked)} have room")
        together = [phase.model_copy(update={"count": phase.count * count})]
        if count and epsilon(together, opened[0].delta)[0] > opened[0].limit:
            wrong.append(f"{account_id}: over the limit by the accountant")
    return wrong


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {account_id: plan_of(wanted) for account_id, wanted in ACCOUNTS.items()}


@BOTH
def test_no_account_goes_over_its_limit(
    database: str, tmp_path: Path, plans: dict[str, Plan]
) -> None:
    home = tmp_path / "home"
    told = race(home, plans)
    with runs.open_store(home) as store:
        ledger = store.ledger
        entries = ledger.entries()
        assert problems(entries, plans, told) == []
        report = ledger.verify()
    assert report and report.entries == len(entries)
    by_name = {entry.account_id: entry for entry in entries if entry.kind == "account"}
    assert (by_name["crowded"].limit, by_name["crowded"].delta) == LIMIT
    assert (by_name[DEFAULTED].limit, by_name[DEFAULTED].delta) == default_limit(N)
    asked = sum(len(one) for one in told.told)
    passed = sum(entry.kind == "release" for entry in entries)
    assert asked == DEBITS and 0 < passed < len(told.asked)
    print(f"{asked} debits by {len(told.asked)} keys: {passed} admitted in {told.seconds:.2f} s")


@BOTH
def test_without_the_lock_it_is_seen(database: str, tmp_path: Path, plans: dict[str, Plan]) -> None:
    home = tmp_path / "home"
    told = race(home, plans, "--unlocked")
    with runs.open_store(home) as store:
        wrong = problems(store.ledger.entries(), plans, told)
    assert any("over the limit" in one for one in wrong), wrong
