"""Facsimile's entry: page config, sign-in, navigation; nothing else."""

import streamlit as st

from pages.parts import guard, routes, style

st.set_page_config(page_title="Facsimile", page_icon=":material/content_copy:", layout="wide")
style.apply()
# without sign-in no page is listed; a script that names no pages would list its folder of them
chosen = st.navigation(routes.pages(), position="top" if guard.signed_in() else "hidden")
guard.sign_in()
chosen.run()
