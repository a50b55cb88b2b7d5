"""Text from people and from files, shown as text: no pictures, links, HTML or formulas in it."""

from __future__ import annotations

import re

# zero width: keeps links, e-mail addresses, icons and emoji apart that Markdown finds in plain
# words, where a backslash does not stop it
JOINER = "\u2060"
_BREAKS = re.compile(r"[^\S\u00a0]+")  # a space that keeps words together stays
_ANYWHERE = re.compile(r"[\\`*\[\]<>&$~|]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"^(\s*)([#+=-]|\d+(?=[.)]))", re.MULTILINE)
_FOUND_IN_WORDS = re.compile(r":(?=\S)|@|(?<=\bwww)(?=\.)", re.IGNORECASE)


def plain(text: object) -> str:
    r"""Text that Streamlit's Markdown shows as it stands, line breaks as spaces.

    For everything that was written by people or read from a file: names, comments, values.

    >>> plain("![x](http://evil.example/p.png)").replace(JOINER, "·")
    '!\\[x\\](http:·//evil.example/p.png)'
    >>> plain("visit_id")
    'visit_id'
    """
    line = _BREAKS.sub(" ", str(text).strip())
    line = _ANYWHERE.sub(lambda found: "\\" + found[0], line)
    line = _LINE_START.sub(_escaped_start, line)
    return _FOUND_IN_WORDS.sub(lambda found: f"{found[0]}{JOINER}", line)


def _escaped_start(found: re.Match[str]) -> str:
    """A number that would begin a list gets its mark escaped, everything else a backslash."""
    space, mark = found[1], found[2]
    return f"{space}{mark}{JOINER}" if mark.isdigit() else f"{space}\\{mark}"


def in_code(text: object) -> str:
    r"""Text to stand between Markdown's backticks, line breaks as spaces; nothing in it ends them.

    >>> in_code("a` ![x](/y)\n\n`b")
    "a' ![x](/y) 'b"
    """
    return " ".join(str(text).split()).replace("`", "'")
