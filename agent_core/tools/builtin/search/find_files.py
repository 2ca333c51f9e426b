"""The work of the tool `find`: through the same walk as every search, with ripgrep where it can be used."""

from collections.abc import Iterable, Sequence

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import format_size, truncate_head
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.builtin.search.common import cut_facts, notices, place_of_search
from agent_core.tools.builtin.search.globs import PathPattern, find_pattern
from agent_core.tools.builtin.search.ripgrep import HERE, RipgrepRefused, RipgrepUnusable, ripgrep
from agent_core.tools.builtin.search.tree_walk import SearchedFolder, listed_buffers, searched, walk
from agent_core.tools.port import ToolContext, ToolResult, text_result

NOTHING = "No files found matching pattern"
BATCH_CHARS = 65_536
END = "\0"
"""Comes after every path of a listing."""
SLACK = 2_000
"""So many more than are wanted are kept before the last ones are let go."""


class FoundPaths:
    """Paths found so far. The result does not depend on the order in which files are added."""

    def __init__(self, pattern: PathPattern, *, limit: int) -> None:
        """Begin with nothing; the limit is how many are wanted."""
        self._pattern = pattern
        self._limit = limit
        self._found: list[str] = []
        self._beyond: str | None = None
        """This and what comes after it is not wanted any more."""
        self._folders: set[str] = set()

    def add(self, listing: str, *, prefix: str = "") -> None:
        """Add paths of files, relative to the searched folder.

        Args:
            listing: The paths, each after the prefix and before `END`.
            prefix: Text in front of each path, which is removed.
        """
        # Tens of thousands come at a time, so this is made of what is fast in Python: most paths are judged by
        # their ends alone, and folders are looked at only if one may end in the right way.
        if not listing:
            return
        files = listing[len(prefix) : -len(END)].split(END + prefix)
        suffixes, literal, fits = self._pattern.suffixes, self._pattern.literal, self._pattern.fits
        if literal and not suffixes:
            files = [path for path in files if literal in path]
        if not self._pattern.only_folders:
            near = [path for path in files if path.endswith(suffixes)] if suffixes else files
            self._keep(near if self._pattern.only_suffix else [path for path in near if fits(path)])
        if not suffixes or any(f"{suffix}/" in listing for suffix in suffixes):
            self._keep([f"{folder}/" for folder in self._new_folders(files) if fits(folder)])

    def paths(self) -> tuple[list[str], bool]:
        """Return the first ones, sorted, and whether there are more; a folder ends with a slash."""
        first = self._first()
        return first[: self._limit], len(first) > self._limit

    def _keep(self, paths: Sequence[str]) -> None:
        beyond = self._beyond
        self._found += paths if beyond is None else [path for path in paths if path < beyond]
        if len(self._found) > self._limit + SLACK:
            self._found = self._first()
            if len(self._found) > self._limit:
                self._beyond = self._found[-1]

    def _first(self) -> list[str]:
        # What is unsaved in an editor may have come twice.
        return sorted(set(self._found))[: self._limit + 1]

    def _new_folders(self, files: Iterable[str]) -> list[str]:
        """Return the folders above these files that were not seen yet."""
        new: list[str] = []
        for folder in {path.rpartition("/")[0] for path in files}:
            while folder and folder not in self._folders:
                self._folders.add(folder)
                new.append(folder)
                folder = folder.rpartition("/")[0]  # noqa: PLW2901 - up to the top
        return new


async def find_files(
    asked: str, place: str | None, context: ToolContext, *, limit: int
) -> ToolResult:
    """Find files and folders of a glob in a folder (None: the workspace) and return their sorted paths.

    Raises:
        ToolError: There is no such folder, or the pattern can fit nothing.
    """
    folder, kind = await place_of_search(place, context)
    if kind != "folder":
        message = f"Not a directory: {folder}. Give its folder as path, or use read to see the file"
        raise ToolError(message)
    pattern = find_pattern(asked, folder=folder)
    tree = await searched(context.workspace, folder)
    unsaved = await listed_buffers(tree)
    details: dict[str, JsonValue] = {"pattern": asked, "path": str(folder)}
    try:
        found = await _with_ripgrep(pattern, tree, context, limit=limit)
        details["engine"] = "ripgrep"
    except RipgrepUnusable:
        found = await _with_walk(pattern, tree, limit=limit)
        details["engine"] = "builtin"
    found.add("".join(f"{path}{END}" for path in unsaved))
    return await run_in_thread(_result, found, limit, details)


async def _with_ripgrep(
    pattern: PathPattern, tree: SearchedFolder, context: ToolContext, *, limit: int
) -> FoundPaths:
    """List with ripgrep.

    Raises:
        RipgrepUnusable: It cannot be used here; nothing was found yet.
    """
    found = FoundPaths(pattern, limit=limit)
    rest = b""
    async with ripgrep(("--files", "--null"), context, tree) as run:
        while data := await run.read():
            whole, end, rest = (rest + data).rpartition(b"\0")
            found.add((whole + end).decode("utf-8", "replace"), prefix=HERE)
        try:
            await run.check(rest.decode("utf-8", "replace"))
        except RipgrepRefused as refused:
            raise RipgrepUnusable(str(refused)) from refused
    return found


async def _with_walk(pattern: PathPattern, tree: SearchedFolder, *, limit: int) -> FoundPaths:
    found = FoundPaths(pattern, limit=limit)
    listing = ""
    async for path in walk(tree):
        listing += path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") + END
        if len(listing) > BATCH_CHARS:
            found.add(listing)
            listing = ""
    found.add(listing)
    return found


def _result(found: FoundPaths, limit: int, details: dict[str, JsonValue]) -> ToolResult:
    paths, limit_reached = found.paths()
    text = "\n".join(_one_line(path) for path in paths)
    page = truncate_head(text, max_lines=len(text) + 1)
    details |= {
        "result_count": len(paths),
        "limit_reached": limit_reached,
        "truncated": limit_reached or page.truncated,
    }
    if page.truncated:
        details["truncation"] = cut_facts(page)
    if not paths:
        return text_result(NOTHING, details=details)
    said = notices(
        f"{limit} results limit reached. Use limit={limit * 2} for more, or refine pattern"
        if limit_reached
        else "",
        f"{format_size(page.max_bytes)} limit reached" if page.truncated else "",
    )
    return text_result(page.content + said, details=details)


def _one_line(path: str) -> str:
    """Write a path so that it is one line, whatever is in it."""
    return path if path.isprintable() else path.replace("\n", "\\n").replace("\r", "\\r")
