"""Glob patterns as regular expressions that never take long, whatever the pattern and the path: pure.

A star takes as little as it can and never gives it back, which is right because what follows up to the next
star has a fixed length. So a match needs no more than one walk along the path.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from agent_core.kernel.errors import ToolError

MAX_EXPANDED = 1_000
"""How many patterns the braces of one pattern may stand for."""
MAX_PATTERN_CHARS = 1_000
CLASSES: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-\\/:-@\\[-`{-~",
    "space": " \\t\\r\\n\\v\\f",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPattern:
    """What paths of files and folders are looked for by; paths are relative, with `/`, and none at the end."""

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
    words = pattern.removeprefix(f"{folder.as_posix().rstrip('/')}/") if pattern != "/" else ""
    tied = words != pattern
    while words.startswith("./"):
        tied, words = True, words[2:]
    only_folders = words.endswith("/")
    tied, words = tied or words.startswith("/"), words.strip("/")
    _check(words, pattern)
    below = words if tied or words.startswith("**/") else f"**/{words}"
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
    words = pattern.removeprefix("/")
    _check(words, pattern)
    below = words if "/" in pattern.rstrip("/") else f"**/{words}"
    fits = _fitting(_expanded(below, pattern))
    return lambda path: fits(path) is not None


def glob_regex(pattern: str) -> str:
    """Translate a pattern into a regular expression to be matched in full; braces stand for themselves."""
    steps = [step for step in pattern.split("/") if step]
    runs: list[list[str]] = [[]]
    for step in steps:
        if step == "**":
            runs.append([])
        else:
            runs[-1].append(_step(step))
    first, rest = runs[0], runs[1:]
    text = "/".join(first)
    if not rest:
        return text
    text += "/" if first else ""
    for run in rest[:-1]:
        if run:
            text += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    last = rest[-1]
    return text + (f"(?:[^/]+/)*{'/'.join(last)}" if last else ".+")


def _check(words: str, pattern: str) -> None:
    if not words:
        message = (
            f'{pattern!r} matches nothing: write a name or a glob such as "*.py" or "src/**/*.md"'
        )
        raise ToolError(message)
    if ".." in words.split("/"):
        message = f"The pattern {pattern!r} leads out of the searched folder: name the folder in path, and leave .. out of the pattern"
        raise ToolError(message)
    if len(words) > MAX_PATTERN_CHARS:
        message = f"The pattern has {len(words)} characters, more than {MAX_PATTERN_CHARS}: use a shorter one"
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
    """Give the longest piece of a single pattern that stands for itself."""
    if len(patterns) != 1 or "\\" in patterns[0] or "[" in patterns[0]:
        return ""
    return max(re.split(r"[*?/]", patterns[0]), key=len)


def _suffix(pattern: str) -> str:
    """Give the end of a pattern that stands for itself."""
    if "\\" in pattern or "[" in pattern:
        return ""
    return re.split(r"[*?/]", pattern)[-1]


def _step(step: str) -> str:
    """Translate one name of a path."""
    pieces = [""]
    place = 0
    while place < len(step):
        character = step[place]
        if character == "*":
            pieces.append("")
            place += 1
        elif character == "[" and (found := _character_class(step, place)):
            text, place = found
            pieces[-1] += text
        elif character == "?":
            pieces[-1] += "[^/]"
            place += 1
        else:
            if character == "\\" and place + 1 < len(step):
                place += 1
            pieces[-1] += re.escape(step[place])
            place += 1
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    # A name has at least one character, so a star alone stands for one or more.
    if not any(pieces):
        return "[^/]+"
    return first + "".join(f"(?>[^/]*?{one})" for one in middle if one) + f"[^/]*{last}"


def _character_class(step: str, start: int) -> tuple[str, int] | None:
    """Translate `[…]`; None when it is not closed, so that the bracket stands for itself."""
    place = start + 1
    negated = step[place : place + 1] in {"!", "^"}
    if negated and step[place : place + 1]:
        place += 1
    first = place
    items: list[str] = []
    while place < len(step) and (step[place] != "]" or place == first):
        named = re.match(r"\[:(\w+):\]", step[place:])
        if named and named[1] in CLASSES:
            items.append(CLASSES[named[1]])
            place += named.end()
            continue
        low, place = _class_character(step, place)
        if step[place : place + 1] == "-" and step[place + 1 : place + 2] not in {"", "]"}:
            high, place = _class_character(step, place + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
            continue
        items.append(re.escape(low))
    if place >= len(step):
        return None
    if not items:
        return ("[^/]" if negated else "(?!)"), place + 1
    return f"(?!/)[{'^' if negated else ''}{''.join(items)}]", place + 1


def _class_character(step: str, place: int) -> tuple[str, int]:
    if step[place] == "\\" and place + 1 < len(step):
        place += 1
    return step[place], place + 1
