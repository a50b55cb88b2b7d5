"""Histories: whoever is left out, with all events, moves no access beyond its sensitivity."""

from __future__ import annotations

import numpy as np
import pytest

from core.encoding.layout.layout import Layout
from core.encoding.person_rows import PersonRows, encoded_records
from core.models.planning import plan_fit
from core.models.registry import synthesizer
from core.models.step import FitContext
from core.privacy.guarded import PrivateTable
from core.privacy.plan import Budget
from tests.contract.fits import QUICK
from tests.histories import MOST, leaving, schema, scored, three_levels, two_files, visits
from tests.models.tables import Watcher
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.privacy.harness import Caught
from tests.privacy.omission import leaving_out
from tests.privacy.test_people import OmittingPeople

pytestmark = pytest.mark.slow
PEOPLE = 60


def one_file(people):
    """Rows and their schema."""
    return visits(people), schema()


def omitting(folder, patch, made=one_file, model="scan_focus"):
    """Fit windows, and leave each person out of every access; the phases that were carried out."""
    rows, declared = made(PEOPLE)[:2]
    layout = Layout(declared.domain())
    codes, people = encoded_records(rows, layout, declared.person)
    budget = Budget(epsilon=1.0, delta=1e-5)
    method = synthesizer(model)
    plan = plan_fit(method, layout.domain, PEOPLE, budget, QUICK[model], unit=declared.person)
    with leaving_out(patch) as (streams, kind):
        source = DeterministicNoise(3)
        table = OmittingPeople(codes, layout.domain, plan, people=people, noise_source=source)
        table.streams, table.phases = streams, set()
        method.fit(table, plan, FitContext(on_event=Watcher(), folder=folder, seed=7))
    return plan, table.phases, kind


@pytest.mark.parametrize("made", [one_file, scored, leaving, two_files, three_levels])
def test_person_left_out_moves_no_access_of_histories(tmp_path, monkeypatch, made):
    plan, phases, _ = omitting(tmp_path, monkeypatch, made)
    planned = {phase.name for phase in plan.phases}
    assert phases | {"zeros"} == planned | {"zeros"}  # asked only where pairs suggest any


def test_person_left_out_moves_no_fingerprint_of_histories(tmp_path, monkeypatch):
    plan, phases, _ = omitting(tmp_path, monkeypatch, model="pearl")
    assert phases == {phase.name for phase in plan.phases}


def test_windows_of_files_that_weigh_one_in_each_are_caught(tmp_path, monkeypatch):
    """Whoever counts a person's windows of each file apart lets them count twice."""
    halved = PersonRows.weights.func
    twice = property(lambda self: 2.0 * halved(self))
    monkeypatch.setattr(PersonRows, "weights", twice)
    with pytest.raises(Caught):
        omitting(tmp_path, monkeypatch, two_files)


def test_members_who_weigh_one_each_are_caught(tmp_path, monkeypatch):
    """Whoever takes members for people lets a home count as often as it has members."""
    honest = PersonRows.weights.func

    def weights(self):
        return honest(self) * np.repeat(np.minimum(self.counts, 2), self.counts)

    monkeypatch.setattr(PersonRows, "weights", property(weights))
    with pytest.raises(Caught):
        omitting(tmp_path, monkeypatch, three_levels)


def test_windows_that_weigh_one_each_are_caught(tmp_path, monkeypatch):
    ones = property(lambda self: np.ones(int(self.offsets[-1]), dtype=np.float32))
    monkeypatch.setattr(PersonRows, "weights", ones)
    with pytest.raises(Caught):
        omitting(tmp_path, monkeypatch)


def test_more_events_than_are_used_are_refused():
    """Whoever forgets m has more windows of one person than the plan pays for."""
    declared, most = schema(MOST), schema(3 * MOST)
    layout = Layout(most.domain())
    codes, people = encoded_records(visits(PEOPLE, most=3 * MOST), layout, most.person)
    plan = plan_fit(
        synthesizer("scan_focus"),
        layout.domain,
        PEOPLE,
        Budget(epsilon=1.0, delta=1e-5),
        QUICK["scan_focus"],
        unit=declared.person,
    )
    with pytest.raises(ValueError, match="more rows than the plan says"):
        PrivateTable(codes, layout.domain, plan, people=people)
