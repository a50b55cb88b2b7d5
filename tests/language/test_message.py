"""A message is its English text everywhere, and keeps what it was made from."""

import copy
import json
import pickle
from datetime import datetime
from string import Formatter

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

from core.language.catalogue import language
from core.message import (
    Message,
    Text,
    day,
    from_json,
    joined,
    minute,
    plural,
    to_json,
)
from docs import make_catalogue


def rows():
    return Message("{n:,} rows of '{name}'", n=1200, name="a {b} c")


def test_a_message_is_its_english_text():
    assert rows() == "1,200 rows of 'a {b} c'"
    assert json.dumps(rows()) == json.dumps("1,200 rows of 'a {b} c'")
    assert hash(rows()) == hash(str.__str__(rows()))


def test_the_text_of_an_error_is_still_the_message():
    assert str(ValueError(rows())).template == "{n:,} rows of '{name}'"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_template_and_values(copied):
    other = copied(rows())
    assert (other, other.template, other.values) == (rows(), rows().template, rows().values)


@pytest.mark.parametrize("n, text", [(1, "1 row"), (2, "2 rows of v")])
def test_plural_takes_one_or_many(n, text):
    assert plural(n, "{n} row", "{n} rows of {name}", name="v") == text


def test_joined_texts_keep_braces_and_templates():
    both = joined([rows(), "No {x}."], " {} ")
    assert both == f"{rows()} {{}} No {{x}}."
    assert both.values["part0"].template == rows().template
    assert joined([]) == ""


def test_numbers_of_arrays_become_plain_numbers():
    message = Message("{n:d} {x:.1f}", n=np.int64(3), x=np.float32(0.5))
    assert json.loads(json.dumps(to_json(message)))["values"] == {"n": 3, "x": 0.5}


@pytest.mark.parametrize(
    "message",
    [rows(), joined([rows(), "Nothing was changed."]), Message("in {part}", part=Message("rows"))],
)
def test_stored_messages_come_back_whole(message):
    back = from_json(json.loads(json.dumps(to_json(message))))
    assert back == message and to_json(back) == to_json(message)


def test_a_text_without_values_is_stored_as_itself():
    assert to_json("as {it} is") == "as {it} is" == from_json("as {it} is")
    assert to_json(Message("no values")) == "no values"


def test_messages_in_stored_values_come_back():
    stored = {"text": {}, "template": "t", "values": [rows(), 3], "of": {"a": [rows()]}}
    back = json.loads(json.dumps(to_json(stored)), object_hook=from_json)
    assert back == stored and back["of"]["a"][0].template == rows().template
    assert from_json(to_json(stored)) == back


def test_a_field_of_texts_keeps_templates():
    class Stored(BaseModel):
        text: Text
        many: tuple[Text, ...] = ()

    stored = Stored(text=rows(), many=(rows(), "constant"))
    back = Stored.model_validate_json(stored.model_dump_json())
    assert back == stored and back.many[0].values == rows().values
    assert isinstance(stored.model_dump()["text"], Message)
    with pytest.raises(ValidationError):
        Stored(text=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"template": "other {n}", "values": {"n": 2}},
        {"template": "{n.__class__}{m}", "values": {"n": 2}},
        {"template": "{", "values": {}},
        {"template": 3, "values": {}},
        {"template": "2 rows", "values": []},
    ],
)
def test_a_template_that_was_changed_counts_for_nothing(wrong):
    assert from_json({"text": "2 rows"} | wrong) == "2 rows"


@pytest.mark.parametrize("form", [":>900000000", ":.900000000f", ":0900000000", "!r"])
def test_a_template_that_fills_the_memory_is_not_filled(form, monkeypatch):
    monkeypatch.setattr("core.message.Message", lambda *_, **__: pytest.fail("it was filled"))
    saved = {"text": "2 rows", "template": f"{{n{form}}} rows", "values": {"n": 2}}
    assert from_json(saved) == "2 rows"


def test_every_text_of_the_catalogue_may_be_stored():
    templates = [str(message.id) for message in make_catalogue.collected() if message.id]
    for template in templates:
        if "!t}" not in template:  # said by pages alone, never stored
            values = {name: 1 for _, name, _, _ in Formatter().parse(template) if name}
            message = Message(template, **values)
            assert not values or isinstance(from_json(to_json(message)), Message), template
    assert len(templates) > 1_000


def test_a_day_is_written_in_the_languages_order():
    moment = datetime(2026, 11, 7, 9, 5)
    assert (day(moment), minute(moment)) == ("2026-11-07", "2026-11-07 09:05")
    stored = from_json(to_json(Message("since {when}", when=minute(moment, " UTC"))))
    assert language("de").render(stored) == "since 07.11.2026 09:05 UTC"
