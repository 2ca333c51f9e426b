"""Shared parts of grep, find and ls: limits, titles, notices, paths, and secret files left out."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec.structs import asdict
from pydantic import AfterValidator, BeforeValidator

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import FileMissing, ToolError
from agent_core.kernel.text import Truncation, one_line
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

PATH_NAMES: Mapping[str, str] = {"file_path": "path", "filePath": "path", "filename": "path"}
"""Aliases of the path argument, from the tools of other agents that models remember."""


def path_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return path if isinstance(path, str) and path.strip() else "?"


MAX_LIMIT = 100_000
"""Far more than is ever shown."""
SHOWN_CHARS = 80
ADVICE = (
    "Prefer grep, find and ls to bash for looking around: they are faster and honour .gitignore."
)


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        message = "Input should be a number"
        raise ValueError(message)  # noqa: TRY004 - pydantic wants this class
    return value


def _usable(limit: int) -> int:
    return min(max(limit, 1), MAX_LIMIT)


def _not_negative(number: int) -> int:
    return max(number, 0)


SearchLimit = Annotated[int, AfterValidator(_usable), BeforeValidator(_no_truth)]
"""Most results to return; a number below 1 counts as 1, one above `MAX_LIMIT` as `MAX_LIMIT`."""
NonNegativeCount = Annotated[int, AfterValidator(_not_negative), BeforeValidator(_no_truth)]
"""Whole number from 0; a negative number counts as 0."""


async def place_of_search(
    path: str | None, context: ToolContext
) -> tuple[Path, Literal["file", "folder"]]:
    """Find what a model's words mean, and say what it is; without words it is the workspace.

    Raises:
        ToolError: Nothing is there, or a device.
        WorkspaceError: It may not be looked at.
    """
    found = await context.files.resolve(path or ".", "read")
    try:
        stat = await context.files.stat(found)
    except FileMissing as error:
        message = f"Path not found: {found}"
        raise ToolError(message) from error
    if stat.kind == "other":
        message = f"Not a file or folder: {found}"
        raise ToolError(message)
    return found, stat.kind


def folder_said(arguments: JsonObject) -> str:
    """Return the path of a call for a title, whatever the model wrote."""
    path = arguments.get("path")
    return _short(path) if isinstance(path, str) and path.strip() else "."


def pattern_said(arguments: JsonObject) -> str:
    """Return the pattern of a call for a title, whatever the model wrote."""
    pattern = arguments.get("pattern")
    return _short(pattern) if isinstance(pattern, str) and pattern else "?"


def notices(*said: str) -> str:
    """Return notices about a cut result for the model, in one pair of brackets; empty when there are none."""
    sentences = [one for one in said if one]
    return f"\n\n[{'. '.join(sentences)}]" if sentences else ""


def cut_facts(page: Truncation) -> JsonObject:
    """Return what is known of a cut, for front ends."""
    return {name: value for name, value in asdict(page).items() if name != "content"}  # pyright: ignore[reportAny] - the fields are JSON


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


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
