"""What tests of hidden distributions (α-LMDP) came to: on Review with pictures, on Download."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.figures import marginal_shift
from core.runs.records import RunRecord
from core.services import limits
from pages.shared.language import said, say, to_say
from pages.shared.plain import plain
from pages.shared.widgets import Badge
from pages.shared.workspace_store import store
from pages.tables.hidden_columns import NOT_PEOPLE

CERTIFICATE_BADGES = {
    True: Badge(to_say("Certificate granted"), ":material/verified:", "green"),
    False: Badge(to_say("Certificate not granted"), ":material/block:", "red"),
}
CHECK_BADGES = {
    True: Badge(to_say("Inside check passed"), ":material/check:", "green"),
    False: Badge(to_say("Inside check failed"), ":material/warning:", "red"),
}


def render(run: RunRecord, report: dict[str, Any]) -> None:
    """A card a group: the result in words, the certificate, the tests, and the pictures."""
    if run.plan.protection is None:
        return
    st.subheader(say("Hidden distributions"), anchor=False)
    certified = limits.paid_certificates(store(), run)
    checks = {check["group"]: check for check in report.get("protection", [])}
    for group, names in run.plan.protection.groups.items():
        with st.container(border=True):
            _group(group, names, certified.get(group), checks.get(group))
    st.caption(f":material/info: {said(NOT_PEOPLE)}")


def _group(
    group: str,
    names: tuple[str, ...],
    paid: dict[str, Any] | None,
    check: dict[str, Any] | None,
) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(group)}**: {plain(', '.join(names))}")
        if paid is not None:
            CERTIFICATE_BADGES[paid["granted"]].show()
        if check is not None:
            CHECK_BADGES[check["differs"]].show()
    if check is not None:
        st.markdown(plain(said(marginal_shift.verdict_words(check))))
        st.caption(
            say(
                "Two-sample test p = {two_sample:.3f}, Stein test p = {stein:.3f}. Both must be at "
                "most {alpha:g}. These p-values come from real rows without noise: do not share "
                "them.",
                two_sample=check["p_two_sample"],
                stein=check["p_stein"],
                alpha=check["alpha"],
            )
        )
    if paid is not None:
        st.caption(plain(said(marginal_shift.certificate_words(paid))))
