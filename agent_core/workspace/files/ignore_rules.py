"""Globs as .gitignore writes them, and the lines of such files: pure, and never slow, whatever the pattern and the path.

A star takes as little as it can and never gives it back, which is right because what follows up to the next
star has a fixed length. So a match needs no more than one walk along the path.
"""

import re
from collections.abc import Mapping, Sequence

from agent_core.kernel.values import Value

MAX_PATTERN_CHARS = 1_000
TRAILING_SPACES = re.compile(r"(?<!\\)[ \t]+$")
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

IgnoreVerdict = bool | None
"""Whether a path is ignored; None: nothing is said about it."""


class Rules(Value, frozen=True, kw_only=True):
    """The lines of one ignore file; paths are relative to its folder, those of folders end with a slash."""

    lines: Sequence[tuple["re.Pattern[str]", bool]]
    """The last line comes first; with whether it ignores."""

    def verdict(self, path: str) -> IgnoreVerdict:
        """Return what the last line that fits says. A folder's contents are not what this is about."""
        for line, ignores in self.lines:
            if line.fullmatch(path):
                return ignores
        return None


def read_rules(text: str) -> Rules:
    """Read the lines of an ignore file; invalid lines are skipped."""
    lines = [rule for line in text.splitlines() if (rule := _rule(line))]
    return Rules(lines=tuple(reversed(lines)))


def _rule(line: str) -> tuple["re.Pattern[str]", bool] | None:
    pattern = TRAILING_SPACES.sub("", line)
    if not pattern or pattern.startswith("#"):
        return None
    ignores = not pattern.startswith("!")
    pattern = pattern if ignores else pattern[1:]
    only_folders = pattern.endswith("/")
    tied = "/" in pattern[:-1]
    pattern = pattern.strip("/")
    if not pattern or len(pattern) > MAX_PATTERN_CHARS or pattern.endswith("\\"):
        return None
    regex = glob_regex(pattern if tied else f"**/{pattern}")
    # A folder's path ends with a slash here.
    return re.compile(f"(?:{regex}){'/' if only_folders else '/?'}", re.DOTALL), ignores


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
