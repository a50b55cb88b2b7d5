"""What core words in the language of whoever reads, since names in it are nobody's to translate."""

from __future__ import annotations

import pytest

from core.language.catalogue import language
from core.proposing.schema_matching import Comparison
from core.runs.execution import privacy_certificate
from core.schema.column import Column, DomainSource, Kind
from core.schema.form import Form

pytestmark = pytest.mark.slow

COLUMNS = [
    Column(name="a", kind=Kind.INTEGER, low=17, high=90, step=1, missing=True),
    Column(name="b", kind=Kind.NUMBER, low=0, high=1e6, scale="log", spikes=(0.0, 99.5)),
    Column(name="c", kind=Kind.NUMBER, low=0, high=9, form=Form(codes=("-99", "n/a"))),
    Column(name="d", kind=Kind.DATETIME, low=0, high=86_400.5, step=0.5),
    Column(name="e", kind=Kind.CATEGORY, categories=("x", "y", "OTHER"), other="OTHER"),
    Column(name="f", kind=Kind.BOOLEAN, categories=("no", "yes")),
    Column(name="g", kind=Kind.TEXT),
    Column(name="h", kind=Kind.TEXT, source=DomainSource.DROP),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_declared_domain_is_said_in_the_readers_language(column):
    words = privacy_certificate.declared(column)
    assert language("en").render(words) == words
    told = language("de").render(words)
    assert told.startswith(f"{column.name}: ") and told != words
    assert all(label in told for label in column.categories or ())


def test_schemas_are_compared_in_the_readers_language():
    many = Comparison(("a",), {}, ("u",), ("v", "w", "x", "y", "z"))
    assert many.words == "1 column as last time; 1 is new: u; 5 are gone: v, w, x, y and 1 more."
    german = language("de")
    told = german.render(many.words)
    assert "last time" not in told and "u; 5" in told and "v, w, x, y" in told
