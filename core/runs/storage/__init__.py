"""What is kept on disk: the workspace, its database, tables, runs and artefacts."""
