"""Alembic's environment: it uses the connection that `current.migrating` opened."""

from alembic import context

from core.runs.storage.migrations.current import METADATA

if hasattr(context, "config"):  # only while Alembic runs it
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=list(METADATA)
    )
    context.run_migrations()
