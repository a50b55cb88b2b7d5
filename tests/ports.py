"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket

# Below what systems hand out by themselves to connections (32768 and up on Linux), so that no
# connection of another test takes the port between this look and the server's start.
CHOICE = range(12_000, 32_000)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    while True:
        port = random.SystemRandom().choice(CHOICE)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
        return port
