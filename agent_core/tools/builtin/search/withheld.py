"""The secret files that searches leave out."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from agent_core.kernel.text import one_line
from agent_core.tools.builtin.search.ripgrep import (
    HERE,
    RipgrepRefused,
    RipgrepRun,
    RipgrepUnusable,
    ripgrep,
)
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed
from agent_core.tools.port import ToolContext
from agent_core.workspace.permissions.protected_names import (
    COPY_ENDINGS,
    SECRET_FOLDERS,
    SECRET_NAMES,
    SECRET_PAIRS,
    SECRET_PATTERNS,
)

MOST_NAMED: Final = 10
_GLOBS: Final = (
    *SECRET_NAMES,
    *SECRET_PATTERNS,
    *(f"**/{folder}/**" for folder in SECRET_FOLDERS),
    *(f"**/{pair}" for pair in SECRET_PAIRS),
    *(f"*.{ending}*" for ending in COPY_ENDINGS),
    *("*~", "[#]*[#]", "*[ _-]copy"),
    # Spellings that only some file system takes for one of these.
    "*[! -~]*",
    "*[ .]",
    "*:*",
)
"""Globs of every file that may be secret, and of some others. The files left out must not depend on the matches."""


class WithheldFiles:
    """The secret files of a searched folder that nobody let the session read."""

    def __init__(self, tree: SearchedFolder, context: ToolContext) -> None:
        """Begin before any file was looked at."""
        self._tree = tree
        self._context = context
        self._judged: dict[str, bool] = {}

    def holds(self, path: str) -> bool:
        """Return whether a file is one of them; its path is relative to the searched folder."""
        judged = self._judged.get(path)
        if judged is None:
            context = self._context
            why = context.secrets.withholds(self._tree.folder / path, roots=context.workspace.roots)
            judged = self._judged[path] = why is not None
        return judged

    @asynccontextmanager
    async def listing(self) -> AsyncGenerator["Listing"]:
        """List candidates while the context is entered, beside the search itself, which takes longer.

        Raises:
            RipgrepUnusable: They cannot be listed.
        """
        # In a folder of keys every file is secret, whatever it is called.
        globs = () if self.holds("-") else (f"--iglob={glob}" for glob in _GLOBS)
        async with ripgrep(("--files", "--null", *globs), self._context, self._tree) as run:
            yield Listing(run)

    async def listed(self, listing: "Listing") -> tuple[str, ...]:
        """Return those that a search would come upon, sorted.

        Raises:
            RipgrepUnusable: They cannot be listed.
        """
        secret = [path for path in await listing.paths() if self.holds(path)]
        return tuple(sorted(await listed(self._tree, secret))) if secret else ()


class Listing:
    """Paths that ripgrep lists, relative to the searched folder."""

    def __init__(self, run: RipgrepRun) -> None:
        """Wrap a run of ripgrep; the caller ends it."""
        self._run = run

    async def paths(self) -> list[str]:
        """Wait for all of them.

        Raises:
            RipgrepUnusable: They cannot be listed.
        """
        found = bytearray()
        while data := await self._run.read():
            found += data
        whole, _, rest = bytes(found).rpartition(b"\0")
        try:
            await self._run.check(rest.decode("utf-8", "replace"))
        except RipgrepRefused as refused:
            raise RipgrepUnusable(str(refused)) from refused
        paths = whole.decode("utf-8", "surrogateescape").split("\0")
        return [one.removeprefix(HERE) for one in paths if one]


def withheld_note(paths: Iterable[str]) -> str:
    """Return what the model is told of secret files that were not searched; empty if there are none."""
    names = [one_line(path) for path in paths]
    if not names:
        return ""
    more = len(names) - MOST_NAMED
    behind = f" and {more} more" if more > 0 else ""
    count = "1 secret file was" if len(names) == 1 else f"{len(names)} secret files were"
    return (
        f"{count} not searched: {', '.join(names[:MOST_NAMED])}{behind}. "
        "Use read on such a file if you need it: the user is asked, and after a yes searches show it too"
    )
