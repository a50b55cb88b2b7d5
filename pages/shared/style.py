"""The little that the theme in config.toml cannot say: space, a name, two contrasts, some words.

In the dark theme Streamlit writes white on the light accent, 2.4 : 1; dark text on it has 7 : 1.
Its ring around what the keyboard is on is half transparent, and absent around links, tick boxes,
choices and the page itself. What has the focus scrolls clear of the header and the main button's
bar, which would hide it; the tools of a grid show once the keyboard is on them.
"""

from __future__ import annotations

import json

import streamlit as st

from pages.shared.language import say

_MARK = """<svg xmlns="http://www.w3.org/2000/svg" width="150" height="32" viewBox="0 0 150 32">
<rect x="3" y="4" width="17" height="21" rx="3" fill="none" stroke="#0B8BAF" stroke-width="2.4"/>
<rect x="9" y="9" width="17" height="21" rx="3" fill="#0B8BAF" fill-opacity="0.28"
 stroke="#0B8BAF" stroke-width="2.4" stroke-dasharray="3.2 2.4"/>
<text x="36" y="24" font-family="sans-serif" font-size="20" font-weight="600"
 fill="#2F8FA8">Facsimile</text></svg>"""

_CSS = """<style>
.block-container {padding-top: 4.5rem; padding-bottom: 3rem;}
[data-testid="stMetricValue"], [data-testid="stMetricValue"] *
 {font-size: 1.7rem; white-space: normal !important; line-height: 1.25;}
h1 {font-size: 2.1rem !important; padding-bottom: 0.2rem !important;}
h3 {font-size: 1.3rem !important;}
[data-testid="stLayoutWrapper"]:has(> .st-key-action_bar) {position: sticky; bottom: 0; z-index: 9;
 padding: 0.6rem 0; background: light-dark(#FFFFFF, #10181D);
 border-top: 1px solid light-dark(#D5DEE4, #31424C);}
.st-key-language {align-items: end;}
@media (min-width: 1000px) {
[data-testid="stLayoutWrapper"]:has(> .st-key-language) {position: fixed; top: 0.85rem;
 right: 3.6rem; width: auto; z-index: 999991;}
}
[data-testid="stButtonGroup"] [role="radiogroup"] {flex-wrap: wrap;}
.st-key-review_bar > :has([data-testid="stSelectbox"]) {min-width: min(22rem, 100%);}
:is([data-testid="stCheckbox"] label, [data-testid="stMetricLabel"]) p
 {white-space: normal; overflow: visible;}
.st-key-language button {padding: 0 0.7rem; min-height: 2rem;}
:is(button[kind^="primary"]:not(:disabled), [data-tag], [data-tag] *)
 {color: light-dark(#FFFFFF, #10181D) !important;}
:is(a, button, summary, textarea, [tabindex="0"], .dvn-scroller):focus-visible,
label:has(:is([type="radio"], [type="checkbox"]):focus-visible)
 {outline: 3px solid light-dark(#0B6E8A, #7CC8DD) !important; outline-offset: 2px;}
label:has([type="radio"]:focus-visible) {outline-offset: 0;}
:is(main, .dvn-scroller):focus-visible {outline-offset: -3px;}
[class*="st-key-wide_"] {overflow-x: auto;}
[data-testid="stElementContainer"]:has(script) {display: none;}
main {scroll-padding: 4.5rem 0;}
[data-testid="stElementToolbar"]:focus-within {opacity: 1; z-index: 9; pointer-events: auto;}
</style>"""

# Streamlit's box for files knows English only, and no option of it has other words.
_FILES = """<style>[data-testid="stFileUploaderDropzone"] {
:is(button p, [data-testid$="Instructions"] > *), > input + div > * {display: none;}
button [data-testid="stMarkdownContainer"]::after {content: %s;}
[data-testid$="Instructions"]::after {content: %s; font-size: 0.875rem;}
> input + div::after {content: %s;}
}</style>"""

# Streamlit disables all tabs for an instant when a rerun's message about the row of tabs comes
# before those about each of them, and what is disabled loses the focus: it is given back.
_FOCUS = """<script>
window.givesBack ??= document.addEventListener("focusout", ({target, relatedTarget}) => {
  if (relatedTarget || target.role !== "tab" || document.querySelector(":active")) return;
  const giveBack = (tries) => {
    if (!tries || document.activeElement !== document.body || !document.hasFocus()) return;
    target.focus();
    setTimeout(giveBack, 20, tries - 1);
  };
  setTimeout(giveBack, 0, 100);
}) ?? true;
</script>"""


def apply() -> None:
    """Set the mark and the spacing for this session."""
    st.logo(_MARK, size="large")
    st.html(_CSS)
    most = st.get_option("server.maxUploadSize") / 1024
    size = say("or drop it here, up to {n:g} GB", n=most)
    words = say("Choose a file"), size, say("Drop the file here")
    st.html(_FILES % tuple(json.dumps(text, ensure_ascii=False) for text in words))
    st.html(_FOCUS, unsafe_allow_javascript=True)
