"""Collects the paths that fit a pattern, with the folders that the paths of files lead through: pure."""

from collections.abc import Iterable, Sequence

from agent_core.tools.builtin.search.globs import PathPattern

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
