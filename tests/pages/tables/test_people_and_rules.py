"""Tables: whose rows are whose, rules, and buying what was read from the rows."""

from __future__ import annotations

import pandas as pd
import pytest

from core.schema.column import DomainSource, SchemaError
from core.schema.person import History, Person
from core.schema.rules.rules import AtMost, Determines, parse_rule
from core.services import declarations, imports
from tests.pages.screen import button, buttons, press, said, whole, words

pytestmark = pytest.mark.slow


@pytest.fixture
def stays(store):
    """240 stays of 80 people, uploaded; whoever has a ward's code has its name."""
    count = pd.Series(range(240))
    start = pd.to_datetime("2024-01-01") + pd.to_timedelta(count % 90, unit="D")
    frame = pd.DataFrame(
        {
            "patient": [f"P{i // 3:03d}" for i in count],
            "sex": [("f", "m")[i // 3 % 2] for i in count],
            "admitted": start,
            "discharged": start + pd.to_timedelta(count % 7, unit="D"),
            "stay": count % 7,
            "ward_code": [("A", "B", "C")[i % 3] for i in count],
            "ward_name": [("general", "surgery", "icu")[i % 3] for i in count],
        }
    )
    return imports.import_frame(store, frame, name="stays", source="upload of stays.csv")


def unit(at, answer):
    radio = next(one for one in at.radio if "Can a person have several rows" in one.label)
    return whole(radio.set_value(answer).run())


def test_nobody_can_tell_whose_rows(store, stays, show):
    at = unit(show("tables", table=stays.id), "unknown")
    assert store.table(stays.id).schema.person == Person(rows=5)  # kept as it is answered
    most = next(one for one in at.number_input if "Maximum rows" in one.label)
    assert "3 times the noise" in words(whole(most.set_value(3).run()))
    kept = store.table(stays.id)
    assert kept.schema.person == Person(rows=3) and kept.training_n == 240
    unit(at, "row")
    assert store.table(stays.id).schema.person is None


def test_columns_say_whose_rows(store, stays, show):
    at = unit(show("tables", table=stays.id), "key")
    assert "Choose at least one column" in words(at)
    assert store.table(stays.id).schema.person is None
    key, constant = at.multiselect[0], at.multiselect[1]
    assert key.options[0] == "patient"  # what looks like an identifier comes first
    key.set_value(["patient"])
    constant.set_value(["sex"])
    assert "needs the noise of one row" in words(whole(at.run()))
    kept = store.table(stays.id)
    plain = Person(columns=("patient",), rows=5, constant=("sex",))
    order = {"order": "admitted", "history": History()}  # the first dates sort rows
    assert kept.schema.person == plain.model_copy(update=order)
    assert kept.training_n == 80
    sorting = next(one for one in at.selectbox if "In which order" in one.label)
    whole(sorting.select_index(0).run())
    assert store.table(stays.id).schema.person == plain


def test_what_holds_for_a_person_is_found(store, stays, show):
    at = unit(show("tables", table=stays.id), "key")
    whole(at.multiselect[0].set_value(["patient"]).run())
    at = whole(press(at, "Find these columns in the rows"))
    assert at.multiselect[1].value == ["sex"]
    person = store.table(stays.id).schema.person
    assert person.constant == ("sex",) and person.walked
    learn = next(one for one in at.toggle if "depend on each other" in one.label)
    whole(learn.set_value(False).run())
    person = store.table(stays.id).schema.person
    assert person.order == "admitted" and person.history is None


LOOK = "Look for rules in the rows"


def test_rules_are_suggested_written_settled_and_removed(store, stays, show):
    at = whole(press(show("tables", table=stays.id), LOOK))
    assert "true by definition" in words(at)
    assert "admitted <= discharged" in buttons(at)
    whole(press(at, "ward_name <- ward_code"))
    assert "are not known yet" in words(at)
    whole(press(at, "Declare the combinations in the rows"))
    (rule,) = store.table(stays.id).schema.rules
    assert isinstance(rule, Determines) and rule.mapping == {
        "A": "general", "B": "surgery", "C": "icu"
    }  # fmt: skip
    assert "holds in all real rows" in words(at)
    line = next(one for one in at.text_input if one.label == "New rule")
    line.set_value("discharged <= admitted")
    whole(press(at, "Add rule"))
    assert store.table(stays.id).schema.rules[1] == parse_rule("discharged <= admitted")
    assert "real rows break it. Only you see this count" in words(at)
    press(at, "Remove")
    assert [one.kind for one in store.table(stays.id).schema.rules] == ["at_most"]


def test_conditional_rules_are_suggested_and_kept(store, show):
    count = pd.Series(range(900))
    frame = pd.DataFrame({"age": count % 90, "sex": [("f", "m")[i % 2] for i in count]})
    frame["status"] = pd.Series(["married", "single"] * 450).mask(frame["age"] < 15, "minor")
    people = imports.import_frame(store, frame, name="people", source="test")
    at = whole(press(show("tables", table=people.id), LOOK))
    whole(press(at, "if age < 15 then status = minor"))
    line = next(one for one in at.text_input if one.label == "New rule")
    line.set_value("status is married implies sex = f")
    whole(press(at, "Add rule"))
    kept = [rule.text for rule in store.table(people.id).schema.rules]
    assert kept == ["if age < 15 then status = minor", "if status = married then sex = f"]
    assert words(at).count("holds in all real rows") == 2


def test_a_second_click_removes_and_adds_no_other_rule(store, stays, show):
    at = whole(press(show("tables", table=stays.id), LOOK))
    keys = [one.key for one in at.button if one.key and one.key.startswith("suggest_")]
    assert len(keys) > 1
    at = whole(at.button(key=keys[0]).click().run())
    assert keys[0] not in [one.key for one in at.button]  # it would be another rule's
    rules = [parse_rule("admitted <= discharged"), parse_rule("ward_name <- ward_code")]
    declarations.change_rules(store, store.table(stays.id), rules)
    at = whole(show("tables", table=stays.id))
    first = next(one.key for one in at.button if one.key and one.key.startswith("unrule_"))
    at = whole(at.button(key=first).click().run())
    assert store.table(stays.id).schema.rules == (rules[1],)
    assert first not in [one.key for one in at.button]


def test_all_suggested_rules_are_added_in_one_press(store, stays, show):
    at = whole(press(show("tables", table=stays.id), LOOK))
    suggested = [one for one in at.button if one.key and one.key.startswith("suggest_")]
    (every,) = [one for one in suggested if one.key == f"suggest_all_{stays.id}"]
    assert every.label == f"Add all {len(suggested) - 1}"
    at = whole(every.click().run())
    kept = {rule.text for rule in store.table(stays.id).schema.rules}
    assert kept == {said(one.label) for one in suggested if one is not every}
    assert not [one for one in at.button if one.key and one.key.startswith("suggest_")]


def test_a_rule_is_declared_once(store, stays):
    rule = parse_rule("admitted <= discharged")
    with pytest.raises(SchemaError, match="declared twice"):
        declarations.change_rules(store, stays, [rule, rule])


def test_no_plan_before_the_answer_about_people_is_whole(store, stays, show):
    store.attest(stays.id)
    at = unit(show("tables", table=stays.id), "key")
    assert "that answer is not complete" in words(at)
    assert button(at, "Plan a synthetic table").disabled
    assert not [label for label in buttons(at) if label.startswith("Buy ")]
    plan = show("plan", table=stays.id)
    plan.session_state["open_person"] = stays.id  # of the same visit
    plan.run()
    assert "that answer is not complete" in words(plan)
    assert buttons(plan) == ["Go to the table"]
    at = unit(at, "row")
    assert "is not complete" not in words(at)
    assert not button(at, "Plan a synthetic table").disabled


@pytest.mark.parametrize(
    "text",
    [
        "stay is short", "stay <= ward", "stay = admitted - ward_code", "if stay > 2 then ward = A",
        "combinations sex, admitted",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_words(store, stays, show, text):
    at = show("tables", table=stays.id)
    next(one for one in at.text_input if one.label == "New rule").set_value(text)
    whole(press(at, "Add rule"))
    assert at.error and store.table(stays.id).schema.rules == ()


def test_made_up_values_get_a_look(store, stays, show):
    at = show("tables", table=stays.id)
    pattern = next(one for one in at.text_input if one.label.startswith("Pattern"))
    pattern.set_value("P-@###")
    whole(press(at, "Save pattern"))
    assert store.table(stays.id).schema["patient"].pattern == "P-@###"
    next(one for one in at.text_input if one.label.startswith("Pattern")).set_value("P##")
    whole(press(at, "Save pattern"))
    assert "different values and 240 rows may need one each" in at.error[0].value
    assert store.table(stays.id).schema["patient"].pattern == "P-@###"


def test_nothing_has_to_be_declared(store, stays, show, gone):
    at = show("tables", table=stays.id)
    assert "are learned with noise when the run starts" in words(at)
    assert not any(box.label.startswith("I confirm") for box in at.checkbox)
    whole(press(at, "Plan a synthetic table"))
    assert store.attested(stays.id) and gone == [("plan", {"table": stays.id})]
    at = whole(show("plan", table=stays.id))
    (kept,) = [metric for metric in at.metric if metric.label == "Rarest value kept"]
    assert "becomes OTHER" in kept.help and "no row was read" in words(at)
    assert {metric.label: metric.value for metric in at.metric}["ε"] == "1"
    assert store.ledger.entries(stays.account_id) == ()


def test_declaring_all_asks_for_a_tick_and_can_be_taken_back(store, stays, show):
    at = whole(press(show("tables", table=stays.id), "Declare all public"))
    kept = store.table(stays.id).schema
    assert {kept[name].source for name in ("stay", "ward_code")} == {DomainSource.DECLARED}
    assert button(at, "Plan a synthetic table").disabled
    (tick,) = [box for box in at.checkbox if box.label.startswith("I confirm")]
    assert not button(whole(tick.check().run()), "Plan a synthetic table").disabled
    whole(press(at, "Learn them instead"))
    assert store.table(stays.id).schema == stays.schema


def test_names_in_a_rule_are_text_and_no_markdown(store, show):
    odd = "a`![p](http://x.example)`b"
    number = pd.Series(range(80)) / 2
    frame = pd.DataFrame({odd: number, "c": number + 1, "*w*_code": ["A", "B"] * 40})
    frame["*w*_name"] = frame["*w*_code"].map({"A": "general", "B": "surgery"})
    table = imports.import_frame(store, frame, name="odd", source="upload of odd.csv")
    declarations.change_rules(store, table, [AtMost(low=odd, high="c")])
    at = whole(press(show("tables", table=table.id), LOOK))
    rule = next(one.value for one in at.markdown if one.value.startswith("`a"))
    assert rule.index("x.example") < rule.index("`", 1) and rule.count("`") == 2
    suggested = next(one.label for one in at.button if "<-" in one.label)
    assert suggested.startswith(r"\*w\*")
