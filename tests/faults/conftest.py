"""The workspaces, tables and workers of tests/runs, for what goes wrong around them."""

from tests.runs.conftest import (
    compared_table,
    frame,
    here,
    launcher,
    plan,
    schema,
    store,
    table,
)

__all__ = ["compared_table", "frame", "here", "launcher", "plan", "schema", "store", "table"]
