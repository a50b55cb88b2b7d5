"""Write requirements.lock and docs/licences.md: `python -m docs.make_lock`, from the root.

Needs the tool uv (`pip install uv`) and a package index. The lock holds every package the product
runs on, for every platform, with the hashes of its files; the licences are those that the installed
packages state.
"""

from __future__ import annotations

import re
import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
PAGE = Path(__file__).with_name("licences.md")
COMMAND = (
    "uv", "pip", "compile", "requirements.txt", "--universal", "--python-version", "3.11",
    "--generate-hashes", "--prerelease", "disallow", "--no-header", "--no-annotate", "--upgrade",
)  # fmt: skip
HEAD = """# Licences

Of every package in `requirements.lock`, as each states it. Made by `python -m docs.make_lock`: renew the lock, not this page. Packages that only other platforms or graphics cards need are named without one where they are not installed.

| package | version | licence |
|---|---|---|
"""  # noqa: E501
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def pinned(text: str) -> dict[str, str]:
    """Versions by package, of a lock or a list of requirements.

    >>> pinned("streamlit==1.67.0 ; python_version > '3'")
    {'streamlit': '1.67.0'}
    """
    return {name.lower(): version for name, version in PINNED.findall(text)}


def licence(name: str) -> str:
    """What an installed package says of its licence; "" where it is not installed."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    classified = [
        one.rpartition(" :: ")[2]
        for one in said.get_all("Classifier") or ()
        if one.startswith("License ::") and one != "License :: OSI Approved"
    ]
    stated = (said.get("License") or "").strip()
    short = stated.splitlines()[0] if stated else ""
    return said.get("License-Expression") or ", ".join(classified) or short or "see its files"


def page(lock: str) -> str:
    """The list of licences for a lock."""
    rows = [
        f"| {name} | {version} | {licence(name).replace('|', '/')} |"
        for name, version in sorted(pinned(lock).items())
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    subprocess.run([*COMMAND, "--output-file", str(LOCK)], cwd=ROOT, check=True)
    PAGE.write_text(page(LOCK.read_text(encoding="utf-8")), encoding="utf-8")
