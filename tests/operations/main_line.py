"""A table full of canaries on the whole line, as a process: `python -m tests.operations.main_line`.

It imports a file, tags a column, fits in worker processes (one real model, one that fails), makes a
file to take along, meets a fault on a page, asks a database that is not there, and prints metrics.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path

import pandas as pd

from core.operations.monitoring import metrics_text, readiness
from core.privacy.plan import Plan
from core.runs import operations_log
from core.runs.execution.launching.local_launcher import LocalLauncher
from core.runs.records import TableRecord
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.services import imports, planning, runs, tables
from pages.server import faults
from pages.shared import downloads
from tests.reading.files import read_table
from tests.requests_for import request_for
from tests.runs import toy
from tests.runs.workers import toy_plan

CANARIES = {
    place: f"kestrel{place}7"
    for place in ("cell", "column", "table", "file", "group", "run", "words", "fault", "password")
}
SETTINGS = {"steps": 10, "frequencies": 100, "batch": 64, "hidden": 8}


def main(folder: Path) -> None:
    """Walk the line; standard output is what `/metrics` would answer."""
    operations_log.configure()
    store = RunStore(Workspace.default())
    file = folder / f"{CANARIES['file']}.csv"
    columns = {CANARIES["column"]: [CANARIES["cell"], "b"] * 100, "age": list(range(200))}
    pd.DataFrame(columns).to_csv(file, index=False)
    frame = read_table(file).frame
    table = imports.import_frame(store, frame, name=CANARIES["table"], source=f"upload of {file}")
    table = tables.change_groups(store, table, {CANARIES["column"]: CANARIES["group"]})
    store.attest(table.id)
    request = RunRequest(model="pearl", epsilon=1.0, settings=dict(SETTINGS))
    plan = planning.make_plan(table.schema, table.n, request)
    more = {"name": CANARIES["run"], "rows": 20}
    _work(store, LocalLauncher(store), table, plan, **more)
    words = {"without_privacy": CANARIES["words"], "shift_words": CANARIES["words"]}
    failing = toy_plan(table, epsilon=0.5, fail_at=1)
    _work(store, LocalLauncher(store, command=toy.COMMAND), table, failing, **more, **words)
    downloads._made(lambda: CANARIES["cell"], "", table.id, lambda: True)
    meet_faults()
    sys.stdout.write(metrics_text(store).decode())
    os.environ["FACSIMILE_DATABASE"] = f"postgresql://u:{CANARIES['password']}@127.0.0.1:1/x"
    sys.stdout.write(f"{readiness(lambda: RunStore(Workspace.default()), lambda: None)}\n")


def meet_faults() -> None:
    """What a page and a library say where something goes wrong."""
    with faults.plain_errors():
        raise ValueError(CANARIES["fault"])
    logging.getLogger("some.library").warning("read %s", CANARIES["cell"])


def _work(
    store: RunStore, launcher: LocalLauncher, table: TableRecord, plan: Plan, **asked: object
) -> None:
    run = runs.start(store, launcher, table.id, plan, request_for(plan, **asked))
    end = time.monotonic() + 120
    while store.run(run.id).state.live and time.monotonic() < end:
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
