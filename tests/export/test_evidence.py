"""Evidence: no answer without a source in the pack, and nothing of the inside in an outside one."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from core.export.evidence_pack import INSIDE, _pdf, packed
from core.export.guides import Field, Sheet, guides, registry_record, sheets, value_at
from core.language.catalogue import ENGLISH, language
from core.message import Message
from tests.test_docs import missing

CERTIFICATE = {
    "claim": Message("ε = {e:g}", e=1.0), "method": "exact Gaussian", "relation": "zero-out …",
    "epsilon_zero_out": 1.0, "epsilon_replace_one": 2.1, "delta": 1e-6, "rows": 9, "table": "a/ü",
    "conditions": [Message("The number of records, {n}, is public.", n=9), "Another <b> & more"],
    "date": "2026-11-26T00:00:00", "product": "Facsimile 0.1.0", "plan_digest": "ab",
}  # fmt: skip
DOCUMENTS = {
    "certificate.json": CERTIFICATE,
    "synthetic.json": {"statement": "Synthetic.", "name": "a.csv"},
    "release.json": {"purpose": "Teaching", "recipient": "", "author": "Ann"},
    "run.json": {
        "id": "12ab", "table": "a/ü", "made": "2026-11-26", "model_name": "PEARL",
        "releases": 1, "columns": 2, "limits": ["Some."],
        "hidden": [], "accesses": ["One."], "unit": "one record",
    },
    "best-attack.json": {
        "right": 0.55, "found_at_1_percent": 0.02, "found_at_10_percent": 0.15,
        "posterior_at_1_percent": 0.66,
    },
    "product.json": guides()["claim"],
}  # fmt: skip
# The keys of the public registry's schema, and the values of those that are enumerated.
REGISTRY = {
    "basic": {
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region",
        "description", "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_details", "privacy_parameters",
    },
    "deployment_model": {
        "model_name", "model_name_details", "actors", "release_type", "release_type_details",
        "data_source_type", "access_type", "access_type_details",
    },
    "accounting": {"post_processing", "composition"},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning", "mechanisms", "justification",
    },
    "administrative": {"notes", "registry_authors"},
}  # fmt: skip


def every_field(documents=DOCUMENTS) -> list[Field]:
    return [field for sheet in sheets(documents) for field in sheet.fields]


def test_every_answer_has_a_source_in_the_pack():
    for field in every_field():
        assert bool(field.answer) == bool(field.sources) != bool(field.who), field
        for source in field.sources:
            assert value_at(DOCUMENTS, source) not in (None, "", []), source


def test_a_claim_without_source_is_refused():
    with pytest.raises(ValueError, match="No source"):
        Field("Is it safe?", "Yes.", (), "somebody")
    with pytest.raises(ValueError, match="nobody to fill it in"):
        Field("Is it safe?", "", (), "")


def test_an_answer_says_nothing_that_its_sources_do_not():
    """Every template is filled with values, each of them from a document; none speaks by itself."""
    for name, one in guides()["question"].items():
        values = one.get("values", {})
        assert all(f"{{{field}" in one.get("answer", "{said}") for field in values), name
        assert values or ("answer" not in one and "who" in one) or name == "chosen", name
    used = [name for guide in guides()["guide"] for name in guide["questions"]]
    assert set(used) == set(guides()["question"])


def test_what_nobody_said_names_who_must_say_it():
    lacking = {field.question: field.who for field in every_field() if not field.answer}
    assert lacking["Who receives it?"] == "the data steward"
    assert "On which legal basis?" in lacking and "What did attacks on this table reach?" in lacking
    assert "For which purpose is the table released?" not in lacking


def test_sentences_on_the_product_are_enforced_and_tested():
    for one in guides()["claim"].values():
        assert not missing(one["enforced"]) and not missing(one["tested"]), one


def test_a_record_has_the_shape_of_the_public_registry():
    record = registry_record(DOCUMENTS)
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert (record["status"], record["tier"], record["url_slug"]) == ("Draft", 3, "12ab")
    assert {part: set(keys) for part, keys in record["deployment"].items()} == REGISTRY
    parts = record["deployment"]
    assert parts["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert parts["basic"]["publication_date"] == "2026-11-26"
    assert parts["basic"]["data_product_region"].startswith("To be filled in by")
    assert parts["administrative"]["registry_authors"] == ["Ann"]
    texts = json.loads(json.dumps(parts))
    assert all(text for part in texts.values() for text in part.values())


def test_a_pack_holds_its_sources_and_the_hash_of_each_file():
    body = packed(DOCUMENTS, {"dictionary.csv": "a"}, view="outside", language=ENGLISH)
    assert body == packed(DOCUMENTS, {"dictionary.csv": "a"}, view="outside", language=ENGLISH)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        names = set(archive.namelist())
        kept = {name: archive.read(name) for name in names}
    for field in json.loads(kept["evidence.json"])[0]["fields"]:
        assert {source.partition("#")[0] for source in field["sources"]} <= names
    lines = dict(reversed(line.split("  ")) for line in kept["hashes.sha256"].decode().splitlines())
    assert set(lines) == names - {"hashes.sha256"}
    assert kept["evidence.pdf"].startswith(b"%PDF")


def test_nothing_of_the_inside_gets_into_a_pack_for_outside():
    more = DOCUMENTS | {f"{INSIDE}attacks.json": {"sentence": "It works."}}
    with pytest.raises(ValueError, match="no document of the inside"):
        packed(more, {}, view="outside", language=ENGLISH)
    assert packed(more, {}, view="inside", language=ENGLISH)


@pytest.mark.parametrize("code", ["en", "de"])
def test_sheets_are_text_in_both_languages(code):
    spoken = language(code)
    body = packed(DOCUMENTS, {}, view="outside", language=spoken)
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        shown = archive.read("evidence.html").decode()
    assert "<script" not in shown and "Another &lt;b&gt; &amp; more" in shown
    assert ("Wer bekommt sie?" in shown) == (code == "de")
    sheet = Sheet("k", "t", "r", (Field("q", "word 表 <b> " * 9_000, ("a",), ""),))
    assert _pdf([sheet], [], spoken)  # a cell of several pages
