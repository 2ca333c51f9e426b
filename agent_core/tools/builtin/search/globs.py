"""The glob patterns that tools are given, judged quickly whatever the pattern and the path: pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath

from agent_core.kernel.errors import ToolError
from agent_core.kernel.values import Value
from agent_core.workspace.files.ignore_rules import MAX_PATTERN_CHARS, glob_regex

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
