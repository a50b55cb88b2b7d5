"""Workers and the talk with Ray, with the toy model and with nodes that are machines of their own.

All nodes of a test are processes of this machine. Each has a name, which its workers take for that
of their machine: so whether a worker lives is told by heartbeats alone, as between machines.
"""

import os
import socket
import sys

from core.cluster import ray_queue, takeover
from core.runs.execution import worker
from core.runs.storage.processes import process
from tests.runs import toy

NODE = "TOY_NODE"
MARKS = "TOY_MARKS"  # with it the toy releases a sum
STALE_SECONDS = 6.0  # instead of a minute
COMMAND = ("-m", "tests.cluster.toy_node", "worker")
QUEUE = ("-m", "tests.cluster.toy_node", "queue")


def find(model_id: str) -> toy.Toy:
    if MARKS not in os.environ:
        return toy.find(model_id)
    # late: it needs torch
    from tests.cluster.summing import Summing

    return Summing()


def main() -> int:
    socket.gethostname = lambda: os.environ.get(NODE, "server")
    process.STALE_SECONDS = STALE_SECONDS
    takeover.PATIENCE = 1.5 * STALE_SECONDS
    role, *arguments = sys.argv[1:]
    if role == "queue":
        return ray_queue.main(arguments, worker=COMMAND)
    return worker.main(arguments, find=find, compare=toy.compare, command=COMMAND)


if __name__ == "__main__":
    sys.exit(main())
