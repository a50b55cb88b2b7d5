"""What Dockerfile, compose.yaml and .dockerignore say, as far as tests need it."""

from __future__ import annotations

import json
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order: word and rest, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    words = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, rest in words]


def all_of(word: str) -> list[str]:
    """What follows each of an instruction."""
    return [rest for name, rest in instructions() if name == word]


def command_of(word: str) -> list[str]:
    """The arguments of CMD or HEALTHCHECK in their JSON form."""
    (rest,) = all_of(word)
    return [str(one) for one in json.loads(rest[rest.index("[") :])]


def service(name: str) -> str:
    """A service's lines in compose.yaml."""
    lines = re.search(rf"^  {name}:\n((?:    .*\n|\n)+)", COMPOSE, re.MULTILINE)
    assert lines is not None, name
    return lines.group(1)


def command_of_service(name: str) -> list[str]:
    """A service's command: a list of one line, or one a line."""
    text = service(name)
    if (inline := re.search(r"^    command: (\[.*\])$", text, re.MULTILINE)) is not None:
        return [str(one) for one in json.loads(inline.group(1))]
    lines = re.search(r"^    command:\n((?:      - .*\n)+)", text, re.MULTILINE)
    assert lines is not None, name
    return [line.strip().removeprefix("- ").strip("'") for line in lines.group(1).splitlines()]


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path of the tree from the build; the last rule that fits."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        rule = line.strip()
        body = rule.removeprefix("!").removeprefix("**/")
        parts = Path(path).parts
        ways = ["/".join(parts[: i + 1]) for i in range(len(parts))]
        fits = any(fnmatch(way, body) or way == body for way in ways)
        if rule.startswith("**/"):
            fits = any(fnmatch(part, body) for part in parts)
        if fits:
            verdict = not rule.startswith("!")
    return verdict


def copied(tree: Path, into: Path) -> None:
    """What COPY would bring from a tree into the image's working folder."""
    for rest in all_of("COPY"):
        source, target = rest.split()
        for path in sorted((tree / source).rglob("*")) or [tree / source]:
            name = path.relative_to(tree).as_posix()
            if path.is_dir() or ignored(name):
                continue
            inside = name if target in ("./", source) else target
            (into / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, into / inside)
