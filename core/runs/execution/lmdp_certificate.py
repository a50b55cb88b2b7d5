"""α-LMDP in a run: the shift after a fit, and the certificate.

Under differential privacy nothing here looks at real rows but the certificate's paid release. A run
that claims none is checked directly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core.encoding.codec import Codec, Codes
from core.encoding.stored_codes import StoredCodes
from core.lmdp.certificate import NEEDED, GroupTest, RejectionCount
from core.lmdp.inside import inside_check
from core.lmdp.level import GROUP, groups_of, threshold
from core.lmdp.recovery import measure
from core.lmdp.shift import Shift
from core.message import Message
from core.models.events import Emitter, OnEvent, Signal
from core.models.saved_model import LAYOUT, SHIFT, Sampler, SavedModel
from core.models.step import FitContext, FreeStep, State
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Plan, certificate_phase
from core.runs.accounts.settled_shift import SettledShift
from core.runs.execution.job import LmdpResult, Undone

MOST_CHECKED = 40_000  # released records that an inside check looks at


@dataclass(frozen=True)
class ShiftRows(FreeStep):
    """A `Step`: the marginal shift of tagged columns, where one is planned; reads no real row.

    Later attempts and later releases use the function that the first one found, also where their
    own records would have given another strength.
    """

    settled: SettledShift

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        protection, model = table.plan.protection, state.trained
        if protection is None or not protection.shift:
            return state
        _say(context.on_event, "shift", Message("Shifting the tagged columns"))
        groups, power = protection.groups, protection.shift

        def find() -> bytes:
            return Shift.find(model, groups, power=power, key=self.settled.key).to_json().encode()

        shift = Shift.from_json(self.settled.settle(find), model.domain)
        return replace(state, model=model.then(shift))


@dataclass(frozen=True)
class CheckInside(FreeStep):
    """A `Step`: each tagged group tested directly; only where no differential privacy is claimed.

    Attributes:
      codes: the real records.
    """

    codes: Codes | StoredCodes

    def run(self, table: PrivateTable, state: State, context: FitContext) -> State:
        """See `Step`."""
        codec = Codec(table.domain)
        released = codec.encode(modelled(state).sample(min(len(self.codes), MOST_CHECKED)))
        verdicts = check_inside(codec, table.plan, real=self.codes, released=released)
        return replace(state, verdicts=tuple(verdicts))


def modelled(state: State) -> SavedModel:
    """The model of a state before its layout: its rows are as models see them."""
    model = state.trained
    return model if model.transform(LAYOUT) is None else model.without(LAYOUT)


def attack(model: SavedModel, plan: Plan) -> list[Undone]:
    """How much of the shift can be undone with true shares of the other columns, by group.

    Computed from records that the model makes before and after its shift, so it costs nothing and
    shows nothing of real rows that the model does not. It is told in steps of five percent, rounded
    down: finer ones would be chance.

    Returns:
      Nothing where no column is shifted or none is left without a tag.
    """
    shift = model.transform(SHIFT)
    if plan.protection is None or not isinstance(shift, Shift):
        return []
    found = measure(model.without(SHIFT), shift, plan.protection.groups)
    return [
        {"group": group, "columns": list(one.columns), "undone": math.floor(20 * one.undone) / 20}
        for group, one in found.items()
    ]


def certify(
    table: PrivateTable, fitted: Sampler, plan: Plan, *, on_event: OnEvent
) -> list[LmdpResult]:
    """Release each group's certificate of one attempt and say whether it is granted.

    Each attempt is tested at its part of α: a run ends with the first attempt that passes.

    A count that was paid for before a crash and lost by it is not made again: it grants nothing.

    Args:
      table: the door to the rows; charged for each certificate.
      fitted: the shifted model, which makes the released records.
      plan: with a phase for each certificate.
    """
    assert plan.protection is not None
    protection, codec = plan.protection, Codec(fitted.domain)
    assert protection.certificate is not None
    _say(on_event, "certificate", Message("Testing the tagged columns, with noise"), private=True)
    released = codec.encode(fitted.sample(NEEDED))
    groups = groups_of(table.n, people=plan.unit is not None and plan.unit.grouped)
    # of one record's: noise for all rows of a person, where nobody can tell them, is m times wider
    quiet = protection.certificate / plan.rows_of_one
    level = threshold(groups, epsilon=quiet, alpha=plan.attempt_alpha)
    results = []
    for group, names in protection.groups.items():
        if table.meter.runs(certificate_phase(group)):
            results.append(_lost(group, names, plan))
            continue
        mechanism = RejectionCount(GroupTest.calibrate(codec, names, released))
        count = float(table.release(certificate_phase(group), mechanism)[0])
        results.append(
            {
                "group": group,
                "columns": list(names),
                "kind": Message("private certificate"),
                "granted": count > level,
                "alpha": protection.alpha,
                "alpha_each_attempt": plan.attempt_alpha,
                "count": round(count, 2),
                "groups": groups,
                "threshold": round(level, 2),
                "epsilon": protection.certificate,
                "test": Message(
                    "kernel two-sample test of {group} real records at a time against released "
                    "ones; the number of rejections is released with Laplace noise",
                    group=GROUP,
                ),
            }
        )
    return results


def _lost(group: str, names: tuple[str, ...], plan: Plan) -> LmdpResult:
    assert plan.protection is not None
    return {
        "group": group,
        "columns": list(names),
        "kind": Message("lost certificate"),
        "granted": False,
        "alpha": plan.protection.alpha,
        "alpha_each_attempt": plan.attempt_alpha,
        "epsilon": plan.protection.certificate,
        "test": Message(
            "the count was paid for and lost when the worker process ended, before it was "
            "stored; it is not made again, so nothing is certified"
        ),
    }


def check_inside(
    codec: Codec, plan: Plan, *, real: Codes | StoredCodes, released: Codes
) -> list[LmdpResult]:
    """Test each group directly in one attempt; only where no differential privacy is claimed."""
    assert plan.protection is not None and not plan.budget.private
    level, results = plan.attempt_alpha, []
    for group, names in plan.protection.groups.items():
        check = inside_check(codec, names, real=real, released=released, level=level)
        results.append(
            {
                "group": group,
                "columns": list(names),
                "kind": Message("inside check"),
                "granted": check.rejects(level),
                "alpha": plan.protection.alpha,
                "alpha_each_attempt": level,
                "p_two_sample": check.two_sample.p_value,
                "p_stein": check.goodness.p_value,
                "test": Message(
                    "kernel two-sample test and Stein test of {records} real "
                    "records against released ones; both must reject",
                    records=check.records,
                ),
            }
        )
    return results


def _say(on_event: OnEvent, name: str, title: str, *, private: bool = False) -> None:
    Emitter(on_event, obeys=(Signal.CANCEL,)).phase(name, title, private=private)
