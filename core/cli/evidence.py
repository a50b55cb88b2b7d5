"""evidence: what those need who must judge a release of the workspace, as one ZIP."""

from __future__ import annotations

import argparse
from pathlib import Path

from core.cli.common import print_json
from core.export.evidence_pack import packed
from core.export.guides import sheets
from core.language.catalogue import language
from core.runs.storage.reviews.inside_views import record_view
from core.runs.storage.reviews.notes import RELEASE_TERMS, set_release_terms
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services.evidence.documents import documents
from core.services.export import dictionary_text
from core.services.synthesis.table_files import out_path
from core.writing.whole_files import replacing


def evidence(options: argparse.Namespace) -> int:
    """Keep what was said of the release, and write the pack."""
    out = out_path(options.out, endings=(".zip",), inputs=[])
    given = {name: getattr(options, name) for name in RELEASE_TERMS}
    terms = {name: str(value) for name, value in given.items() if value is not None}
    with RunStore(Workspace.default()) as store:
        run = store.run(Path(options.run).name)
        about = {"table_id": run.table_id, "run_id": run.id, "author": ""}
        if terms:
            set_release_terms(store, **about, terms=terms)
        found = documents(store, run, options.view)
        if options.view == "inside":  # whoever reads it has looked inside
            record_view(store, **about)
        files, spoken = {"dictionary.csv": dictionary_text(store, run)}, language(options.language)
    with replacing(out) as file:
        file.write(packed(found, files, view=options.view, language=spoken))
    fields = {field.question: field for sheet in sheets(found) for field in sheet.fields}
    to_fill = {question: field.who for question, field in fields.items() if not field.answer}
    for question, who in to_fill.items():
        print(f"to be filled in by {who}: {question}")
    print(f"wrote {out}, for {options.view}: {len(fields) - len(to_fill)} of {len(fields)} answers")
    if options.json:
        print_json({"out": str(out), "view": options.view, "to_fill_in": to_fill})
    return 0
