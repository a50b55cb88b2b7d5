"""Facsimile's entry: the server with its guards, around the pages."""

import streamlit as st

from pages.server import endpoints, middleware

# beside `front.py` lies no folder of pages, so the server lists and runs none by itself
app = st.App(
    "pages/server/front.py",
    middleware=middleware.MIDDLEWARE,
    routes=endpoints.ROUTES,
    lifespan=endpoints.lifespan,
)
