"""Codes with levels: of those that few records hold, a run learns the beginnings."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from core.encoding.codec import Codec
from core.privacy.discovery import lists
from core.privacy.discovery.open_domain import open_domain
from core.privacy.discovery.planning import LISTS, Levels, forecasts
from core.privacy.mechanisms.domain_release import LabelCounts
from core.proposing.propose import infer_schema
from core.schema.column import Kind, SchemaColumn
from core.schema.conditions import parse_conditions
from core.schema.labels import category_indices, listed_labels
from core.schema.rules.rules import Determines
from core.schema.schema import Schema
from tests.mutants import broken_discovery as broken
from tests.privacy.learned_tables import apart, by_name, label_sums, learn, planned, to_learn

N = 6000
PATTERN = "@|##|.#"


def coded(n: int = N, seed: int = 3) -> tuple[pd.DataFrame, Schema]:
    """Half are E11, mostly E11.9; a third are J00–J99, each rare; a tenth are all sorts."""
    rng = np.random.default_rng(seed)
    chapter, last = rng.choice(list("ABCD"), n), rng.integers(0, 9, n)
    rare = [f"J{i:02d}.{j}" for i, j in zip(rng.integers(0, 100, n), last, strict=True)]
    common = np.where(rng.random(n) < 0.6, "E11.9", [f"E11.{i}" for i in last])
    sorts = [letter + code[1:] for letter, code in zip(chapter, rare, strict=True)]
    which = rng.choice(3, n, p=[0.55, 0.35, 0.1])
    frame = pd.DataFrame(
        {"icd": np.choose(which, [common, rare, sorts]), "ward": rng.choice(["a", "b"], n)}
    ).astype("str")
    icd = to_learn("icd", Kind.CATEGORY, pattern=PATTERN)
    return frame, Schema(columns=(icd, to_learn("ward", Kind.CATEGORY)))


def learned(epsilon: float = 0.15) -> tuple[pd.DataFrame, SchemaColumn, np.ndarray]:
    frame, schema = coded()
    released = learn(frame, schema, epsilon)
    return frame, by_name(released)["icd"], released.counts["icd"].counts


# -- privacy --------------------------------------------------------------------------------------


def test_a_record_left_out_moves_all_levels_by_delta() -> None:
    frame, schema = coded(20)
    wanted, whole = open_domain(schema), None
    assert [length for _, length in wanted.beginnings] == [1, 3]
    whole = label_sums(frame, wanted, np.ones(20))
    moved = []
    for i in range(20):
        rest = frame.drop(index=i).reset_index(drop=True)
        moved.append(apart(whole, label_sums(rest, wanted, np.ones(19))))
    lists = len(wanted.listed) + len(wanted.beginnings)
    assert max(moved) == pytest.approx(LabelCounts((1,) * lists, 1).sensitivity, rel=1e-9)
    assert max(moved) > broken.LabelsStateOne((1,) * lists, 1).sensitivity
    assert max(moved) > LabelCounts((1,) * len(wanted.listed), 1).sensitivity  # levels forgotten


def test_levels_pay_with_noise_and_not_with_budget() -> None:
    """The phase is as dear with levels as without, so its noise is spread over more histograms."""
    frame, schema = coded()
    plain = schema.replace(schema["icd"].model_copy(update={"pattern": None}))
    (wanted, plan), (without, other) = planned(schema, N, 1.0), planned(plain, N, 1.0)
    assert plan.phase(LISTS).noise_multiplier == other.phase(LISTS).noise_multiplier
    with_levels, alone = Levels.of(plan, wanted), Levels.of(other, without)
    assert with_levels.std[LISTS] == pytest.approx(math.sqrt(4 / 2) * alone.std[LISTS], rel=0.01)
    assert with_levels.label > math.sqrt(4 / 2) * alone.label * 0.99  # δ is spread, too


def test_a_beginning_that_one_record_holds_is_not_shown() -> None:
    frame, schema = coded()
    frame.loc[0, "icd"] = "Z99.1"
    for seed in range(20):
        labels = by_name(learn(frame, schema, 1.0, seed))["icd"].categories
        assert not any(label.startswith("Z") for label in labels)


# -- what is kept ---------------------------------------------------------------------------------


def test_the_level_that_noise_allows_is_kept() -> None:
    frame, column, counts = learned()
    kept = set(column.categories)
    assert {"E11.9", "E11…", "J…"} <= kept and "E11.3" not in kept and "E…" not in kept
    code = category_indices(frame["icd"], column)
    there = np.bincount(code[code >= 0], minlength=len(kept))
    for label in ("E11.9", "E11…", "J…"):
        at = column.categories.index(label)
        assert counts[at] == pytest.approx(there[at], abs=400)
    assert column.learned.outside == pytest.approx((code < 0).mean(), abs=0.06)


def test_a_list_has_room_for_its_commonest_codes(monkeypatch) -> None:
    monkeypatch.setattr(lists, "MAX_CATEGORIES", 4)
    assert learned(0.1)[1].categories == ("E11.9", "E11…", "J…", "OTHER")


def test_labels_that_look_like_beginnings_break_nothing() -> None:
    frame, schema = coded()
    frame.loc[:999, "icd"] = "E11…"
    frame.loc[1000:1999, "icd"] = "E"
    column = by_name(learn(frame, schema, 1.0))["icd"]
    assert len(set(column.categories)) == len(column.categories)
    assert "E" in column.categories


def test_rules_speak_of_whole_codes() -> None:
    _, schema = coded()
    looked_up, codes = (
        Determines(source="ward", result="icd"),
        Determines(source="icd", result="ward"),
    )
    assert open_domain(schema.model_copy(update={"rules": (looked_up,)})).beginnings == ()
    assert open_domain(schema.model_copy(update={"rules": (codes,)})).beginnings  # else as drawn
    assert open_domain(schema.model_copy(update={"target": "icd"})).beginnings == ()


def test_forecasts_say_that_beginnings_are_kept() -> None:
    _, schema = coded()
    wanted, plan = planned(schema, N, 1.0)
    icd, ward = forecasts(plan, wanted)
    assert "its beginning" in icd.words and "OTHER" in ward.words


# -- what comes out -------------------------------------------------------------------------------


def drawn(column: SchemaColumn, rows: int = 4000) -> tuple[Codec, np.ndarray, pd.DataFrame]:
    """Every label of the list equally often, as a model might draw them."""
    codec = Codec(Schema(columns=(column,)).domain())
    codes = codec.encode(pd.DataFrame({column.name: ["?"] * rows}))
    codes.states[:, 0] = np.arange(rows) % len(column.categories)
    return codec, np.array(codes.states[:, 0]), codec.decode_codes(codes)


def test_made_up_endings_read_as_what_they_stand_for() -> None:
    _, column, _ = learned()
    codec, states, table = drawn(column)
    assert (codec.encode(table).states[:, 0] == states).mean() > 0.999
    assert not table["icd"].str.contains("…").any() and not table["icd"].str.contains("OTHER").any()
    assert table["icd"].str.fullmatch(r"[A-Z]\d\d\.\d").all()
    assert set(listed_labels(table["icd"], column)) >= {"E11.9", "E11…", "J…"}


def test_rows_of_a_beginning_can_be_asked_for() -> None:
    _, column, _ = learned()
    _, states, table = drawn(column)
    domain = Schema(columns=(column,)).domain()
    (condition,) = parse_conditions(["icd=E11…"], domain)
    wanted = states == column.categories.index("E11…")
    assert wanted.any() and (condition.keeps(table) == wanted).mean() > 0.999


def test_numbers_stay_numbers() -> None:
    rng = np.random.default_rng(0)
    zips = rng.choice(range(10_000, 12_000), N)
    schema = infer_schema(pd.DataFrame({"zip": zips}))
    column = to_learn("zip", Kind.CATEGORY, dtype="int64", pattern="#|#|###")
    assert schema["zip"].pattern == column.pattern and schema["zip"].kind is Kind.CATEGORY
    found = by_name(learn(pd.DataFrame({"zip": zips}), Schema(columns=(column,)), 1.0))["zip"]
    assert set(found.categories) == {"10…", "11…"}
    _, _, table = drawn(found)
    assert table["zip"].dtype == np.int64 and table["zip"].between(10_000, 11_999).all()


def test_placeholders_stand_for_rare_labels() -> None:
    rng = np.random.default_rng(0)
    labels = np.where(
        rng.random(N) < 0.4, "theft", [f"charge {i}" for i in rng.integers(0, 900, N)]
    )
    frame = pd.DataFrame({"charge": labels, "ward": rng.choice(["a", "b"], N)})
    columns = (to_learn("charge", Kind.CATEGORY), to_learn("ward", Kind.CATEGORY))
    schema = Schema(columns=columns)
    found = learn(frame, schema, 1.0).schema(schema)["charge"]
    assert found.categories == ("theft", "OTHER") and found.learned.placeholders > 2
    _, states, table = drawn(found)
    made_up = set(table["charge"]) - {"theft"}
    assert len(made_up) == found.learned.placeholders
    assert all(label.startswith("OTHER ") for label in made_up)
    assert set(listed_labels(table["charge"], found)) == {"theft", "OTHER"}
    target = schema.model_copy(update={"target": "charge"})
    assert learn(frame, target, 1.0).schema(target)["charge"].learned.placeholders == 0


@pytest.mark.parametrize(
    ("name", "values", "pattern"),
    [
        ("icd10", ["E11.9", "I10", "J45.0"], "@|#|#|.#"),
        ("main_diagnosis", ["E119", "I10"], "@|#|#|#"),
        ("diag_1", ["250.83", "276", "V57"], "*|##|.#"),
        ("diagnosis", ["flu", "cough"], None),
        ("PLZ", ["10115", "80331"], "#|#|###"),
        ("zip_distance", ["10115", "80331"], None),
        ("atc_code", ["A10BA02", "C07AB02"], "@|##|@|@|##"),
        ("nuts", ["DE21H", "FR101"], "@@|*|*|*"),
    ],
)
def test_names_and_forms_of_codes(name: str, values: list[str], pattern: str | None) -> None:
    frame = pd.DataFrame({name: values * 40})
    assert infer_schema(frame)[name].pattern == pattern
