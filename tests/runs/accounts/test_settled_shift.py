"""One function shifts all tagged releases of an account: settled once, kept, refused when lost."""

from __future__ import annotations

import json
import math
import stat
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from core.lmdp.shift import Shift
from core.models.events import Signal
from core.models.saved_model import SavedModel
from core.models.step import State
from core.privacy.ledger.ledger import Ledger
from core.privacy.plan import Plan, Protection
from core.runs.accounts.settled_shift import SettledShift
from core.runs.errors import RunStoreError
from core.runs.execution.lmdp_certificate import ShiftRows
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from tests.lmdp.worlds import DOMAIN, People, coded, people
from tests.privacy import toys

GROUPS = {"g": ("age", "ward")}


class Older(People):
    """Another model of the same table: its records would give another function."""

    def sample(self, rows, seed=None):
        return people(rows, 7 if seed is None else seed % 2**32, older=9.0)


@pytest.fixture
def store(tmp_path):
    with RunStore(Workspace(tmp_path / "home")) as store:
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("core.lmdp.shift._TRIALS", 40)
    monkeypatch.setattr("core.lmdp.shift.POOL", 2000)


def plan(shift: float = 0.75, *, private: bool = True) -> Plan:
    bare = toys.plan(1000, [toys.phase(noise_multiplier=20.0)])
    protection = Protection(groups=GROUPS, shift=shift)
    budget = bare.budget.model_copy(update={} if private else {"epsilon": math.inf})
    return bare.model_copy(update={"protection": protection, "budget": budget})


def settled(store: RunStore, account: str = "p", **of) -> SettledShift:
    return SettledShift(store, account, plan(**of), DOMAIN)


def function_of(store: RunStore, model: People, account: str = "p", **of) -> Shift:
    (shift,) = shifted(model, plan(**of), settled(store, account, **of)).transforms
    assert isinstance(shift, Shift)
    return shift


def shifted(model: People, plan: Plan, keeper: SettledShift) -> SavedModel:
    """What the step leaves of a model."""
    table, context = SimpleNamespace(plan=plan), SimpleNamespace(on_event=lambda _: Signal.GO_ON)
    before = State(model=SavedModel(model))
    return ShiftRows(keeper).run(table, before, context).trained  # type: ignore[arg-type]


def weights(shift: Shift) -> torch.Tensor:
    return shift.kept_share(coded(400, 9))


def test_later_releases_use_the_first_shift_function(store):
    first, later = function_of(store, People()), function_of(store, Older())
    assert torch.equal(weights(first), weights(later))
    # found anew it would be another one
    keeper = settled(store)
    anew = Shift.find(Older(), GROUPS, power=0.75, key=keeper.key)
    assert not torch.allclose(weights(first), weights(anew), atol=0.01)
    # another account, and another strength that was confirmed in words, have their own
    assert not torch.equal(weights(first), weights(function_of(store, People(), "q")))
    assert not torch.equal(weights(first), weights(function_of(store, People(), shift=0.4)))
    kinds = [(entry.account_id, entry.kind, entry.shift) for entry in store.ledger.entries()]
    assert kinds == [("p", "shift", 0.75), ("q", "shift", 0.75), ("p", "shift", 0.4)]
    assert store.ledger.verify()


def test_of_two_first_releases_at_once_one_settles_the_function(store):
    with ThreadPoolExecutor(8) as pool:
        functions = list(
            pool.map(lambda i: settled(store).settle(lambda: json.dumps([i]).encode()), range(16))
        )
    assert len(set(functions)) == 1
    assert len(store.ledger.entries("p")) == 1


def test_only_its_owner_reads_the_function(store):
    function_of(store, People())
    (file,) = (store.workspace.home / "shifts").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_lost_or_changed_shift_function_is_refused(store):
    function_of(store, People())
    (file,) = (store.workspace.home / "shifts").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(RunStoreError, match="not the one that was settled"):
        settled(store).kept()
    file.unlink()
    with pytest.raises(RunStoreError, match="is gone.*Nothing was read or spent"):
        settled(store).kept()
    with pytest.raises(RunStoreError, match="is gone"):
        function_of(store, Older())
    assert not file.exists()
    file.write_bytes(whole)  # from a copy
    assert settled(store).kept() == whole


def test_a_crash_before_the_ledger_knows_keeps_the_function(store, monkeypatch):
    def killed(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "settle_shift", killed)
        with pytest.raises(KeyboardInterrupt):
            settled(store).settle(lambda: b"first")
    assert settled(store).settle(lambda: b"second") == b"first"


def test_without_a_shift_nothing_is_kept(store):
    keeper = settled(store, shift=0.0)
    assert keeper.kept() is None and keeper.conditions() == ()
    assert shifted(People(), plan(0.0), keeper).transforms == ()
    assert not (store.workspace.home / "shifts").exists()


def test_a_shift_function_found_without_privacy_is_stated(store):
    function_of(store, People(), private=False)
    assert settled(store, private=False).conditions() == ()
    (said,) = settled(store).conditions()
    assert "without differential privacy" in said and "ledger entry 1-" in said
    assert said.values == {"entry": store.ledger.entries("p")[0].id}  # for other languages
    function_of(store, People(), "q")
    assert settled(store, "q").conditions() == ()


def test_nobody_learns_the_function_from_the_ledger(store):
    """Its digest stands there: whoever has one function can tell whether it was this one."""
    function_of(store, People())
    entry = store.ledger.entries("p")[0]
    (file,) = (store.workspace.home / "shifts").iterdir()
    numbers = json.loads(file.read_text())["tilts"][0]["phases"]
    assert not any(str(number) in entry.body() for number in numbers)
    assert len(entry.plan) == 64
