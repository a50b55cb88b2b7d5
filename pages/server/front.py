"""What every visit begins with: page config, sign-in, navigation; nothing else."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.server import faults, guard, routes, uploads
from pages.shared import language, style

ICON = Path(__file__).with_name("icon.png")

st.set_page_config(page_title="Facsimile", page_icon=str(ICON), layout="wide")
with faults.plain_errors():
    style.apply()
    # without sign-in no page is listed; a script that names no pages would list its folder of them
    chosen = st.navigation(routes.pages(), position="top" if guard.signed_in() else "hidden")
    language.choose()
    guard.sign_in()
    guard.who_is_here()
    if chosen.url_path:  # files wait on the first page alone
        uploads.free_uploads()
    chosen.run()
