"""Histories that are drawn event by event, from a small trained mixture."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.count_bins import CountBins
from core.encoding.layout.layout import Layout
from core.encoding.windows import Windows
from core.models import histories, in_parts
from core.models.base_sampler import FittedGenerator
from core.models.histories import numbers_of
from core.models.in_parts import sampled
from core.models.layout_rows import laid_out
from core.models.next_event import PLACES, Bounded, Effects, NextEvent, Room
from core.models.registry import load_fitted
from core.models.saved_model import LAYOUT, SavedModel
from core.models.scan_focus.conditionals import MixtureConditionals
from core.models.shaped_output import Shape, draw_shaped
from core.schema.schema import Schema
from core.services.linking.unlinking import unlink
from tests.histories import (
    KINDS,
    MOST,
    WAVES,
    leaving,
    schema,
    scored,
    three_levels,
    visits,
    waves,
)
from tests.models.scan_focus.fitted_windows import PEOPLE, trained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    return trained(visits(PEOPLE), schema(), tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> SavedModel:
    rows, declared, _ = three_levels(PEOPLE)
    return trained(rows, declared, tmp_path_factory.mktemp("homes"))


def follows(table: pd.DataFrame) -> float:
    """How often "b" comes after "a"; always in the real table."""
    events = table[table["key"].notna()]
    after = events.groupby("who")["kind"].shift(-1)
    return float((after == "b")[(events["kind"] == "a") & after.notna()].mean())


def test_people_have_their_events_in_order(model: SavedModel) -> None:
    table = model.sample(PEOPLE, 3)
    assert table["who"].nunique() == PEOPLE
    events = table[table["key"].notna()]
    assert (events["key"] == events["who"]).all() and events.notna().all().all()
    assert (events.groupby("who")["day"].diff().dropna() >= 0).all()
    nobody = table[table["key"].isna()]
    assert nobody["who"].is_unique and not nobody["who"].isin(events["who"]).any()
    assert nobody[["day", "kind"]].isna().all().all() and nobody["sex"].notna().all()
    real = visits(PEOPLE)
    real = real[real["key"].notna()]
    for counted in (1, 2, 3, MOST):
        wanted, made = (
            float((rows["who"].value_counts().clip(upper=MOST) == counted).sum()) / PEOPLE
            for rows in (real, events)
        )
        assert made == pytest.approx(wanted, abs=0.03)
    assert follows(table) > 0.9


def test_walks_take_pairs_from_a_generator_of_windows(tmp_path: Path) -> None:
    model = trained(visits(PEOPLE), schema(), tmp_path, "pearl")
    model.save(tmp_path / "saved")
    again = load_fitted("pearl", tmp_path / "saved")
    table, events = model.sample(500, 3), again.sample(500, 3)
    pd.testing.assert_frame_equal(table, events)
    events = table[table["key"].notna()]
    assert table["who"].nunique() == 500 and (events["key"] == events["who"]).all()
    assert (events.groupby("who")["day"].diff().dropna() >= 0).all()
    assert follows(table) > 0.7  # .35, if nothing followed


def test_waves_of_a_panel_follow_one_another(tmp_path: Path) -> None:
    table = trained(*waves(PEOPLE), tmp_path).sample(PEOPLE, 3)
    events = table[table["key"].notna()]
    wave = events["wave"].map({name: i for i, name in enumerate(WAVES)}).astype(float)
    place = events.groupby("who").cumcount()
    assert (wave == place).mean() > 0.98  # without an order of their own each is any wave


def test_numbers_stay_and_rise_as_they_do(tmp_path: Path) -> None:
    """Their cells hold a dozen values each: drawn anew, hardly one in ten would stay."""
    rows, declared = scored(PEOPLE)
    shares = []
    for table in (rows, trained(rows, declared, tmp_path).sample(PEOPLE, 3)):
        events = table[table["key"].notna()].sort_values(["who", "day"])
        more = events.groupby("who")["score"].diff().dropna()
        shares.append(((more == 0).mean(), (more < 0).mean()))
    (stay, fall), (stays, falls) = shares
    assert fall == 0.0 and falls < 0.02
    assert stays == pytest.approx(stay, abs=0.08)


def test_events_end_by_the_day_that_ends_all_real_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, declared = leaving(PEOPLE)
    model = trained(rows, declared, tmp_path)

    def late() -> float:
        table = model.sample(PEOPLE, 3)
        events = table[table["key"].notna()]
        return float((events["day"] > events["left"]).mean())

    assert late() == 0.0
    with monkeypatch.context() as patch:  # before any event could be
        patch.setattr(Windows, "until", lambda _, codes, blocks: np.full(len(codes), -1.0))
        assert set(model.sample(PEOPLE, 3)["day"].dropna()) == {0}
    monkeypatch.setattr(Windows, "ending_by", lambda windows, limits: windows)
    assert late() > 0.05


def test_walks_that_forget_the_event_before_are_caught(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = histories.NextEvent.of

    def forgetful(mixture, windows, missing):
        made = honest(mixture, windows, missing)
        known = [name for name in made.known if not name.startswith("now")]
        return dataclasses.replace(made, known=known, twins={}, never={})

    monkeypatch.setattr(histories.NextEvent, "of", forgetful)
    plain = laid_out(model.without(LAYOUT), Layout(schema().domain()))
    assert follows(plain.sample(PEOPLE, 3)) < 0.7


def test_walks_keep_apart_what_goes_together_in_no_record(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = MixtureConditionals.barred

    def barred(self: MixtureConditionals, first: str, second: str) -> torch.Tensor | None:
        if first != "sex" or second not in ("first kind", "next kind"):
            return honest(self, first, second)
        never = torch.zeros(self.table(first, second).shape, dtype=torch.bool)
        never[self.codec.block("sex").states.index("f"), KINDS.index("c")] = True
        return never

    monkeypatch.setattr(MixtureConditionals, "barred", barred)
    table = laid_out(model.without(LAYOUT), Layout(schema().domain())).sample(PEOPLE, 3)
    events = table[table["key"].notna()]
    assert not ((events["sex"] == "f") & (events["kind"] == "c")).any()
    assert (events["kind"] == "c")[events["sex"] == "m"].mean() > 0.1


def test_events_miss_nothing_that_only_people_without_any_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts say so, whatever a mixture learned; even if each pair bars other labels, so all."""
    columns = (one.model_copy(update={"missing": one.name == "kind"}) for one in schema().columns)
    declared = schema().model_copy(update={"columns": tuple(columns)})
    honest = MixtureConditionals.barred

    def barred(self: MixtureConditionals, first: str, second: str) -> torch.Tensor | None:
        if second != "next kind":
            return honest(self, first, second)
        never = torch.zeros(self.table(first, second).shape, dtype=torch.bool)
        never[:, : len(KINDS)] = True
        return never

    monkeypatch.setattr(MixtureConditionals, "barred", barred)
    fitted = trained(visits(PEOPLE), declared, tmp_path)
    assert "first kind" in cast(FittedGenerator, fitted.base).conditionals.never_missing
    table = fitted.sample(PEOPLE, 3)
    assert table.loc[table["key"].notna(), "kind"].notna().all() and table["kind"].isna().any()


def comes_again(model: SavedModel) -> float:
    """How often an event's kind has been before, of the third and later ones of a person."""
    events = model.sample(PEOPLE, 3).sort_values(["who", "day"], kind="stable")
    later = events.groupby("who").cumcount() > 1
    return float(events.duplicated(["who", "kind"])[later].mean())


def test_what_never_comes_again_seldom_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four kinds of illness, each at most once: what follows on what does not say so."""
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(PEOPLE), 3)
    rows = pd.DataFrame(
        {
            "who": who,
            "sex": np.where(who % 2, "m", "f"),
            "key": who,
            "day": np.tile([0, 20, 40], PEOPLE) + random.integers(0, 20, len(who)),
            "kind": np.array(
                [random.permutation(KINDS)[: MOST - 1] for _ in range(PEOPLE)]
            ).ravel(),
        }
    )
    model = trained(rows, schema(), tmp_path)
    assert comes_again(model) < 0.12
    monkeypatch.setattr(histories.NextEvent, "_step_again", lambda *_: torch.zeros(()))
    forgetful = laid_out(model.without(LAYOUT), Layout(schema().domain()))
    assert comes_again(forgetful) > 0.25


def test_saved_histories_come_again(model: SavedModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    again = load_fitted("scan_focus", tmp_path)
    pd.testing.assert_frame_equal(again.sample(200, 5), model.sample(200, 5))
    assert not model.sample(200, 6).equals(model.sample(200, 5))


def test_many_people_keep_keys_of_their_own(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "PART_PEOPLE", 40)
    table = sampled(model, 100, 5)
    assert table["who"].nunique() == 100
    events = table[table["key"].notna()]
    assert (events["key"] == events["who"]).all()
    assert (events.groupby("who").size() <= MOST).all()
    assert 0.1 < 1.0 - events["who"].nunique() / 100 < 0.35


def test_a_wait_leaves_room_for_all_that_come_after() -> None:
    """Cells of ten days: a wait beyond the last date cannot be, and before many it is short."""
    places = torch.arange(4)[:, None] * 10.0 + torch.linspace(0.0, 10.0, PLACES)
    room = Room(torch.tensor([1e30, 25.0, 25.0]), torch.tensor([5.0, 0.0, 3.0]))
    free, last, before = Bounded("wait", places).log_shares(room).exp().tolist()
    assert free == pytest.approx([1.0] * 4)
    assert last == pytest.approx([1.0, 1.0, 0.5, 0.0], abs=0.02)
    assert before == pytest.approx([0.8**3, 0.4**3, 0.5 * 0.1**3, 0.0], abs=0.01)


def wait_of_early_people(model: SavedModel) -> float:
    """The median wait of people whose first event lies in the first quarter of the time."""
    events = model.sample(PEOPLE, 3).groupby("who")["day"].agg(["min", "max"])
    assert events["max"].max() <= 200
    early = events[events["min"] < 50]
    return float((early["max"] - early["min"]).median())


def test_waits_end_where_dates_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two events anywhere in 200 days, whoever begins early waits longer than others: 88 days.

    That dates end, and no count of a pair, tells so; of all people the median is 58.
    """
    random = np.random.default_rng(0)
    who = np.repeat(np.arange(PEOPLE), 2)
    rows = pd.DataFrame(
        {
            "who": who,
            "sex": np.where(who % 2, "m", "f"),
            "key": who,
            "day": random.integers(0, 201, len(who)),
            "kind": random.choice(KINDS, len(who)),
        }
    )
    declared = schema(2)
    model = trained(rows, declared, tmp_path)
    assert wait_of_early_people(model) > 74
    monkeypatch.setattr(Bounded, "log_shares", lambda *_: torch.zeros(()))
    blind = laid_out(model.without(LAYOUT), Layout(declared.domain()))
    assert wait_of_early_people(blind) < 74


def test_labels_of_many_numbers_give_some_of_each() -> None:
    bins = CountBins.of(0, 100)
    states = np.repeat(np.arange(len(bins.bins)), 500).astype(np.int32)
    numbers = numbers_of(states, bins, torch.Generator().manual_seed(1))
    for state, (first, last) in enumerate(bins.bins):
        own = numbers[states == state]
        assert (own.min(), own.max()) == (first, last)


def files_of(model: SavedModel, table: pd.DataFrame) -> tuple[pd.DataFrame, ...]:
    """Homes, members and visits; every key is there."""
    declared = Schema(columns=model.domain.columns, person=model.domain.person)
    home, member, visit = (frame for frame, _ in unlink(table, declared).values())
    assert home["who"].is_unique and member["member"].is_unique
    assert member["who"].isin(home["who"]).all() and visit["member"].isin(member["member"]).all()
    assert member.notna().all().all() and visit.notna().all().all()
    return home, member, visit


def of_the_member(member: pd.DataFrame, visit: pd.DataFrame) -> float:
    """How many visits are for the one reason that members of a kind have; all in real rows."""
    both = visit.merge(member, on="member")
    return float((both["kind"].map(dict(zip(KINDS, "wxyz", strict=True))) == both["reason"]).mean())


def without_visits(member: pd.DataFrame, visit: pd.DataFrame) -> float:
    """The share of members who have none."""
    return 1.0 - float(member["member"].isin(visit["member"]).mean())


def test_members_of_homes_have_visits_of_their_own(homes: SavedModel) -> None:
    home, *drawn = files_of(homes, homes.sample(PEOPLE, 3))
    _, *real = (frame for frame, _ in unlink(*three_levels(PEOPLE)[:2]).values())
    assert len(home) == PEOPLE and of_the_member(*drawn) > 0.9
    assert (drawn[1].groupby("member")["date"].diff().dropna() >= 0).all()
    assert without_visits(*drawn) == pytest.approx(without_visits(*real), abs=0.07)


def test_homes_without_members_that_count_again_are_caught(
    homes: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no visits either: how many members have none is to be known without them."""
    _, *honest = files_of(homes, homes.sample(PEOPLE, 3))
    monkeypatch.setattr(MixtureConditionals, "log_there_once", lambda *_: torch.zeros(()))
    _, *drawn = files_of(homes, homes.sample(PEOPLE, 3))
    assert without_visits(*honest) - without_visits(*drawn) > 0.03


def test_a_home_without_members_is_drawn(homes: SavedModel) -> None:
    """One home at a time: every fifth has no member, so nobody's visits are drawn."""
    sizes = [len(files_of(homes, homes.sample(1, seed))[1]) for seed in range(30)]
    assert 0 in sizes and max(sizes) > 0


def test_visits_drawn_of_anybody_are_caught(
    homes: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = histories._Walk._owned

    def mutant(self, persons, owners):
        return honest(self, persons, owners.take(np.roll(np.arange(len(owners)), 1)))

    monkeypatch.setattr(histories._Walk, "_owned", mutant)
    _, member, visit = files_of(homes, homes.sample(PEOPLE, 3))
    assert of_the_member(member, visit) < 0.7


def test_parts_and_chosen_rows_keep_keys_of_members(
    homes: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "PART_PEOPLE", 40)
    home, member, visit = files_of(homes, sampled(homes, 100, 5))
    assert len(home) == 100 and len(visit)
    assert of_the_member(member, visit) > 0.85
    chosen = draw_shaped(homes, 500, Shape(where=("sex=f",)), 5).table
    home, member, visit = files_of(homes, chosen)
    assert set(home["sex"]) == {"f"} and len(visit) > 50
    assert of_the_member(member, visit) > 0.85


def test_saved_homes_come_again(homes: SavedModel, tmp_path: Path) -> None:
    homes.save(tmp_path)
    again = load_fitted("scan_focus", tmp_path)
    pd.testing.assert_frame_equal(again.sample(50, 5), homes.sample(50, 5))


def test_effects_are_those_of_the_round_with_the_nearest_walks(
    model: SavedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled, rounds = NextEvent.scaled, list[int]()

    def worse_and_worse(self: NextEvent, effects: Effects, *windows: Any) -> Effects:
        rounds.append(1)
        return scaled(self, effects, *windows) if len(rounds) == 1 else self.independent()

    monkeypatch.setattr(NextEvent, "scaled", worse_and_worse)
    found = histories.calibrated(model.base, Layout(model.domain).files)
    assert len(rounds) == histories.ROUNDS + 1
    assert any(given for given, _ in found), "later ones depend on nothing"
