"""Everything that leaves the house from one run, as bytes by name; for comparing neighbours.

The run is a real one, from import over the worker to the downloads, but what the door to rows
releases is fixed: it reads the same encoded rows whatever table is imported, and its noise repeats.
So whatever differs between two tables came past the door.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import re
import secrets
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.export.evidence_pack import packed
from core.export.page_html import page
from core.language.catalogue import ENGLISH
from core.models.shaped_output import Shape, ShapeFacts
from core.models.steps.training import training_loop
from core.operations.monitoring import metrics_text
from core.privacy.guarded import PrivateTable
from core.privacy.meter import Meter
from core.privacy.plan import Plan
from core.privacy.summation import Summation
from core.runs.events import State
from core.runs.execution import attempts, sampling_process, worker
from core.runs.execution.launching.launcher import SampleRequest, facts_name
from core.runs.execution.reporter import Pace
from core.runs.request import RunRequest
from core.runs.storage.store import RunStore
from core.runs.workspace import Workspace
from core.schema.column import Column, Kind
from core.schema.schema import Domain, Schema
from core.services import export, imports, planning, recipe, reviews, tables
from core.services.evidence.documents import documents
from core.services.shaping import DrawnTable
from pages.shared import shown_code
from tests.privacy.deterministic_noise import DeterministicNoise
from tests.requests_for import request_for
from tests.runs import toy

ROWS = 240
TIMES = ("date", "ledger_entry", "ledger_hash")  # of a certificate: the chain's hash holds a time
DECLARED = (
    Column(name="key", kind=Kind.IDENTIFIER, dtype="int64"),
    Column(name="remark", kind=Kind.TEXT, missing=True),
    Column(name="age", kind=Kind.INTEGER, low=0, high=130, step=1, dtype="int64"),
    Column(
        name="cost", kind=Kind.NUMBER, low=0, high=80_000, step=0.5, scale="log", spikes=(0.0,),
        missing=True, dtype="float64",
    ),
    Column(name="ward", kind=Kind.CATEGORY, categories=("a", "b", "c", "d"), missing=True),
    Column(
        name="day", kind=Kind.DATETIME, low=-86_400.0 * 365, high=86_400.0 * 730, step=86_400,
        dtype="datetime64[us]",
    ),
    Column(name="ill", kind=Kind.ORDERED, categories=("no", "yes")),
)  # fmt: skip
NEIGHBOURS: dict[str, dict[str, object]] = {
    "an extreme": {"age": 130, "cost": 79_999.5, "day": pd.Timestamp("1971-12-30")},
    "beyond the bounds": {"age": 999, "cost": 1e9},
    "a rare category": {"ward": "d"},
    "a category nobody declared": {"ward": "the moon"},
    "a missing value": {"cost": np.nan, "ward": None, "remark": None},
    "all distinct": {"key": 5_000, "remark": "remark 5000 of them all"},
}
SPELLED: dict[str, dict[str, object]] = {
    "the longest text": {"remark": "=" * 5_000, "ward": "a" * 3_000},
    "another spelling": {"ward": " A", "ill": "YES", "remark": "é\u200b\n=1+1"},
    "a word among numbers": {"key": "unknown", "age": "old", "cost": "1,5"},
    "another date format": {"day": "31.12.1999 23:59"},
    "a mark of missing": {"age": -99, "cost": -99.0, "ward": "N/A", "ill": "?"},
}
EVERYTHING: dict[str, object] = {
    name: value for change in NEIGHBOURS.values() for name, value in change.items()
}


def people() -> pd.DataFrame:
    """240 rows: one key and one remark stand twice, no value is missing, nobody is in ward d."""
    rng = np.random.default_rng(3)
    ill = rng.random(ROWS) < 0.3
    key = np.arange(1_000, 1_000 + ROWS)
    key[17] = key[18]
    return pd.DataFrame(
        {
            "key": key,
            "remark": [f"remark {number} of them all" for number in key],
            "age": np.clip(rng.normal(np.where(ill, 65, 40), 12), 0, 99).astype(int),
            "cost": np.where(rng.random(ROWS) < 0.6, 0.0, np.round(rng.lognormal(6, 1, ROWS))),
            "ward": rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1]),
            "day": pd.to_datetime(rng.integers(0, 366, ROWS), unit="D").astype("datetime64[us]"),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def neighbour(change: dict[str, object]) -> pd.DataFrame:
    """The same rows but for record 17."""
    rows = people()
    for name, value in change.items():
        if isinstance(value, str):
            rows[name] = rows[name].astype("str")  # as a reader makes of a column with a word
        rows.loc[17, name] = value
    return rows


class Released:
    """The door to rows with its output fixed, and all other randomness repeatable."""

    def __init__(self, domain: Domain) -> None:
        layout = Layout(domain)
        self._codes: Codes = Codec(layout.domain).encode(layout.to_model(people()))

    def __call__(
        self,
        codes: Codes,
        domain: Domain,
        plan: Plan,
        *,
        people: object,
        meter: Meter,
        summation: Summation | None,
    ) -> PrivateTable:
        assert len(codes) == len(self._codes) and people is None
        noise = DeterministicNoise(5)
        return PrivateTable(
            self._codes, domain, plan, noise_source=noise, meter=meter, summation=summation
        )


def repeat(patch: pytest.MonkeyPatch) -> None:
    """Let all that is drawn come again, and the clock decide nothing."""
    # One stream each: modules that are imported for the first time draw from some of them too.
    names, system = random.Random(12), random.Random(13)
    patch.setattr(secrets, "randbits", random.Random(11).getrandbits)
    patch.setattr(secrets, "token_hex", lambda n=32: names.randbytes(n).hex())
    patch.setattr(os, "urandom", system.randbytes)
    # Else the clock decides which events there are.
    patch.setattr(Pace, "due", lambda _: True)
    patch.setattr(training_loop, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    patch.setattr(Meter, "forfeit", lambda *_: None)  # the claims of a real run are wanted


def leaving(
    model: str,
    rows: pd.DataFrame,
    settings: dict[str, Any],
    home: Path,
    patch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> dict[str, bytes]:
    """Run the whole line on a table and collect what leaves, by name."""
    repeat(patch)
    with RunStore(Workspace(home)) as store:
        table = imports.import_frame(store, rows, name="people.csv", source="t", account_id="p1")
        inside = {c.name: {"note": c.note, "proposal": c.proposal} for c in table.schema.columns}
        columns = [{**column.model_dump(), **inside[column.name]} for column in DECLARED]
        schema = Schema.model_validate({"columns": columns, "target": "ill"})
        table = store.save_schema(table.id, schema)
        table = tables.change_holdout(store, table, 0.0)
        store.attest(table.id)
        patch.setattr(attempts, "PrivateTable", Released(schema.domain()))
        plan = planning.make_plan(
            schema,
            table.n,
            RunRequest(model=model, epsilon=1.0, settings=settings, review=0.1),
        )
        run = store.create_run(
            table.id, plan, request_for(plan, rows=50, seed=7, device="cpu"), schema=schema
        )
        store.set_state(run.id, State.RUNNING, "Starting.", expect=(State.QUEUED,))
        mask = os.umask(0o077)
        capfd.readouterr()
        try:
            worker.main([run.id, "--home", str(home)], compare=toy.compare)
        finally:
            os.umask(mask)
        spoken = capfd.readouterr()
        found = _collected(store, run.id) | _drawn(store, run.id) | _machines(store)
        return found | {"worker.log": (spoken.out + spoken.err).encode()}


def _collected(store: RunStore, run_id: str) -> dict[str, bytes]:
    run = store.run(run_id)
    assert run.state is State.DONE and run.message == "Done.", (run.message, run.error)
    certificate = reviews.privacy_certificate(store, run_id) or {}
    outside = reviews.report(store, run_id, "outside")
    assert certificate["private"] and outside is not None
    timeless = {name: value for name, value in certificate.items() if name not in TIMES}
    events = [(e.kind, e.data) for e in store.journal.events(run_id) if e.kind != "device"]
    found = {
        "certificate": export.certificate_text(timeless).encode(),
        "dictionary": export.domain_dictionary(run.schema.as_proposed().domain())
        .to_csv(index=False)
        .encode(),
        "outside.json": json.dumps(outside).encode(),
        "outside.html": page(outside, run.title, claim=certificate["claim"]).encode(),
        "events": json.dumps(events).encode(),
        "meter.json": store.artefacts(run_id).path("meter.json").read_bytes(),
        "plan": run.plan.model_dump_json().encode(),
        "names": " ".join(
            export.file_name(run, ending)
            for ending in ("csv", "parquet", "certificate.json", "dictionary.csv", "model.zip")
        ).encode(),
    }
    for escaped in (False, True):
        table = export.reviewed_file(store, run, format="csv", escape_formulas=escaped)
        found[f"table.csv, escaped: {escaped}"] = table.read_bytes()
        found[f"dictionary.csv, escaped: {escaped}"] = export.dictionary_text(
            store, run, escaped=escaped
        ).encode()
    found["table.parquet"] = export.reviewed_file(store, run, format="parquet").read_bytes()
    found["run code"] = repr(shown_code.of_run(run)).encode()
    told = documents(store, run, "outside")
    told["certificate.json"] = timeless
    pack = packed(told, {}, view="outside", language=ENGLISH)
    with zipfile.ZipFile(io.BytesIO(pack)) as archive:
        found |= {f"evidence/{name}": archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(io.BytesIO(export.model_zip(store, run))) as archive:
        found |= {f"model/{name}": archive.read(name) for name in archive.namelist()}
    return found


def _drawn(store: RunStore, run_id: str) -> dict[str, bytes]:
    """Rows drawn anew from the saved model, as they are asked for on Download and packed."""
    run = store.run(run_id)
    certificate = reviews.privacy_certificate(store, run_id) or {}
    timeless = {name: value for name, value in certificate.items() if name not in TIMES}
    shape = Shape(where=("ill=yes",), fill_missing=True)
    found = {}
    for asked in (
        SampleRequest(rows=9, seed=3, format="parquet"),
        SampleRequest(rows=9, seed=3, escape_formulas=True, shape=shape),
    ):
        name = f"drawn.{asked.format}"
        words = [run_id, "--home", str(store.workspace.home), "--name", name]
        mask = os.umask(0o077)
        try:
            assert sampling_process.main([*words, "--request", asked.model_dump_json()]) == 0
        finally:
            os.umask(mask)
        exports = store.artefacts(run_id).within("exports")
        found[name] = exports.local(name).read_bytes()
        found[f"facts of {name}"] = exports.local(facts_name(name)).read_bytes()
        code = recipe.sample_code(run, asked, [3], out=export.file_name(run, asked.format))
        found[f"code of {name}"] = repr(code).encode()
    facts = ShapeFacts.model_validate_json(found["facts of drawn.csv"])
    packed, drawn = io.BytesIO(), DrawnTable(exports.local("drawn.csv"), facts)
    domain = run.schema.as_proposed().domain()
    about = {"domain": domain, "schema": run.schema, "certificate": timeless}
    export.pack(packed, [drawn], name="x.csv", escaped=True, **about)
    with zipfile.ZipFile(packed) as archive:
        return found | {f"zip/{name}": archive.read(name) for name in archive.namelist()}


def _machines(store: RunStore) -> dict[str, bytes]:
    """What the ledger and a Prometheus server are told, without times and what holds one."""
    entries = [
        entry.model_dump(mode="json", exclude={"time", "hash", "previous"})
        for entry in store.ledger.entries()
    ]
    lines = [
        line
        for line in metrics_text(store).splitlines()
        if not re.search(rb"process_|_seconds", line)
    ]
    return {"ledger": json.dumps(entries).encode(), "metrics": b"\n".join(lines)}
