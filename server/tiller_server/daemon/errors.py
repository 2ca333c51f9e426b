"""Errors for which the daemon does not serve at all, or does not serve a client.

CannotServe      no daemon can run: its folder is not ours, or the system has no Unix sockets
Refused          this client is not served; it receives the reason
NoHello          the peer is no client of ours; it receives nothing
"""

from typing import Literal

Code = Literal[
    "token", "hello", "tool", "user", "version", "busyOlder", "leaving", "otherFolders", "notReady"
]


class CannotServe(Exception):
    """There can be no daemon here; the text says why and what to do."""


class ClientRefused(Exception):
    """A client is not served; the text says why."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code: Code = code
        """Reason as a code, by which a program decides what to do next."""


class HandshakeMissing(Exception):
    """The peer sends no hello line; the message continues "a connection was closed: it"."""
