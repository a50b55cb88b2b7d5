"""Collect the interface's texts: `python -m docs.make_catalogue`, from the repository's root.

Brings core/language/*.po up to date with the code and compiles them: new texts get an empty
translation, texts that are gone are dropped, and what is left to translate is counted. Collected
are the templates of `say`, `say_n`, `Message`, `plural` and `to_say`; in `core` also what declares
itself to people: labels of `tunable` settings, texts in the fields `FIELDS`, constants, and the
values of enumerations.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from core.export.guides import guides

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "core" / "language"
PAGES = [ROOT / "app.py", *sorted(ROOT.glob("pages/**/*.py"))]
# what pages never show
SILENT = {"cli", "audit", "language", "operations", "api.py", "message.py"}
CORE = sorted(
    path
    for path in ROOT.glob("core/**/*.py")
    if path.relative_to(ROOT / "core").parts[0] not in SILENT
)
NEVER = datetime(2000, 1, 1, tzinfo=UTC)  # of catalogues: they change only with their texts
# where a call's templates begin among its arguments, and end
CALLS = {
    "say": (0, 1),
    "to_say": (0, 1),
    "say_n": (1, 3),
    "Message": (0, 1),
    "plural": (1, 3),
    "tunable": (1, 3),
}
# errors that people read, raised with a template or a message; see `core.message.ReportedError`
ERRORS = (
    "ReportedError", "TableReadError", "SchemaError", "RuleDomainError", "ConditionError",
    "UndeclaredDomainError", "QuestionError", "RunStoreError", "NotFoundError", "StorageError",
    "LauncherError", "DeviceError", "LedgerError", "OverBudgetError", "HiddenError",
    "MixedUnitsError", "ShiftError",
)  # fmt: skip
CALLS |= dict.fromkeys(ERRORS, (0, 1))
# by which cards, metrics, phases and figures say what they are
FIELDS = {
    "caption", "choices", "good_at", "help", "label", "makes", "meaning", "note", "otherwise",
    "published", "series", "soundness", "source", "summary", "text", "title", "unit", "weak_at",
    "what", "words",
}  # fmt: skip
_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:]?(?:\s+\S{1,2})?\s+\S*[A-Za-z]{2,}")
_BESIDE_WORDS = re.compile(r"\{[^{}]*\}|<[^<>]*>")


def has_words(template: str) -> bool:
    """Whether a template holds more than fields, numbers' marks and the tags of figures."""
    return bool(re.search(r"[^\W\d_]{2}", _BESIDE_WORDS.sub("", template)))


@functools.lru_cache(maxsize=1)
def nodes_of(source: str) -> list[ast.AST]:
    """A file's syntax tree, flat; its first node is the module."""
    return list(ast.walk(ast.parse(source)))


def texts_of_calls(source: str) -> Iterator[str]:
    """Templates of messages and of `say`; a name among them is a constant marked by `to_say`.

    Raises:
      ValueError: a template is put together, so nobody could translate it.
    """
    for node in nodes_of(source):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        given = node.args[slice(*CALLS.get(name, (0, 0)))]
        while given:
            argument = given.pop(0)
            if isinstance(argument, ast.IfExp):
                given[:0] = [argument.body, argument.orelse]
            elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                if has_words(argument.value):
                    yield argument.value
            elif isinstance(argument, ast.Call) and name in ERRORS:
                continue  # a message, collected where it is made
            elif not isinstance(argument, ast.Name | ast.Attribute):
                raise ValueError(f"line {node.lineno}: {ast.unparse(argument)} is no plain string")


def texts_of_declarations(source: str) -> Iterator[str]:
    """Texts in the fields `FIELDS`, in constants, and of enumerations."""
    nodes = nodes_of(source)
    for node in nodes:
        if isinstance(node, ast.keyword) and node.arg in FIELDS:
            yield from _strings(node.value)
        elif isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases):
            for one in node.body:
                if isinstance(one, ast.Assign):
                    yield from _strings(one.value)
    assert isinstance(nodes[0], ast.Module)
    for one in nodes[0].body:
        if isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            if isinstance(target, ast.Name) and target.id.isupper():
                texts = _strings(one.value)
                yield from (t for t in texts if _TWO_WORDS.search(_BESIDE_WORDS.sub("·", t)))


def _strings(node: ast.AST) -> Iterator[str]:
    """Strings that can be looked up, or filled."""
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            return
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                names = [name for _, name, _, _ in Formatter().parse(part.value) if name]
            except ValueError:  # the code of a page
                continue
            if has_words(part.value) and all(name.isidentifier() for name in names):
                yield part.value


def collected() -> Catalog:
    """All texts, each with the files it stands in."""
    catalog = Catalog(project="Facsimile", charset="utf-8")
    for path in PAGES + CORE:
        source, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        texts = [*texts_of_calls(source), *(texts_of_declarations(source) if path in CORE else ())]
        for text in texts:
            catalog.add(text, locations=[(where, 0)])
    for text in texts_of_guides():
        catalog.add(text, locations=[("core/export/guides.toml", 0)])
    return catalog


def texts_of_guides() -> Iterator[str]:
    """Texts of evidence packs, which are data."""
    content = guides()
    yield content["opening"]["answer"]
    for guide in content["guide"]:
        yield from (guide["title"], guide["reference"])
    for one in content["question"].values():
        yield from (one[key] for key in ("text", "answer", "who") if has_words(one.get(key, "")))
    yield from (one["claim"] for one in content["claim"].values())


def updated(code: str) -> Catalog:
    """A language's catalogue as it should stand: the code's texts, each with its translation."""
    file = FOLDER / f"{code}.po"
    old = read_po(BytesIO(file.read_bytes()), locale=code) if file.exists() else Catalog(code)
    new = Catalog(locale=code, project="Facsimile", charset="utf-8", creation_date=NEVER)
    new.revision_date = NEVER
    for message in collected():
        if message.id:
            known = old.get(message.id)
            text = known.string if known is not None else ""
            new.add(message.id, text, locations=message.locations)
    return new


def written(catalog: Catalog) -> bytes:
    """A catalogue in gettext's format; without dates, so that it changes only with its texts."""
    target = BytesIO()
    write_po(target, catalog, width=100, omit_header=True, include_lineno=False, sort_output=True)
    header = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'
    return header + target.getvalue()


def compiled(catalog: Catalog) -> bytes:
    """A catalogue as `gettext` reads it."""
    target = BytesIO()
    write_mo(target, catalog)
    return target.getvalue()


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.po")):
        catalog = updated(path.stem)
        path.write_bytes(written(catalog))
        path.with_suffix(".mo").write_bytes(compiled(catalog))
        missing = sum(1 for message in catalog if message.id and not message.string)
        print(f"{path.name}: {len(catalog)} texts, {missing} to translate")
