"""Which cluster works runs off, what each is given there, and what is said of one that waits."""

from __future__ import annotations

import math
import os
import socket
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from core.message import Message
from core.runs.errors import RunStoreError
from core.runs.execution.launching.launcher import SETTING

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


PROBE_SECONDS = 5.0


class LauncherError(RunStoreError):
    """Nobody knows where runs are to be worked off."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A Ray cluster and what one run takes of it.

    Attributes:
      address: "auto", HOST:PORT of its head, or ray://HOST:PORT of its client server.
      cpus: processors of a run, > 0.
      gpus: graphics cards of a run, ≥ 0. None gives one to runs that ask for CUDA, and to those
        that take what there is where the cluster has any.
      memory_gb: of a run, in 10⁹ bytes; None leaves it to chance.
      restarts: how often a run whose machine was lost goes on elsewhere by itself, ≥ 0.
      tasks: how many tasks share a statistic over all records, ≥ 0; none of them when 0.
    """

    address: str
    cpus: float = 1.0
    gpus: float | None = None
    memory_gb: float | None = None
    restarts: int = 3
    tasks: int = 0

    def probe(self) -> None:
        """Raise OSError within seconds where nobody listens: Ray itself would try for minutes."""
        head = urlsplit(self.address if "//" in self.address else f"//{self.address}")
        if head.hostname and head.port:
            socket.create_connection((head.hostname, head.port), timeout=PROBE_SECONDS).close()

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """What is written behind `FACSIMILE_LAUNCHER`.

        >>> Cluster.parse("ray:auto?cpus=4&gpus=1").cpus
        4.0
        >>> Cluster.parse("ray://head:10001").address, Cluster.parse("ray:head:6379").address
        ('ray://head:10001', 'head:6379')

        Raises:
          LauncherError: it is no address of a cluster, or asks for what there is not.
        """
        parts = urlsplit(text)
        address = f"ray://{parts.netloc}" if parts.netloc else parts.path
        if parts.scheme != "ray" or not address:
            raise LauncherError(
                "{setting} is neither 'local' nor the address of a Ray cluster, such as ray:auto "
                "or ray://HOST:10001. Nothing was started.",
                setting=SETTING,
            )
        numbers = {"cpus": float, "gpus": float, "memory_gb": float, "restarts": int, "tasks": int}
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        try:
            chosen = {name: numbers[name](value) for name, value in asked.items()}
            if not all(0 <= value < math.inf for value in chosen.values()) or not chosen.get(
                "cpus", 1
            ):
                raise ValueError
        except (KeyError, ValueError):
            raise LauncherError(
                "{setting} takes {names} after its question mark, each with a number that is not "
                "negative. Nothing was started.",
                setting=SETTING,
                names=", ".join(numbers),
            ) from None
        return cls(address=address, **chosen)


def configured_cluster() -> Cluster | None:
    """The cluster that the environment names; None where runs are worked off on this machine."""
    text = os.environ.get(SETTING, "").strip()
    return None if text in ("", "local") else Cluster.parse(text)
