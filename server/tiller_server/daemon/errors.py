"""What keeps the daemon from serving, or from serving somebody.

CannotServe      the daemon cannot be: its folder is not ours, the system has no such sockets
Refused          this client is not served; it is told the sentence
NoHello          this is no client of ours; it is told nothing
"""

from typing import Literal

Code = Literal["token", "hello", "tool", "user", "version", "busyOlder", "leaving", "otherFolders"]


class CannotServe(Exception):
    """There can be no daemon here; the text says why and what to do."""


class Refused(Exception):
    """A client is not served; the text says why."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code: Code = code
        """For programs: what to do about it."""


class NoHello(Exception):
    """Who is at the door does not speak as clients do."""
