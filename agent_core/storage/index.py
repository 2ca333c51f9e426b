"""The port of the index: finds sessions by what was said in them."""

from typing import Protocol

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.storage.port import SessionSummary


class Hit(Value, frozen=True, kw_only=True):
    """A session in which something was found, and the place that shows it best."""

    summary: SessionSummary
    entry: EntryId | None
    """The entry of that place; None: the title, or an entry of a format that had no ids."""
    snippet: str
    """A piece of the text around the place, on one line."""
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet the words are: from, to (not included), in order."""


class SessionIndex(Protocol):
    """A cache over the session files; it holds nothing that is in no file.

    Every call checks the files first, so its result is as new as they are. Any of them may raise `IndexUnavailable`:
    this system cannot have an index.
    """

    @property
    def problem(self) -> str | None:
        """Problem of the index, in one sentence; None: there is none, as far as it was used."""
        ...

    async def refresh(self) -> None:
        """Read what is new in the files; of one that has grown, only what was added.

        Cancelled, it stops after the piece that it is at; the next call goes on from there.
        """
        ...

    async def list(self, cwd: str | None = None) -> tuple[SessionSummary, ...]:
        """Return the sessions, newest first; of all folders when none is named."""
        ...

    async def search(
        self, query: str, *, cwd: str | None = None, limit: int = 50, offset: int = 0
    ) -> tuple[Hit, ...]:
        """Find sessions that hold all the words, best first: by how well they fit and how new they are.

        Args:
            query: Words, and phrases in double quotes. The last word may be the beginning of one. Whatever else is in
                it separates words; a query without words finds nothing.
            cwd: Only sessions of this folder.
            limit: How many at most.
            offset: How many of the best to leave out.
        """
        ...

    async def close(self) -> None:
        """Close the index file. Idempotent; never raises."""
        ...
