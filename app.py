"""Facsimile's entry: page config, sign-in, navigation; nothing else."""

import streamlit as st

from pages.parts import guard, routes, style

st.set_page_config(page_title="Facsimile", page_icon=":material/content_copy:", layout="wide")
style.apply()
guard.sign_in()
st.navigation(routes.pages(), position="top").run()
