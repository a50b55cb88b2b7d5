"""The workspaces, tables and workers of tests/runs."""

from tests.runs.conftest import frame, here, launcher, plan, schema, store, table

__all__ = ["frame", "here", "launcher", "plan", "schema", "store", "table"]
