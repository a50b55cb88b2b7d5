"""Words: no term of the field stands on a page's first level, and each has an entry behind it."""

from __future__ import annotations

import re

import pytest

from pages.shared import glossary
from tests.pages.screen import each_tab, finish, said, small_report, whole, words

pytestmark = pytest.mark.slow

TERMS = re.compile(
    r"replace-one|zero-out|\bPLD\b|AUROC|\blatent|clip norm|at most \**100 ?%",
    re.IGNORECASE,
)
FOLDED = ("expander", "expandable", "popover", "dialog")
SHOWN = ("label", "value", "body")


def first_level(block):
    """Every text that shows without opening anything; help texts do not."""
    for child in block.children.values():
        if child.type in FOLDED:
            continue
        if hasattr(child, "children"):
            yield from first_level(child)
        for name in SHOWN:
            text = getattr(child, name, None)
            if isinstance(text, str):
                yield said(text)


def headline_report():
    """A report whose first cards are the scores with a term in their title."""
    report = small_report(filled=True)
    score = report["scores"][0]
    titles = {"tstr_auroc": "Learning the target: AUROC", "wscore_pca": "In a plane (Wasserstein)"}
    report["scores"] = [score | {"key": key, "title": title} for key, title in titles.items()]
    return report


def test_the_walk_sees_what_is_shown_and_not_what_is_folded(table, show):
    at = whole(show("plan", table=table.id))
    shown = "\n".join(first_level(at.main))
    assert "Attacker guesses right" in shown and "Train:" in shown
    assert "replace-one" in words(at) and "replace-one" not in shown


@pytest.mark.parametrize("name", ["tables", "plan", "training", "download", "ledger"])
def test_no_term_stands_on_the_first_level(store, table, start, show, name):
    run = start()
    finish(store, run, report=headline_report())
    at = whole(show(name, run=run.id, table=table.id))
    assert [text for text in first_level(at.main) if TERMS.search(text)] == []


def test_no_term_stands_on_the_first_level_of_review(store, start, show):
    run = start()
    finish(store, run, report=headline_report())
    for at in each_tab(show("review", run=run.id)):
        assert [text for text in first_level(at.main) if TERMS.search(text)] == []


@pytest.mark.parametrize(("epsilon", "most"), [(8.0, "≤ 78%"), (10.0, "≤ 83%")])
def test_nobody_is_right_at_most_always(table, show, epsilon, most):
    at = show("plan", table=table.id)
    at = whole(at.select_slider(key="epsilon").set_value(epsilon).run())
    assert [m.value for m in at.metric if m.label.startswith("Attacker")] == [most]


def test_steps_are_automatic_and_not_none(table, show):
    at = whole(show("plan", table=table.id))
    box = next(n for n in at.number_input if n.label == "Training steps")
    assert box.value is None and box.proto.placeholder == "automatic"
    plan = words(at)
    assert "Then 0 training steps" not in plan
    at = whole(box.set_value(1234).run())
    assert "Then 1,234 training steps" in words(at)


def test_every_named_term_has_an_entry():
    for terms in (("ε", "zero-out"), ("replace-one", "PLD"), tuple(glossary.TERMS)):
        text = glossary.entry(*terms)
        assert all(f"**{term}**" in text for term in terms)
    score = {"key": "tstr_auroc", "title": "Learning the target: AUROC"}
    assert not TERMS.search(glossary.title(score))
    assert glossary.title({"key": "other", "title": "As it is"}) == "As it is"
