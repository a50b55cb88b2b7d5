"""Which tests were skipped: their names for pytest, or why, and whether there are too many.

python .ci/skipped.py REPORT.xml                  names, a line each
python .ci/skipped.py --most N REPORT.xml …       reasons; fails above N skips
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree


def skipped(report: Path) -> Iterator[tuple[str, str]]:
    """Name and reason of each test that a JUnit report calls skipped; none without the file."""
    if not report.exists():
        return
    for case in ElementTree.parse(report).iter("testcase"):
        found = case.find("skipped")
        if found is not None:
            file = case.attrib["classname"].replace(".", "/")
            yield f"{file}.py::{case.attrib['name']}", found.attrib.get("message", "")


def main(arguments: list[str]) -> int:
    """Print and return the exit status."""
    if arguments[0] != "--most":
        for name, _ in skipped(Path(arguments[0])):
            print(name)
        return 0
    most, reports = int(arguments[1]), [Path(name) for name in arguments[2:]]
    reasons = Counter(reason for report in reports for _, reason in skipped(report))
    for reason, count in reasons.most_common():
        print(f"{count} skipped: {reason}")
    if reasons.total() > most:
        print(f"{reasons.total()} tests were skipped, and {most} may be.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
