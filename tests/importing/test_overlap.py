"""Tables about the same people are recognised; tables about others are not."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.importing.record_hashes import (
    ROWS,
    DrawnRows,
    HashedTable,
    RecordSample,
    sample_records,
    table_digest,
)
from core.importing.record_overlap import Overlap, estimate_overlap
from core.reading.raw_cells import raw_frame
from core.services.sample_tables import sample_table
from tests.reading.files import read_table

pytestmark = pytest.mark.slow

KEY = b"k" * 32
REAL = Path(os.environ.get("FACSIMILE_DATA", "nowhere"))
Change = Callable[[pd.DataFrame], pd.DataFrame]


def as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as another program would write and read it: numbers as floats, then all as text."""
    floats = frame.astype({c: float for c in frame.select_dtypes("number").columns})
    return pd.read_csv(io.StringIO(floats.to_csv(index=False)), dtype=str, keep_default_na=False)


VARIANTS: dict[str, Change] = {
    "renamed": lambda f: f.rename(columns={f.columns[2]: "another name"}),
    "all renamed": lambda f: f.set_axis([f"c{i}" for i in range(f.shape[1])], axis=1),
    "dropped": lambda f: f.drop(columns=f.columns[2]),
    "added": lambda f: f.assign(more=np.random.default_rng(0).normal(size=len(f))),
    "reordered": lambda f: f.iloc[:, ::-1],
    "shuffled": lambda f: f.sample(frac=1.0, random_state=1),
    "one row fewer": lambda f: f.iloc[1:],
    "a tenth of the rows": lambda f: f.sample(frac=0.1, random_state=1),
    "a hundred rows": lambda f: f.sample(100, random_state=1),
    "integers as floats": lambda f: f.astype(
        {c: float for c in f.select_dtypes("integer").columns}
    ),
    "numbers as text": as_text,
    "a constant column": lambda f: f.assign(source="hospital 1"),
    "case of names": lambda f: f.rename(columns=str.upper),
    "one column rounded": lambda f: f.assign(age=f["age"] // 10 * 10),
    "much at once": lambda f: as_text(
        f.sample(frac=0.3, random_state=2).drop(columns=["sex"]).iloc[:, ::-1].assign(k=0)
    ).rename(columns=lambda c: f"x{c}"),
}


def overlap(new: pd.DataFrame, old: pd.DataFrame) -> Overlap | None:
    sample = RecordSample.from_bytes(sample_records(old, HashedTable.of(old, KEY), KEY).to_bytes())
    return estimate_overlap(HashedTable.of(new, KEY), sample)


def same_people(new: pd.DataFrame, old: pd.DataFrame) -> bool:
    seen = overlap(new, old)
    return seen is not None and seen.same_people


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    return sample_table(2000)


@pytest.fixture(scope="module")
def adult() -> dict[str, pd.DataFrame]:
    if not (REAL / "adult_train.csv").exists():
        pytest.skip("set FACSIMILE_DATA to a folder with adult_train.csv and adult_test.csv")
    names = ("adult_train", "adult_test", "titanic")
    return {name: read_table(REAL / f"{name}.csv").frame for name in names}


@pytest.mark.parametrize("change", VARIANTS.values(), ids=VARIANTS)
def test_the_same_people_are_recognised(visits: pd.DataFrame, change: Change) -> None:
    changed = change(visits)
    seen = overlap(changed, visits)
    assert seen is not None and seen.same_people
    # a row of the new table is a row of the old one, but where a value was changed
    assert seen.of_new > 0.9
    assert seen.of_old == pytest.approx(len(changed) / len(visits), abs=0.05)


@pytest.mark.parametrize("change", VARIANTS.values(), ids=VARIANTS)
def test_the_same_people_are_recognised_in_a_real_table(
    adult: dict[str, pd.DataFrame], change: Change
) -> None:
    assert same_people(change(adult["adult_train"]), adult["adult_train"])


def test_other_people_of_the_same_columns_are_not_claimed(adult: dict[str, pd.DataFrame]) -> None:
    train, test = adult["adult_train"], adult["adult_test"]
    shared = len(train.merge(test, how="inner").drop_duplicates())
    seen = overlap(test, train)
    assert seen is not None and not seen.same_people
    assert shared > 0, "some strangers do share a whole row; that alone proves nothing"
    assert not same_people(train, test)
    few = ["age", "education", "occupation", "hours-per-week", "sex", "race"]
    assert not same_people(test[few], train) and not same_people(test[few], train[few])


def test_tables_that_have_nothing_in_common_are_apart(adult: dict[str, pd.DataFrame]) -> None:
    tables = {**adult, "visits": sample_table(5000)}
    for one in ("titanic", "visits", "adult_train"):
        for other in ("titanic", "visits", "adult_train"):
            assert same_people(tables[one], tables[other]) is (one == other)


@pytest.mark.parametrize("seed", range(20))
def test_strangers_with_few_columns_of_few_values_are_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def draw(n: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "number": np.arange(1, n + 1),  # everybody counts from one
                "sex": rng.choice(["f", "m"], n),
                "age": rng.integers(18, 90, n),
                "smokes": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
            }
        )

    old, new = draw(int(rng.integers(50, 3000))), draw(int(rng.integers(50, 3000)))
    assert not same_people(new, old)
    without = ["sex", "age", "smokes"]
    assert not same_people(new[without], old[without])
    assert not same_people(new[["number"]], old[["number"]])


def test_a_shared_key_is_enough() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.choice(10**9, 500, replace=False)
    old = pd.DataFrame({"insured": numbers, "age": rng.integers(18, 90, 500)})
    new = pd.DataFrame({"Versicherte": numbers[:200], "cost": rng.normal(size=200)})
    assert same_people(new, old)
    others = new.assign(Versicherte=rng.choice(10**9, 200, replace=False))
    assert not same_people(others, old)


def test_equal_tables_have_one_digest_in_any_order() -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "m"], "age": [1, 2, 2]})
    plain = table_digest(HashedTable.of(frame, KEY), KEY)
    assert table_digest(HashedTable.of(frame.iloc[::-1].astype({"age": float}), KEY), KEY) == plain
    assert table_digest(HashedTable.of(frame.iloc[1:], KEY), KEY) != plain
    swapped = pd.DataFrame({"sex": ["m", "f", "m"], "age": [1, 2, 2]})
    assert table_digest(HashedTable.of(swapped, KEY), KEY) != plain


def test_a_sample_is_bounded_and_useless_without_its_key() -> None:
    n = 2 * ROWS
    frame = pd.DataFrame({"a": np.arange(n) * 7919 % 10**6, "b": np.arange(n) % 97})
    sample = sample_records(frame, HashedTable.of(frame, KEY), KEY)
    assert (sample.n, sample.sample.n) == (n, ROWS)
    assert estimate_overlap(HashedTable.of(frame, KEY), sample).same_people  # type: ignore[union-attr]
    other_key = estimate_overlap(HashedTable.of(frame, b"j" * 32), sample)
    assert other_key is None or not other_key.same_people
    plain = np.concatenate([c.distinct for c in sample.sample.columns])
    assert not np.isin(np.arange(1, 97).astype(np.uint64), plain).any()


def passed(frame: pd.DataFrame, size: int = 10_000) -> DrawnRows:
    """Rows that passed by in batches."""
    rows = DrawnRows()
    for first in range(0, len(frame), size):
        rows.add(raw_frame(frame.iloc[first : first + size]))
    return rows


def test_rows_that_pass_by_have_one_sum_in_any_order(visits: pd.DataFrame) -> None:
    frame = visits.assign(
        flag=pd.array(np.resize([True, None, False], len(visits)), dtype="boolean"),
        day=pd.to_datetime(visits["visit_date"]).dt.date,
        wait=pd.to_timedelta(np.arange(len(visits)), unit="min"),
        rank=pd.array(np.resize([None, 3, 4], len(visits)), dtype="Int64"),
    )
    sums = passed(frame).sums()
    assert passed(frame.sample(frac=1.0, random_state=1), size=70).sums() == sums
    for name in frame.columns:
        changed = frame.copy()
        others = frame[name].dropna().unique()
        changed.loc[7, name] = next(one for one in others if str(one) != str(frame[name][7]))
        assert passed(changed).sums() != sums, name


def test_few_of_many_rows_are_drawn_whatever_their_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.importing.record_hashes.COMPARED", 500)
    narrow = pd.DataFrame({"x": np.arange(20_000)})
    rows = passed(narrow, size=300)
    drawn = rows.rows()["x"].to_numpy()
    assert (rows.n, len(drawn), len(set(drawn))) == (20_000, 500, 500)
    assert 8_000 < drawn.mean() < 12_000 and np.abs(np.diff(drawn)).mean() > 5_000
    monkeypatch.setattr("core.importing.record_hashes._BYTES", 8 * 300)
    assert 100 < len(passed(narrow, size=300).rows()) < 500


def test_names_alone_prove_nothing(visits: pd.DataFrame) -> None:
    rng = np.random.default_rng(5)
    shuffled = visits.apply(lambda column: rng.permutation(column.to_numpy()))
    assert not same_people(shuffled.drop(columns=visits.columns[:2]), visits)


# -- mutant: today's exact digest as the account's name --------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in VARIANTS if n not in ("shuffled",)], ids=lambda n: str(n)
)
def test_an_account_named_after_exact_rows_is_caught(visits: pd.DataFrame, name: str) -> None:
    changed = VARIANTS[name](visits)
    before, after = ((list(one), passed(one).sums()) for one in (visits, changed))
    assert before != after  # the mutant opens another account …
    assert same_people(changed, visits)  # … where these tests demand the old one


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("left", [0, 40])
def test_people_whose_rows_stood_twice_are_recognised(times: int, left: int) -> None:
    """After a join or a double export hardly a row of the earlier table is single."""
    frame = sample_table(400)
    earlier = pd.concat([*[frame] * (times - 1), frame.iloc[left:]], ignore_index=True)
    found = overlap(frame, earlier)
    assert found is not None and found.same_people and found.of_new > 0.95
    part = overlap(frame.iloc[:60].rename(columns=str.upper), earlier)
    assert part is not None and part.same_people


@pytest.mark.parametrize("columns", [12, 5, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_strangers_are_not_claimed_where_rows_stand_twice(columns: int, times: int) -> None:
    both = sample_table(1200).iloc[:, -columns:]  # keys come first
    earlier, new = both.iloc[:700], both.iloc[700:]
    found = overlap(pd.concat([new] * times), pd.concat([earlier] * 2))
    assert found is None or not found.same_people
