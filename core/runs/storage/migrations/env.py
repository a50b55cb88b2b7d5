"""What Alembic runs to come to the database: the connection is `current.migrating`'s."""

from alembic import context

from core.runs.storage.migrations.current import METADATA

if hasattr(context, "config"):  # only while Alembic runs it
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=list(METADATA)
    )
    context.run_migrations()
