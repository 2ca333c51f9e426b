"""The glob patterns of tools and the rules of ignore files, judged quickly whatever the pattern and the path: pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

import msgspec

from agent_core.kernel.errors import ToolError, WorkspaceError, WorkspaceUnreachable
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace import DirectoryEntry, Files, FileText
from agent_core.workspace.files.ignore_rules import (
    MAX_PATTERN_CHARS,
    IgnoreVerdict,
    Rules,
    glob_regex,
    read_rules,
)

MAX_EXPANDED = 1_000
"""How many patterns the braces of one pattern may stand for."""


class PathPattern(Value, frozen=True, kw_only=True):
    """Pattern for paths of files and folders. Paths are relative, with `/` as separator and no separator at the end."""

    fits: Callable[[str], object]
    """Judges a whole path."""
    suffixes: tuple[str, ...]
    """Every path that fits ends like one of these; empty when nothing is known."""
    literal: str
    """Every path that fits has this in it; empty when nothing is known."""
    only_suffix: bool
    """Every path that ends like this fits."""
    only_folders: bool


def find_pattern(pattern: str, *, folder: PurePath) -> PathPattern:
    """Read a pattern as `find` means it.

    Without a slash it is about the name alone, with one about the path below the folder, at any depth; a slash
    in front ties it to the folder.

    Raises:
        ToolError: No such pattern can be; the text says why.
    """
    relative = pattern.removeprefix(f"{folder.as_posix().rstrip('/')}/") if pattern != "/" else ""
    tied = relative != pattern
    while relative.startswith("./"):
        tied, relative = True, relative[2:]
    only_folders = relative.endswith("/")
    tied, relative = tied or relative.startswith("/"), relative.strip("/")
    _check(relative, pattern)
    below = relative if tied or relative.startswith("**/") else f"**/{relative}"
    expanded = _expanded(below, pattern)
    suffixes = tuple(_suffix(one) for one in expanded)
    return PathPattern(
        fits=_fitting(expanded),
        suffixes=suffixes if all(suffixes) else (),
        literal=_literal(expanded),
        only_suffix=expanded == [f"**/*{suffix}" for suffix in suffixes],
        only_folders=only_folders,
    )


def file_glob(pattern: str) -> Callable[[str], bool]:
    """Read a glob as a line of .gitignore: without a slash about the name, with one about the path from the folder.

    Raises:
        ToolError: No such pattern can be.
    """
    relative = pattern.removeprefix("/")
    _check(relative, pattern)
    below = relative if "/" in pattern.rstrip("/") else f"**/{relative}"
    fits = _fitting(_expanded(below, pattern))
    return lambda path: fits(path) is not None


def _check(relative: str, pattern: str) -> None:
    if not relative:
        message = (
            f'{pattern!r} matches nothing: write a name or a glob such as "*.py" or "src/**/*.md"'
        )
        raise ToolError(message)
    if ".." in relative.split("/"):
        message = f"The pattern {pattern!r} leads out of the searched folder: name the folder in path, and leave .. out of the pattern"
        raise ToolError(message)
    if len(relative) > MAX_PATTERN_CHARS:
        message = f"The pattern has {len(relative)} characters, more than {MAX_PATTERN_CHARS}: use a shorter one"
        raise ToolError(message)


def _fitting(patterns: Sequence[str]) -> Callable[[str], "re.Match[str] | None"]:
    return re.compile("|".join(glob_regex(one) for one in patterns), re.DOTALL).fullmatch


def _expanded(pattern: str, said: str) -> list[str]:
    """Write out the braces."""
    found: list[str] = []
    for one in _spread(pattern):
        if len(found) == MAX_EXPANDED:
            message = f"The braces in {said!r} stand for more than {MAX_EXPANDED} patterns: use fewer, or stars"
            raise ToolError(message)
        found.append(one)
    return found


def _spread(pattern: str) -> Iterator[str]:
    braces = _first_braces(pattern)
    if braces is None:
        yield pattern
        return
    start, commas, end = braces
    for rest in _spread(pattern[end + 1 :]):
        cuts = [start, *commas, end]
        for begin, stop in pairwise(cuts):
            for inner in _spread(pattern[begin + 1 : stop]):
                yield pattern[:start] + inner + rest


def _first_braces(pattern: str) -> tuple[int, list[int], int] | None:
    """Find the first closed braces with commas of their own: where they open, the commas, where they close."""
    opened: list[tuple[int, list[int]]] = []
    best: tuple[int, list[int], int] | None = None
    skip = False
    for place, character in enumerate(pattern):
        if skip:
            skip = False
        elif character == "\\":
            skip = True
        elif character == "{":
            opened.append((place, []))
        elif character == "," and opened:
            opened[-1][1].append(place)
        elif character == "}" and opened:
            start, commas = opened.pop()
            if commas and (best is None or start < best[0]):
                best = (start, commas, place)
    return best


def _literal(patterns: Sequence[str]) -> str:
    """Return the longest piece of a single pattern that stands for itself."""
    if len(patterns) != 1 or "\\" in patterns[0] or "[" in patterns[0]:
        return ""
    return max(re.split(r"[*?/]", patterns[0]), key=len)


def _suffix(pattern: str) -> str:
    """Return the end of a pattern that stands for itself."""
    if "\\" in pattern or "[" in pattern:
        return ""
    return re.split(r"[*?/]", pattern)[-1]


IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
"""Those named first prevail, however far up they lie."""
GIT_FOLDER = ".git"
EXCLUDE = Path(GIT_FOLDER, "info", "exclude")
LIMIT_BYTES = 1_048_576
"""A larger ignore file is not read."""


class FolderRules(Value, frozen=True, kw_only=True):
    """The ignore files of one folder and of those above it."""

    prefix: str
    """The folder, relative to the topmost one that counts; ends with a slash unless it is that."""
    rules: Mapping[str, Rules] = msgspec.field(default_factory=dict[str, Rules])
    is_repository: bool = False
    parent: "FolderRules | None" = None

    def ignores(self, path: str) -> bool:
        """Judge what is directly in this folder; `path` is relative to the topmost one, a folder's ends with a slash."""
        for name in (*IGNORE_FILES, EXCLUDE.name):
            verdict = self._verdict(name, path)
            if verdict is not None:
                return verdict
        return False

    def _verdict(self, name: str, path: str) -> IgnoreVerdict:
        folder: FolderRules | None = self
        while folder is not None:
            rules = folder.rules.get(name)
            if rules is not None:
                verdict = rules.verdict(path[len(folder.prefix) :])
                if verdict is not None:
                    return verdict
            # What git is told outside does not count inside a repository.
            if folder.is_repository and name in {".gitignore", EXCLUDE.name}:
                return None
            folder = folder.parent
        return None


async def folder_rules(
    files: Files,
    folder: Path,
    entries: Sequence[DirectoryEntry],
    *,
    prefix: str,
    parent: FolderRules | None,
    in_repository: bool,
) -> FolderRules:
    """Read the ignore files of a folder.

    Args:
        files: Port through which they are read.
        folder: The folder.
        entries: Entries of the folder.
        prefix: Its path relative to the topmost folder, with a slash at the end; empty for that one.
        parent: The rules of the folder above.
        in_repository: Whether a `.git` entry makes the folder the top of a repository.
    """
    above = parent or FolderRules(prefix="")
    names = {entry.name: entry for entry in entries}
    sources = {
        name: folder / name for name in IGNORE_FILES if name in names and names[name].kind == "file"
    }
    is_repository = in_repository and GIT_FOLDER in names
    if is_repository and names[GIT_FOLDER].kind == "folder":
        sources[EXCLUDE.name] = folder / EXCLUDE
    rules: dict[str, Rules] = {}
    for name, path in sources.items():
        text = await ignore_text(files, path)
        if text:
            rules[name] = await run_in_thread(read_rules, text)
    if not rules and not is_repository:
        return above
    return FolderRules(prefix=prefix, rules=rules, is_repository=is_repository, parent=parent)


async def ignore_text(files: Files, path: Path) -> str:
    """Read an ignore file; empty if there is none that could be read."""
    try:
        file = await files.read(path, limit_bytes=LIMIT_BYTES)
    except WorkspaceUnreachable:
        raise
    except WorkspaceError:
        return ""
    return file.text if isinstance(file, FileText) else ""
