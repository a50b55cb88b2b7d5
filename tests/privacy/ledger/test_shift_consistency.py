"""Hidden distributions: no later release undoes what the first one settled."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from sqlalchemy import Engine, create_engine

from core.privacy.ledger import admission
from core.privacy.ledger.admission import HiddenError
from core.privacy.ledger.ledger import Ledger
from core.privacy.ledger.shift_consistency import NO_OTHER_ACCOUNT
from core.privacy.plan import Plan, Protection
from core.schema.column import Column, Kind
from core.schema.schema import Domain
from tests.ledger_files import ledger_files
from tests.privacy import races, toys

pytestmark = pytest.mark.slow

N = 1000
NAMES = ("age", "hours", "sex")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return create_engine(f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.fixture
def ledger(engine: Engine, tmp_path: Path) -> Ledger:
    made = Ledger(engine, ledger_files(tmp_path / "home"))
    made.register("people", 10.0, 1e-5, n=N)
    return made


def domain(*names: str, high: float = 99.0) -> Domain:
    columns = tuple(
        Column(name=name, kind=Kind.INTEGER, low=0, high=high, step=1, dtype="int64")
        for name in names or NAMES
    )
    return Domain(columns=columns, sensitive={})


def with_sex(high: float) -> Domain:
    """The columns, `sex` with other declared values than the usual ones."""
    columns = (*domain("age", "hours").columns, *domain("sex", high=high).columns)
    return Domain(columns=columns, sensitive={})


def plan(*groups: tuple[str, ...], shift: float = 0.75, label: str = "g") -> Plan:
    """A small release with these tagged groups; none without any."""
    sigma = get_sigma_gaussian(0.3, 1e-6) * (1 + 1e-9)
    bare = toys.plan(N, [toys.phase(noise_multiplier=sigma)])
    if not groups:
        return bare
    tags = {f"{label}{i}": names for i, names in enumerate(groups)}
    return bare.model_copy(update={"protection": Protection(groups=tags, shift=shift)})


# after a first tagged release of {age, hours} at .75: plan, domain, what the reason says
REFUSED = {
    "weaker": (plan(("age", "hours"), shift=0.4), domain(), "strength would undo"),
    "stronger": (plan(("age", "hours"), shift=0.95), domain(), "strength would undo"),
    "left to the model": (plan(("age", "hours"), shift=0.0), domain(), "strength would undo"),
    "subset": (plan(("age",)), domain(), "other groups"),
    "superset": (plan(("age", "hours", "sex")), domain(), "other groups"),
    "split": (plan(("age",), ("hours",)), domain(), "other groups"),
    "one more group": (plan(("age", "hours"), ("sex",)), domain(), "other groups"),
    "other columns": (plan(("sex",)), domain(), "other groups"),
    "renamed tag": (plan(("Age", "hours")), domain("Age", "hours", "sex"), "other groups"),
    "other bounds": (plan(("age", "hours")), domain(high=120.0), "Other bounds"),
    "untagged": (plan(), domain(), "would show age, hours without the shift"),
    "untagged, one of them": (plan(), domain("age", "sex"), "would show age without the shift"),
    "untagged, renamed": (plan(), domain("years", "sex"), "computed from them"),
    "untagged without them": (plan(), domain("sex"), "computed from them"),
    "untagged, another name for one of them": (plan(), with_sex(120.0), "would show age, hours"),
    "another name for one of them": (
        plan(("age", "hours")),
        with_sex(120.0),
        r"other values than before \(sex\)",
    ),
    "tagged, a copy beside": (
        plan(("age", "hours")),
        domain(*NAMES, "age_2"),
        "under another name",
    ),
    "nobody says which": (plan(), None, "does not say which columns"),
}
PASSES = {
    "the same again": (plan(("age", "hours")), domain()),
    "in another order": (plan(("hours", "age")), domain("sex", "hours", "age")),
    "another label": (plan(("age", "hours"), label="other"), domain()),
    "fewer untagged columns": (plan(("age", "hours")), domain("age", "hours")),
}


@pytest.fixture
def settled(ledger: Ledger) -> Ledger:
    ledger.debit("people", plan(("age", "hours")), "first", domain=domain())
    return ledger


@pytest.mark.parametrize(("later", "of", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_would_undo_a_shift_is_refused(
    settled: Ledger, later: Plan, of: Domain | None, reason: str
) -> None:
    if of is not None:
        foreseen = settled.objection("people", later, of)
        assert foreseen is not None and re.search(reason, foreseen)
        assert "leave tagged columns out" not in foreseen  # that would give them away
    with pytest.raises(HiddenError, match=reason) as refused:
        settled.debit("people", later, "later", domain=of)
    assert "the tags age, hours and the strength 0.75" in str(refused.value)
    assert "Nothing was spent" in str(refused.value)
    with pytest.raises(HiddenError):
        settled.debit("people", later, "later", domain=of, words="   ")
    assert settled.left("people").releases == 1


@pytest.mark.parametrize(("later", "of"), PASSES.values(), ids=PASSES)
def test_what_keeps_to_the_first_release_passes(settled: Ledger, later: Plan, of: Domain) -> None:
    assert settled.objection("people", later, of) is None
    entry = settled.debit("people", later, "later", domain=of)
    assert entry.words == "" and entry.statements == ()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (domain(), "shows age, hours without a shift"),
        (domain("years", "sex"), "computed from them"),
        (None, "may show the tagged columns"),
    ],
)
def test_tags_after_an_untagged_release_are_refused(
    ledger: Ledger, first: Domain | None, reason: str
) -> None:
    ledger.debit("people", plan(), "untagged", domain=first)
    with pytest.raises(HiddenError, match=reason):
        ledger.debit("people", plan(("age", "hours")), "tagged", domain=domain())
    ledger.debit(
        "people", plan(), "untagged again", domain=domain()
    )  # hides nothing, shows nothing


def test_a_second_release_left_to_training_is_refused(ledger: Ledger) -> None:
    """Each training bends in another way: what two have in common is the real distribution."""
    bent = plan(("age",), shift=0.0)
    ledger.debit("people", bent, "first", domain=domain())
    with pytest.raises(HiddenError, match="each training"):
        ledger.debit("people", bent, "second", domain=domain())


def test_a_run_that_begins_anew_does_not_stand_in_its_own_way(ledger: Ledger) -> None:
    """After a crash it released nothing; its key goes on behind a dot."""
    bent = plan(("age",), shift=0.0)
    ledger.debit("people", bent, "a1b2", domain=domain())
    assert ledger.debit("people", bent, "a1b2.2", domain=domain()).words == ""
    with pytest.raises(HiddenError, match="each training"):
        ledger.debit("people", bent, "a1b3", domain=domain())


def test_other_people_settle_for_themselves(settled: Ledger) -> None:
    settled.register("others", 10.0, 1e-5, n=N)
    settled.debit("others", plan(("age",), shift=0.4), "others", domain=domain())
    settled.debit("people", plan(("age", "hours")), "again", domain=domain())


def test_what_was_confirmed_stands_in_every_later_certificate(settled: Ledger) -> None:
    other = plan(("age", "hours"), shift=0.4)
    words = "the board\n knows  and agrees"
    entry = settled.debit("people", other, "other", domain=domain(), words=words)
    assert entry.words == "the board knows and agrees"
    (said,) = entry.statements
    assert said[0] == "shift" and entry.words in said[1]
    after = settled.debit("people", plan(("age", "hours")), "after", domain=domain())
    assert after.statements == entry.statements and after.words == ""
    for read in (
        settled.entries("people")[-1],
        settled.debit("people", other, "other", domain=domain()),
    ):
        assert (
            "{words}" in read.statements[0][1].template
        )  # for other languages, after a resume too
    # leave was given once, for one release
    with pytest.raises(HiddenError):
        settled.debit("people", other, "once more", domain=domain())
    assert settled.verify()


def test_words_that_were_not_needed_are_not_kept(settled: Ledger) -> None:
    entry = settled.debit(
        "people", plan(("age", "hours")), "same", domain=domain(), words="whatever"
    )
    assert entry.words == "" and entry.statements == ()


def test_a_declaration_is_kept_and_repeated(ledger: Ledger) -> None:
    ledger.declare("people", "two towns", key="t1")
    assert ledger.declare("people", "two towns", key="t1").seq == 2  # once
    entry = ledger.debit("people", plan(), "run", domain=domain())
    assert entry.statements == (("people", NO_OTHER_ACCOUNT),)
    assert "two towns" not in str(entry.statements)  # the words stay inside
    assert ledger.left("people").releases == 1
    assert ledger.verify().entries == 3
    with pytest.raises(ValueError, match="needs words"):
        ledger.declare("people", " ", key="t2")


def test_a_limit_that_a_larger_table_outgrew_is_said(ledger: Ledger) -> None:
    small, large = plan(), plan().model_copy(update={"n": 200_000})
    assert ledger.debit("people", small, "small", domain=domain()).statements == ()
    ((about, said),) = ledger.debit("people", large, "large", domain=domain()).statements
    assert about == "limit" and "not below one over this table's 200000 records" in said


def test_of_two_strengths_at_once_one_is_settled(
    ledger: Ledger, engine: Engine, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    both = [
        context.Process(
            target=races.settle,
            args=(
                str(engine.url),
                str(tmp_path / "home"),
                f"{shift:.0%}",
                plan(("age",), shift=shift),
                domain(),
            ),
            kwargs={"barrier": barrier, "results": results},
        )
        for shift in (0.4, 0.95)
    ]
    for process in both:
        process.start()
    assert sorted(results.get(timeout=120) for _ in both) == [False, True]
    for process in both:
        process.join(timeout=60)
    assert ledger.left("people").releases == 1


# -- the mutant -------------------------------------------------------------


def test_a_ledger_that_settles_nothing_is_caught(
    settled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, strength and groups were free for each release: these tests see it."""
    monkeypatch.setattr(admission, "objection", lambda *_: None)
    for name, (later, of, _) in REFUSED.items():
        settled.debit("people", later, name, domain=of)  # passes, so every case above would fail
    assert settled.left("people").releases == len(REFUSED) + 1
