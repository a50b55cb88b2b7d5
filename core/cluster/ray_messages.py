"""What a run says while it waits for a cluster, and why it could not start there."""

from __future__ import annotations

from core.message import Message

HANDING_OVER = "Waiting to be sent to the cluster."
IN_QUEUE = "Waiting in the cluster's queue. It starts as soon as a machine is free."
ABSENT = (
    "Waiting: the cluster cannot be used because Ray is not installed on this server. Waiting "
    "spends nothing. Whoever runs this server can install it: pip install -r "
    "requirements-cluster.txt"
)
UNREACHABLE = (
    "Waiting: the cluster cannot be reached. Waiting spends nothing. Facsimile tries again "
    "whenever somebody opens this page; the cause is in cluster.log in the workspace."
)

NOT_STARTED = "The cluster could not start the run. This attempt spent nothing."
EARLY = (
    "The cluster could not start the run: its worker ended at once. This attempt spent nothing. "
    "See worker.log in the run's folder."
)


def machine_lacks(what: str) -> Message:
    """Of a machine without a variable or a folder that a worker needs, named by `what`."""
    return Message(
        "The cluster could not start the run: one of its machines lacks {what}. This attempt spent "
        "nothing.",
        what=what,
    )
