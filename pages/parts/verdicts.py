"""Verdicts on hidden distributions: for Review, with pictures, and for Download."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.figures.column import column_figure, describe_column
from core.figures.marginal_shift import verdict_words
from core.runs.storage.records import RunRecord
from core.services import reviews
from pages.parts import shared
from pages.parts.tagging import NOT_PEOPLE


def refused(run: RunRecord) -> list[str]:
    """Names of groups whose certificate or check said no."""
    certificate = reviews.privacy_certificate(shared.store(), run.id)
    lmdp = None if certificate is None else certificate.get("lmdp")
    return [v["group"] for v in (lmdp or {}).get("verdicts", []) if not v["granted"]]


def render(run: RunRecord, report: dict[str, Any]) -> None:
    """A card a group: the verdict in words, the certificate, the tests, and the pictures."""
    if run.plan.protection is None:
        return
    st.subheader("Hidden distributions", anchor=False)
    certificate = reviews.privacy_certificate(shared.store(), run.id) or {}
    paid = {v["group"]: v for v in (certificate.get("lmdp") or {}).get("verdicts", [])}
    checks = {check["group"]: check for check in report.get("protection", [])}
    for group, names in run.plan.protection.groups.items():
        with st.container(border=True):
            _group(group, names, paid.get(group), checks.get(group), report)
    st.caption(f":material/info: {NOT_PEOPLE}")


def _group(
    group: str,
    names: tuple[str, ...],
    paid: dict[str, Any] | None,
    check: dict[str, Any] | None,
    report: dict[str, Any],
) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{group}**: {', '.join(names)}")
        if paid is not None and "count" in paid:
            good = paid["granted"]
            st.badge(
                "Certificate granted" if good else "Certificate refused",
                icon=":material/verified:" if good else ":material/block:",
                color="green" if good else "red",
            )
        if check is not None:
            good = check["differs"]
            st.badge(
                "Inside check passed" if good else "Inside check failed",
                icon=":material/check:" if good else ":material/warning:",
                color="green" if good else "red",
            )
    if check is not None:
        st.markdown(verdict_words(check))
        st.caption(
            f"Two-sample test p = {check['p_two_sample']:.3f}, Stein test p = "
            f"{check['p_stein']:.3f}; both must be at most {check['alpha']:g}. Made from real rows "
            "without noise: do not quote these p-values outside."
        )
    if paid is not None and "count" in paid:
        st.caption(
            f"Certificate: about {min(max(paid['count'], 0), paid['groups']):.0f} of "
            f"{paid['groups']} groups of 128 real rows noticed the difference (counted with "
            "noise); more than "
            f"{paid['threshold']:.1f} were needed. "
            f"It cost ε = {paid['epsilon']:g} and may be shown to others."
        )
    shown = [name for name in names if name in report["columns"]]
    with st.expander("Real and released, one above the other", icon=":material/stacked_bar_chart:"):
        places = st.columns(3)
        for i, name in enumerate(shown):
            with places[i % 3]:
                st.markdown(name)
                st.plotly_chart(
                    column_figure(report, name),
                    key=f"hidden_{group}_{name}",
                    alt=describe_column(report, name),
                    config={"displayModeBar": False},
                )
