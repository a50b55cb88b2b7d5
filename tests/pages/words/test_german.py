"""Pages in German: no English is left on them, and what people wrote stays as they wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

from core.models.registry import cards
from core.runs.events import State
from core.services import imports
from pages.shared import language
from pages.shared.plain import JOINER
from tests.pages.screen import each_tab, finish, small_report, whole, words

pytestmark = pytest.mark.slow

FRONT = Path(__file__).resolve().parents[3] / "pages/server/front.py"
SHOWN = {
    "label", "help", "body", "placeholder", "options", "title", "caption", "text", "alt",
    "tooltip", "default_options",
}  # fmt: skip
ENGLISH = re.compile(
    r"\b(the|of|and|is|are|with|this|that|it|its|from|be|been|which|rows?|columns?|not|no|"
    r"for|to|has|have|more|than|yet|how|what|each|every|on|or|by)\b"
)
# Stylesheets, links and code; English that people are shown to type or that stands in files
NOT_WORDS = re.compile(r"<style.*?</style>|<svg.*?</svg>|`[^`]*`|https?://\S+|:material/\w+:", re.S)


def texts(block: Any) -> Iterator[str]:
    """Every text that a page shows, folded parts and help texts too."""
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from texts(child)
        proto = getattr(child, "proto", None)
        if isinstance(proto, Message) and child.type not in ("html", "code"):
            yield from _strings(proto)


def _strings(proto: Message) -> Iterator[str]:
    for field, value in proto.ListFields():
        if field.name in SHOWN and field.type == field.TYPE_STRING:
            yield from [value] if isinstance(value, str) else value
        elif field.type == field.TYPE_MESSAGE:
            for part in [value] if isinstance(value, Message) else value:
                if isinstance(part, Message):
                    yield from _strings(part)


def english(at: Any) -> list[str]:
    """Texts on a page with English in them."""
    names = ["clinic visits", "readmitted", "visit_id", "no, yes", "Scan and focus"]
    names += [
        language.language("de").render(card.source) for card in cards()
    ]  # papers, by their authors
    names += ["Measured on a sample."]  # of the report that is made by hand
    left = []
    for text in texts(at.main):
        plain = NOT_WORDS.sub(" ", text.replace(JOINER, "").replace("\\", ""))
        for name in names:
            plain = plain.replace(name, "")
        if ENGLISH.search(plain):
            left.append(text)
    return sorted(set(left))


def test_the_look_finds_english(table, show):
    assert len(english(whole(show("plan", table=table.id)))) > 20


@pytest.mark.parametrize("name", ["tables", "plan", "training", "download", "ledger", "review"])
def test_an_empty_workspace_speaks_german(store, show, name):
    assert english(whole(show(name, lang="de"))) == []


@pytest.mark.parametrize("name", ["tables", "plan", "training", "download", "ledger"])
@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.RUNNING])
def test_pages_of_a_run_speak_german(store, table, start, show, name, state):
    run = start()
    finish(store, run, report=small_report(filled=True), state=state)
    at = whole(show(name, run=run.id, table=table.id, lang="de"))
    assert english(at) == []


def test_review_speaks_german(store, start, show):
    run = start()
    finish(store, run, report=small_report(filled=True))
    for at in each_tab(show("review", run=run.id, lang="de")):
        assert english(at) == []


@pytest.mark.parametrize("model", ["scan_focus", "pearl", "p3gm", "ppem", "dp_gan", "pgb"])
def test_plans_of_all_models_speak_german(store, table, show, model):
    at = show("plan", table=table.id, lang="de")
    at.session_state["model"] = model
    assert english(whole(at.run())) == []


def test_what_people_wrote_is_not_translated(store, show):
    """Names that are texts of ours elsewhere: „Zielspalte“ for Target, „Zahl“ for Number."""
    frame = pd.DataFrame({"Target": ["Failed", "Number"] * 40, "Number": range(80)})
    record = imports.import_frame(store, frame, name="Waiting", source="test")
    store.attest(record.id)
    at = whole(show("plan", table=record.id, lang="de"))
    assert "Waiting:" in words(at)
    at = whole(show("tables", table=record.id, lang="de"))
    (grid,) = [one.value for one in at.dataframe if "Target" in one.value.to_string()][:1]
    assert {"Target", "Number"} <= set(grid.to_numpy().astype(str).ravel()) | set(grid.index)


def test_a_choice_is_another_one_in_another_language(table, show):
    """The browser sends back the words that it showed, which the other language does not know."""
    english = show("plan", table=table.id)
    german = show("plan", table=table.id, lang="de")
    keys = [{one.key for one in at.select_slider if one.key} for at in (english, german)]
    assert keys[0] and not keys[0] & keys[1]


def test_the_choice_stays_in_the_address(store):
    at = whole(AppTest.from_file(str(FRONT), default_timeout=120).run())
    at.session_state["language_choice"] = "de"
    at = whole(at.run())
    assert english(at) == [] and at.query_params["lang"] in ("de", ["de"])


def test_numbers_have_german_marks():
    assert language.language("de").say("{n:,.1f}", n=1234.5) == "1.234,5"
