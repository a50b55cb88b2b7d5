"""Collect the interface's texts: `python -m docs.make_catalogue`, from the repository's root.

Brings core/language/*.po up to date with the code and compiles them: new texts get an empty
translation, texts that are gone are dropped, and what is left to translate is counted. Texts of
pages are the templates in `say` and `say_n` and the labels in `to_say`; texts of `core` are those
of `Message` and `plural`, and still every string of two words or more, since they reach pages as
finished sentences, and the lines of core/language/composed.txt: its single words, and sentences
that it puts together from pieces. Rooms that are given a language (core/export) have `say` too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "core" / "language"
COMPOSED = FOLDER / "composed.txt"
PAGES = [ROOT / "app.py", *sorted(ROOT.glob("pages/**/*.py"))]
# what pages never show
SILENT = {"cli", "audit", "language", "operations", "api.py"}
CORE = sorted(
    path
    for path in ROOT.glob("core/**/*.py")
    if path.relative_to(ROOT / "core").parts[0] not in SILENT and path.name != "message.py"
)
NEVER = datetime(2000, 1, 1, tzinfo=UTC)  # of catalogues: they change only with their texts
# where a call's templates begin among its arguments, and end
SAY = {
    "say": (0, 1),
    "to_say": (0, 1),
    "say_n": (1, 3),
    "Message": (0, 1),
    "plural": (1, 3),
    # errors whose text people read, see `core.message.ReportedError`; they take messages too
    "TableReadError": (0, 1),
    "SchemaError": (0, 1),
    "ConditionError": (0, 1),
    "RuleDomainError": (0, 1),
    "UndeclaredDomainError": (0, 1),
}
_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:]?(?:\s+\S{1,2})?\s+\S*[A-Za-z]{2,}")
_NAME = re.compile(r"[A-Za-z_]+")


def _parts(text: ast.expr) -> Iterator[ast.expr]:
    """What an f-string, or a sum of strings, is made of, in order."""
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        yield from _parts(text.left)
        yield from _parts(text.right)
    elif isinstance(text, ast.JoinedStr):
        yield from text.values
    else:
        yield text


def _template(text: ast.expr) -> str:
    """An f-string or a sum of strings as a template; a field is called what its value ends in."""
    pieces, names = [], dict[str, str]()
    for part in _parts(text):
        if isinstance(part, ast.Constant):
            pieces.append(str(part.value).replace("{", "{{").replace("}", "}}"))
            continue
        value = part.value if isinstance(part, ast.FormattedValue) else part
        source, last = ast.unparse(value), value
        while isinstance(last, ast.Call):
            last = last.args[0] if last.args else last.func
        word = last.attr if isinstance(last, ast.Attribute) else ast.unparse(last)
        name = word if _NAME.fullmatch(word) else "value"
        taken = [other for other in names.values() if other.rstrip("0123456789") == name]
        if source not in names:
            names[source] = f"{name}{len(taken) + 1}" if taken else name
        spec = part.format_spec if isinstance(part, ast.FormattedValue) else None
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "share":
            number = ":s"  # per cent, written already
        else:
            number = "" if spec is None else ":" + _specification(spec)
        pieces.append(f"{{{names[source]}{number}}}")
    return "".join(pieces)


def _sums(tree: ast.AST) -> Iterator[ast.BinOp]:
    """Outermost sums that have a string in them."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and id(node) not in inner:
            inner |= {id(part) for part in ast.walk(node) if isinstance(part, ast.BinOp)}
            if any(_is_text(part) for part in _parts(node)):
                yield node


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _operands(whole: ast.BinOp) -> Iterator[ast.AST]:
    """The strings that a sum is made of, which are no texts of their own."""
    for node in ast.walk(whole):
        if isinstance(node, ast.BinOp):
            yield from (
                side for side in (node.left, node.right)
                if _is_text(side) or isinstance(side, ast.JoinedStr)
            )  # fmt: skip


def _is_template(text: str) -> bool:
    """Whether a plain string can be filled, or needs no filling: not the code of a page."""
    try:
        names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    return all(name.isidentifier() for name in names)


def _specification(spec: ast.expr) -> str:
    """A format's specification as written; one that is computed is some number's."""
    assert isinstance(spec, ast.JoinedStr)
    constant = all(isinstance(part, ast.Constant) for part in spec.values)
    return ast.unparse(spec)[2:-1] if constant else "g"


def _not_shown(tree: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, and the parts of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            yield from (part for part in ast.walk(node) if part is not node)
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield from ast.walk(node.annotation)


def texts_of_core(source: str) -> Iterator[str]:
    """Strings of two words or more, f-strings as templates.

    >>> list(texts_of_core('f"{len(rows):,} rows of {table.name}"'))
    ['{rows:,} rows of {name}']
    """
    tree = ast.parse(source)
    hidden = set(map(id, _not_shown(tree)))
    sums = list(_sums(tree))
    for whole in sums:
        hidden |= {id(node) for node in _operands(whole)}
    for node in [*sums, *ast.walk(tree)]:
        text = ""
        if id(node) in hidden:
            continue
        if isinstance(node, ast.JoinedStr) or node in sums:
            text = _template(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value if _is_template(node.value) else ""
        if _TWO_WORDS.search(re.sub(r"\{[^{}]*\}", "·", text)):
            yield text


def _has_words(template: str) -> bool:
    """Whether a template holds more than fields, numbers' marks and the tags of figures."""
    return bool(re.search(r"[^\W\d_]", re.sub(r"\{[^{}]*\}|<[^<>]*>", "", template)))


def texts_of_calls(source: str) -> Iterator[str]:
    """Templates of messages and of `say`; a name among them is a constant marked by `to_say`.

    Raises:
      ValueError: a template is put together, so nobody could translate it.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        given = node.args[slice(*SAY.get(name, (0, 0)))]
        while given:
            argument = given.pop(0)
            if isinstance(argument, ast.IfExp):
                given[:0] = [argument.body, argument.orelse]
            elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                if _has_words(argument.value):
                    yield argument.value
            elif not (isinstance(argument, ast.Name | ast.Attribute) or name.endswith("Error")):
                raise ValueError(f"line {node.lineno}: {ast.unparse(argument)} is no plain string")


def collected() -> Catalog:
    """All texts, each with the files it stands in."""
    catalog = Catalog(project="Facsimile", charset="utf-8")
    for path in PAGES + CORE:
        source, place = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        for text in [*texts_of_calls(source), *(() if path in PAGES else texts_of_core(source))]:
            catalog.add(text, locations=[(place, 0)])
    for text in COMPOSED.read_text(encoding="utf-8").splitlines():
        catalog.add(text, locations=[(COMPOSED.relative_to(ROOT).as_posix(), 0)])
    return catalog


def updated(code: str) -> Catalog:
    """A language's catalogue as it should stand: the code's texts, each with its translation."""
    file = FOLDER / f"{code}.po"
    old = read_po(BytesIO(file.read_bytes()), locale=code) if file.exists() else Catalog(code)
    new = Catalog(locale=code, project="Facsimile", charset="utf-8", creation_date=NEVER)
    new.revision_date = NEVER
    for message in collected():
        if message.id:
            known = old.get(message.id, message.context)
            text = known.string if known is not None else ""
            new.add(message.id, text, context=message.context, locations=message.locations)
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
