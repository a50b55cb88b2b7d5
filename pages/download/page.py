"""Download: the synthetic table, its certificate, the model and a data dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import streamlit as st

from core.runs.execution.launching.launcher import SampleRequest
from core.runs.execution.synthetic_label import ENDING, synthetic_label
from core.runs.records import RunRecord
from core.schema.rounding_up import round_up
from core.services import discussion, export, limits, recipe, reviews
from core.services.inference import replicas, take_along
from core.services.linking.unlinking import file_names
from core.writing.excel import fits_excel
from pages.download import evidence, shaped_rows
from pages.review import exposure, report_view
from pages.server import guard, routes
from pages.shared import downloads, glossary, shown_code
from pages.shared import widgets as shared
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.workspace_store import store

Format = Literal["csv", "xlsx", "parquet"]
FORMATS: dict[Format, str] = {"csv": "CSV", "xlsx": "Excel", "parquet": "Parquet"}
MIME = {
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
}
LMDP_RESULTS = {
    True: to_say("granted"),
    False: to_say("not granted"),
    None: to_say("not tested privately"),
}


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header(
        say("Download"), say("Download the synthetic table together with its privacy certificate.")
    )
    run = shared.finished_run(say("No run has finished yet, so there is nothing to download."))
    if run is None:
        return
    if not shared.is_finished(run):
        shared.unfinished(run)
        return
    shared.privacy_badge(run)
    if not run.private:
        st.error(
            say("This table has no differential privacy. Handle it like the real one."),
            icon=":material/warning:",
        )
    named = limits.hidden_columns(run)
    if named:
        st.info(
            say(
                "**{columns}**: hidden on purpose, so their distribution differs from the real "
                "one. Pass the data dictionary on with the table, because it says so.",
                columns=plain(", ".join(named)),
            ),
            icon=":material/visibility_off:",
        )
    if not _hidden(run) or not exposure.seen(run) or not _approved(run):
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        asked, seeds = _table(run)
        if run.private:
            evidence.section(run)
    with right:
        _papers(run, escaped=asked.escape_formulas)
    _code(run, asked, seeds)


def _hidden(run: RunRecord) -> bool:
    """Whether hidden distributions allow a download, if need be after a word of confirmation."""
    groups = reviews.refused_groups(store(), run)
    if not groups:
        return True
    st.error(
        say(
            "The check of the hidden distributions failed or is missing for: {groups}. The table "
            "may reveal how these columns are distributed in the real one. Train again, or accept "
            "this.",
            groups=plain(", ".join(groups)),
        ),
        icon=":material/block:",
    )
    return st.toggle(
        say("I accept that these distributions may be revealed"),
        key=f"accept_{run.id}_{groups!r}",  # for this run alone
    )


def _approved(run: RunRecord) -> bool:
    """Whether the reviews that the steward asked for are there."""
    waits = reviews.waits_for(store(), run)
    if waits:
        reason = plain(said(waits))
        st.error(
            say("This table is waiting for review. {reason}", reason=reason),
            icon=":material/block:",
        )
        routes.button(say("Go to the review"), "review", primary=True, run=run.id)
    picked = discussion.picked(store(), run.table_id)
    if picked is not None and picked[0] != run.id:
        st.info(
            say(
                "{name} picked another run of this table for release.",
                name=plain(picked[1]),
            ),
            icon=":material/trophy:",
        )
    return not waits


def _table(run: RunRecord) -> tuple[SampleRequest, tuple[int, ...]]:
    """The table itself; what is asked of it, and the seeds of several."""
    linked = run.schema.linked
    st.subheader(say("The tables") if linked else say("The table"), anchor=False)
    rows = st.number_input(
        say("People") if run.schema.walked else say("Rows"),
        1,
        10_000_000,
        run.rows,
        help=say(
            "For any other number than was reviewed, new rows are generated. This costs no privacy."
        ),
    )
    format: Format = "csv"
    if linked:
        names = ", ".join(plain(f"{name}.csv") for name in file_names(run.schema))
        words = say("One ZIP with {names}, whose keys match.", names=names)
        st.caption(f":material/folder_zip: {words}")
    else:
        formats = [f for f in FORMATS if f != "xlsx" or fits_excel(rows, len(run.schema.columns))]
        format = st.radio(say("Format"), formats, format_func=FORMATS.__getitem__, horizontal=True)
    escape = format == "csv" and st.checkbox(
        say("Make the file safe to open in a spreadsheet"),
        value=True,
        help=say(
            "Puts an apostrophe in front of text that a spreadsheet would run as a formula (the "
            "data dictionary mentions it), and marks the file so that accented letters look "
            "right. Turn this off for programs that read the file as it is."
        ),
    )
    shape, seeds = shaped_rows.choose(run)
    drawn: Format = "parquet" if linked else format  # that a ZIP of linked files is made of
    asked = SampleRequest(rows=rows, format=drawn, escape_formulas=escape, shape=shape)
    if seeds or not shape.plain or rows != run.rows:
        shaped_rows.offer(run, asked, seeds)
    else:
        _reviewed(run, format, escape=escape, ending="zip" if linked else format)
    return asked, seeds


def _reviewed(run: RunRecord, format: Format, *, escape: bool, ending: str) -> None:
    """The button for the rows as they were reviewed."""
    name = export.file_name(run, ending)
    downloads.offer(
        say("Download {name}", name=name),
        lambda: export.reviewed_file(
            store(), run, format=format, escape_formulas=escape
        ).read_bytes(),
        table_id=run.table_id,
        file_name=name,
        reviewed=run,
        mime=MIME[ending],
        type="primary",
        icon=":material/download:",
    )
    st.caption(say("These are exactly the rows that were reviewed."))


def _papers(run: RunRecord, *, escaped: bool) -> None:
    st.subheader(say("Documents"), anchor=False)
    certificate = reviews.privacy_certificate(store(), run.id)
    if certificate is not None:
        downloads.offer(
            say("Privacy certificate (JSON)"),
            lambda: export.certificate_text(  # as it is true when the button is pressed
                reviews.privacy_certificate(store(), run.id) or {}
            ),
            table_id=run.table_id,
            file_name=export.file_name(run, "certificate.json"),
            icon=":material/verified_user:",
            width="stretch",
        )
        _label(run, certificate)
    downloads.offer(
        say("Data dictionary (CSV)"),
        lambda: export.dictionary_text(store(), run, escaped=escaped),
        table_id=run.table_id,
        file_name=export.file_name(run, "dictionary.csv"),
        icon=":material/menu_book:",
        width="stretch",
    )
    _for_analysts(run)
    if run.plan.protection is not None and run.plan.protection.shift:
        st.caption(
            say(
                ":material/deployed_code_alert: The trained model cannot be downloaded, because it "
                "contains the real hidden distributions and the shift."
            )
        )
    else:
        downloads.offer(
            say("Trained model (ZIP)"),
            lambda: export.model_zip(store(), run),
            table_id=run.table_id,
            reviewed=run,
            file_name=export.file_name(run, "model.zip"),
            icon=":material/deployed_code:",
            help=say(
                "Weights and settings. As private as the table: anyone who has it can generate "
                "more rows."
            ),
            width="stretch",
        )
    if certificate is not None:
        with st.expander(
            say("Read the certificate"), icon=":material/verified_user:", expanded=True
        ):
            _certificate(run, certificate)


def _label(run: RunRecord, certificate: dict[str, Any]) -> None:
    """The file that says of a CSV file that it is synthetic."""
    label = synthetic_label(certificate, run.id)
    downloads.offer(
        say("Synthetic data label (JSON)"),
        lambda: export.certificate_text(label),
        table_id=run.table_id,
        file_name=f"{export.file_name(run, 'csv')}.{ENDING}",
        icon=":material/label:",
        help=say(
            "Says that the table is synthetic. Keep it beside a CSV file; Parquet and Excel "
            "files hold it."
        ),
        width="stretch",
    )


def _for_analysts(run: RunRecord) -> None:
    """The table with replicas, once there are some."""
    if run.private and not run.schema.linked and replicas.complete(store(), run.id):
        downloads.offer(
            say("For analysts: with replicas (ZIP)"),
            lambda: take_along.packed(store(), run),
            table_id=run.table_id,
            reviewed=run,
            file_name=export.file_name(run, "with-replicas.zip"),
            icon=":material/error_med:",
            help=say("Five replicas, and functions that say how far a figure may be off."),
            width="stretch",
        )


def _code(run: RunRecord, asked: SampleRequest, seeds: Sequence[int]) -> None:
    """This run as a command and as Python, and rows as they are asked for above."""
    # a ZIP of the command line holds CSV files
    zipped = asked.format == "csv" and (bool(seeds) or not asked.shape.plain)
    zipped = zipped or run.schema.linked
    out = export.file_name(run, "zip" if zipped else asked.format)
    rows = recipe.sample_code(run, asked, seeds, out=out)
    codes = {
        say("Repeat this run"): shown_code.of_run(run),
        say("Generate rows from this model"): rows,
    }
    shown_code.show(codes, table_id=run.table_id)


def _certificate(run: RunRecord, certificate: dict[str, Any]) -> None:
    report_view.disputed(run)
    if certificate.get("selection"):
        st.warning(plain(said(certificate["selection"])), icon=":material/rule:")
    lmdp = certificate.get("lmdp")
    if lmdp is not None:
        result = said(LMDP_RESULTS[lmdp["granted"]])
        st.markdown(say("**Hidden distributions (α-LMDP)**: {result}.", result=result))
        st.caption(plain(said(lmdp["statement"])))
        for sentence in lmdp.get("attack", ()):
            st.caption(plain(said(sentence)))
    claim = run.guarantee
    if claim is None or not claim.private:
        st.markdown(say("**This table has no differential privacy.**"))
    else:
        st.markdown(
            say(
                "This table satisfies differential privacy with **ε = {epsilon:.4g}** and "
                "**δ = {delta:.3g}**.",
                epsilon=round_up(claim.epsilon, ".4g"),
                delta=round_up(claim.delta, ".3g"),
            ),
            help=glossary.entry("ε", "δ"),
        )
        for sentence in certificate.get("coverage", ()):
            st.caption(plain(said(sentence)))
        with st.popover(say("Conditions"), icon=":material/checklist:"):
            relation = plain(said(certificate.get("relation", "")))
            st.markdown(say("- Neighbouring tables: {relation}", relation=relation))
            st.markdown(
                say(
                    "- Counted as replace-one, ε = {epsilon:.4g}. Accounting: {method!t}.",
                    epsilon=round_up(claim.epsilon_replace, ".4g"),
                    method=claim.method,
                ),
                help=glossary.entry("replace-one", "PLD"),
            )
            opinion = certificate.get("second_opinion")
            if opinion is not None and opinion["agrees"] is not False:  # else it is a condition
                st.markdown(f"- {plain(said(opinion['statement']))}")
            for condition in certificate.get("conditions", claim.conditions):
                st.markdown(f"- {plain(said(condition))}")
