"""A sample of the corpus for quick runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import parquet_files, text_files, workbook_files
from tests.hostile.test_hostile import check, measured

pytestmark = pytest.mark.slow

EVERY = 9  # of the files that are made quickly


def test_a_sample_is_tables_or_sentences_within_limits(tmp_path: Path) -> None:
    sources = (text_files.files, workbook_files.files, parquet_files.files)
    files = [file for source in sources for file in list(source())[::EVERY] if not file.own]
    assert len(files) > 25
    results = measured(files, tmp_path)
    faults = [fault for file in files for fault in check(file, results[file.name])]
    assert not faults, "\n".join(faults)
