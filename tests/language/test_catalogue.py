"""The catalogue holds every text of the code, each translated whole; sentences are recognised."""

from __future__ import annotations

import ast
import re
from string import Formatter

import pytest

from core.language.catalogue import FOLDER, NAMES, Language, language
from core.message import Message, joined
from docs import make_catalogue

CODES = [code for code in NAMES if code != "en"]
ICONS = re.compile(r":material/\w+:")


@pytest.fixture(scope="module", params=CODES)
def catalogue(request):
    return request.param, make_catalogue.updated(request.param)


def test_files_hold_the_codes_texts(catalogue):
    code, texts = catalogue
    file = FOLDER / f"{code}.po"
    same = file.read_bytes() == make_catalogue.written(texts)  # a diff of it all takes minutes
    assert same, "run `python -m docs.make_catalogue`"
    same = file.with_suffix(".mo").read_bytes() == make_catalogue.compiled(texts)
    assert same, "run `python -m docs.make_catalogue`"


def test_nothing_is_left_to_translate(catalogue):
    assert [text.id for text in catalogue[1] if text.id and not text.string] == []


def fields(template):
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_translations_say_nothing_that_the_text_does_not_hold(catalogue):
    wrong = [
        text.id
        for text in catalogue[1]
        if text.id
        and not (
            fields(text.string) <= fields(text.id)
            and sorted(ICONS.findall(text.string)) == sorted(ICONS.findall(text.id))
        )
    ]
    assert wrong == []


def test_a_text_that_is_no_literal_is_refused():
    with pytest.raises(ValueError, match="no plain string"):
        list(make_catalogue.texts_of_calls("Message(f'{n} rows')"))


def test_english_is_what_the_code_says():
    english = Language("en")
    assert english.render("{n} rows, untouched") == "{n} rows, untouched"
    assert english.say("{n:,.1f} of {what!t}", n=1234.5, what="rows") == "1,234.5 of rows"


def test_errors_that_people_read_are_collected():
    classes = [
        node
        for path in make_catalogue.CORE
        for node in make_catalogue.nodes_of(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.ClassDef)
    ]
    found = {"ReportedError"}
    for _ in classes:  # a class may stand before its base
        found |= {one.name for one in classes if found & {ast.unparse(base) for base in one.bases}}
    assert found == set(make_catalogue.ERRORS)
    source = "raise TableReadError('The file is empty.'); raise SchemaError(Message('{n} rows'))"
    assert list(make_catalogue.texts_of_calls(source)) == ["The file is empty.", "{n} rows"]


def test_messages_are_collected_from_the_code():
    source = "Message('{n} rows', n=n), Message('<b>{n:,}</b>'), plural(k, 'one', 'many {n}')"
    assert list(make_catalogue.texts_of_calls(source)) == ["{n} rows", "one", "many {n}"]


def test_what_core_declares_is_collected():
    source = """
NOTE: str = "Nothing was read."
limit = "not collected here"
class State(StrEnum):
    DONE = "done"
Card(title="Draft", key="draft")
raise ValueError("a developer's error")
"""
    assert sorted(make_catalogue.texts_of_declarations(source)) == [
        "Draft", "Nothing was read.", "done",
    ]  # fmt: skip


def german_with(**texts):
    own = Language("de")
    own._messages |= {template: text for template, text in texts.values()}
    return own


def test_a_message_is_said_from_its_template():
    rows = "{n:,.1f} rows of '{name}'", "'{name}' hat {n:,.1f} Zeilen"
    german = german_with(rows=rows, test=("test name", "Testname"))
    message = Message(rows[0], n=1234.5, name="test name")
    assert german.render(message) == "'test name' hat 1.234,5 Zeilen"
    assert german.render("test name") == "Testname"
    assert german.say("{what}!", what=message) == "'test name' hat 1.234,5 Zeilen!"


def test_messages_within_messages_are_said_too():
    german = german_with(part=("a part", "ein Teil"), whole=("With {part}", "Mit {part}"))
    message = Message("With {part}", part=Message("a part"))
    assert german.render(joined([message, "a part"], "; ")) == "Mit ein Teil; ein Teil"


def test_a_language_without_a_catalogue_is_english():
    assert language("xx").code == "en"
    with pytest.raises(FileNotFoundError):
        Language("xx")
