"""What a run says while it waits for a cluster, and why it could not start there."""

from __future__ import annotations

__all__ = [
    "ABSENT",
    "EARLY",
    "HANDING_OVER",
    "IN_QUEUE",
    "NOT_STARTED",
    "UNREACHABLE",
    "lacking",
]

HANDING_OVER = "Waiting to be handed to the cluster."
IN_QUEUE = "Waiting in the cluster's queue. It starts as soon as a machine has room for it."
ABSENT = (
    "Waiting: Ray is not installed beside this server, so the cluster cannot be asked. Waiting "
    "spends nothing. Whoever runs this server installs it: pip install -r requirements-cluster.txt"
)
UNREACHABLE = (
    "Waiting: the cluster cannot be reached. Waiting spends nothing. It is asked again whenever "
    "this run is looked at; whoever runs this server finds the cause in cluster.log in the "
    "workspace."
)

NOT_STARTED = "The cluster could not start the worker. Nothing was spent by this start."
EARLY = (
    "The cluster could not start the worker: it ended before it began. Nothing was spent by this "
    "start. See worker.log in the run's folder."
)


def lacking(what: str) -> str:
    """Of a machine without a variable or a folder that a worker needs, named by `what`."""
    return (
        f"The cluster could not start the worker: a machine of it lacks {what}. Nothing was spent "
        "by this start."
    )
