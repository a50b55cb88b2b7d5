"""Hidden distributions on every page: tagged, planned, judged, and in the way of a download."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import pytest

from core.runs.records import TableRecord
from core.schema.column import SchemaError
from core.services import export, limits, reviews, tables
from pages.review import report_view
from tests.pages.screen import finish, in_tab, small_report, whole, words
from tests.pages.test_review_flow import outside_report

pytestmark = pytest.mark.slow


@pytest.fixture
def tagged(store, table) -> TableRecord:
    record = tables.change_groups(store, table, {"age": "group 1", "ward": "group 2"})
    store.attest(record.id)
    return record


def test_tags_are_kept_in_groups_and_pictured(store, table, show):
    at = in_tab(show("tables", table=table.id), "Hidden distributions")
    assert "No columns are tagged" in words(at)
    assert "does not protect individuals" in words(at)
    key = f"tags_{table.id}_{abs(hash(table.schema.model_dump_json()))}"
    names = [c.name for c in table.schema.columns if c.modelled]
    at.session_state[key] = {
        "edited_rows": {names.index("age"): {"hidden": True}},
        "added_rows": [],
        "deleted_rows": [],
    }
    at = whole(at.run())
    assert store.table(table.id).schema.sensitive == {"group 1": ("age",)}
    assert "example of a shift" in words(at)


def test_what_is_not_modelled_needs_no_tag(store, table):
    with pytest.raises(SchemaError, match="needs no tag"):
        tables.change_groups(store, table, {"visit_id": "group 1"})


def test_a_tag_goes_with_its_column(store, tagged):
    from core.services.schema_grid import grid_of

    grid = grid_of(tagged.schema)
    grid.loc[grid["column"] == "ward", "keep"] = "leave out"
    assert tables.change_grid(store, tagged, grid).schema.sensitive == {"group 1": ("age",)}


def test_the_plan_offers_shift_and_certificate_with_limits(tagged, show):
    at = whole(show("plan", table=tagged.id))
    said = words(at)
    assert "group 1" in said and "does not protect individuals" in said
    assert "granted with a probability of" in said
    assert "Certificate for “group 1”" in said
    labels = [slider.label for slider in at.select_slider]
    assert "How different from the real distributions?" in labels
    at = whole(next(r for r in at.radio if r.label.startswith("How should")).set_value(False).run())
    assert "Certificate for “group 1”" not in words(at)
    assert "checked internally" in words(at)


def test_the_plan_says_at_which_level_attempts_are_tested(tagged, show):
    at = whole(show("plan", table=tagged.id))
    assert "is at most 5%." in words(at)
    attempts = next(box for box in at.number_input if box.label == "Attempts")
    said = words(whole(attempts.set_value(5).run()))
    assert "at most 5% over all attempts" in said
    assert "at most 5 attempts, each tested at α = 0.01" in said


def test_without_tags_the_plan_says_nothing_of_them(table, show):
    assert "Hidden" not in words(whole(show("plan", table=table.id)))


@pytest.mark.parametrize(("model", "offered"), [("pearl", 3), ("ppem", 4)])
def test_no_shift_is_offered_only_where_training_hides(tagged, show, model, offered):
    at = show("plan", table=tagged.id)
    at.session_state["model"] = model
    at = whole(at.run())
    slider = next(s for s in at.select_slider if s.label.startswith("How different"))
    assert len(slider.options) == offered and ("none" in slider.options) is (model == "ppem")


# what is done to tagged columns -> in limits, in the dictionary
SAID = {
    "shifted": ("pearl", 0.75, "shifted on purpose", "hidden on purpose: the distribution"),
    "trained": ("ppem", 0.0, "trained to differ on purpose", "the model was trained to"),
    "none": ("pearl", 0.0, "tagged, but not hidden", "tagged, but not hidden"),
}


@pytest.mark.parametrize(("model", "shift", "limit", "shares"), SAID.values(), ids=SAID)
def test_words_follow_what_was_done_to_tagged_columns(
    store, tagged, start, model, shift, limit, shares
):
    run = start(model=model, settings={})
    without = run.plan.protection.model_copy(update={"shift": shift})
    run = replace(run, plan=run.plan.model_copy(update={"protection": without}))
    said = " ".join(limits.limits(store, run)) + export.dictionary_text(store, run)
    assert limit in said and shares in said
    for other_limit, other_shares in (s[2:] for s in SAID.values() if s[2] != limit):
        assert other_limit not in said and other_shares not in said
    assert bool(limits.hidden_columns(run)) is (limit != SAID["none"][2])


def judged(store, run, *, granted=True, differs=True, **more):
    report = small_report(1)
    report["protection"] = [
        {
            "group": "group 1", "columns": ["age"], "alpha": 0.05, "records": 200,
            "two_sample": 0.1, "p_two_sample": 0.001, "stein": 0.2,
            "p_stein": 0.005 if differs else 0.4, "differs": differs,
        }
    ]  # fmt: skip
    finish(store, run, report=report, **more)
    lmdp = {
        "statement": "s",
        "granted": granted,
        "verdicts": [
            {
                "group": "group 1", "columns": ["age"], "kind": "private certificate",
                "granted": granted, "count": 3.2, "groups": 3, "threshold": 2.5, "epsilon": 0.1,
            }
        ],
    }  # fmt: skip
    path = store.artefacts(run.id).path("certificate.json")
    path.write_text(json.dumps({"relation": "zero-out", "lmdp": lmdp}))


@pytest.mark.parametrize("yes", [True, False])
def test_review_gives_a_verdict_in_words(store, tagged, start, show, yes):
    run = start(certificate=0.1)
    judged(store, run, granted=yes, differs=yes)
    at = whole(show("review", run=run.id))
    said = words(at)
    assert ("Certificate granted" in said) is yes
    assert ("Certificate not granted" in said) is not yes
    assert ("differs from the real one" in said) is yes
    assert ("may reveal the real one" in said) is not yes
    assert "p = 0.001" in said and "do not share" in said


def outside_of_age():
    """A report for outside with the tagged column's synthetic shares."""
    report = outside_report()
    report["columns"]["age"] = report["columns"].pop("c0")
    return report


@pytest.mark.parametrize("granted", [True, False])
def test_the_outside_view_and_file_say_what_is_not_real(store, tagged, start, show, granted):
    run = start(certificate=0.1)
    judged(store, run, granted=granted, outside=outside_of_age())
    at = whole(show("review", run=run.id, view="outside"))
    assert "What is not realistic" in words(at)
    text = report_view._file(store.run(run.id), outside_of_age(), "outside")
    file = text.split("<main>")[1].split("<script")[0]
    for said in (words(at), html.unescape(file)):
        assert "hidden on purpose" in said
        assert "age (group 1): shifted on purpose" in said
        assert "ward (group 2): shifted on purpose" in said
        assert "bought for ε = 0.1" in said and ("refused" in said) is not granted
        assert "No certificate was bought" in said  # for the group that has none
        assert "Made up, with nothing real in them: visit_id" in said
        assert "Weaknesses of" in said
        assert "p = 0.0" not in said and "p_stein" not in said  # the inside check stays inside


def test_the_check_for_inside_is_no_certificate(store, tagged, start):
    run = start()
    judged(store, run)
    path = store.artefacts(run.id).path("certificate.json")
    path.write_text(path.read_text().replace('"epsilon": 0.1', '"p": 0.1'))
    assert limits.paid_certificates(store, store.run(run.id)) == {}
    assert "bought for" not in " ".join(limits.limits(store, store.run(run.id)))


def test_a_table_that_hides_nothing_says_nothing_of_hiding(store, table, start):
    run = start()
    finish(store, run, report=small_report())
    assert not any("purpose" in line for line in limits.limits(store, run))
    assert "shares" not in export.domain_dictionary(run.schema.as_proposed().domain())


def test_the_dictionary_names_hidden_columns(store, tagged, start):
    domain = start(certificate=0.1).schema.domain()
    dictionary = export.domain_dictionary(domain).set_index("column")["shares"]
    assert set(dictionary.index[dictionary.str.contains("hidden on purpose")]) == {"age", "ward"}


def test_a_refused_certificate_stands_before_the_download(store, tagged, start, show):
    run = start(certificate=0.1)
    judged(store, run, granted=False)
    at = whole(show("download", run=run.id))
    assert "may reveal" in words(at)
    assert not at.get("download_button")
    at = whole(at.toggle[0].set_value(True).run())
    assert at.get("download_button")


def test_the_unshifted_model_is_not_handed_out(store, tagged, start, show):
    run = start(certificate=0.1)
    judged(store, run)
    at = whole(show("download", run=run.id))
    labels = [b.proto.label for b in at.get("download_button")]
    assert labels and not any("Trained model" in label for label in labels)
    assert "trained model cannot be downloaded" in words(at)
    assert "age, ward" in words(at) and "distribution differs from the real one" in words(at)


def test_a_certificate_that_is_gone_stands_there_too(store, tagged, start, show, downloads):
    run = start(certificate=0.1)
    judged(store, run)
    assert reviews.refused_groups(store, run) == []
    store.artefacts(run.id).path("certificate.json").unlink()
    assert reviews.refused_groups(store, run) == ["group 1", "group 2"]
    at = whole(show("download", run=run.id))
    assert "is missing for: group 1, group 2" in words(at) and not downloads
    whole(at.toggle[0].set_value(True).run())
    assert any(name.endswith(".csv") for name in downloads)
