"""Checks that a suggested change can be applied, and applies it: pure."""

import ast
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tiller_server.review.findings.quote_location import QuoteLocation
from tiller_server.review.findings.result import Suggestion

MOST_LINES: Final = 100


class SuggestionInvalid(Exception):
    """A suggestion that cannot be applied; the text says why."""


def checked_suggestion(
    text: str, lines: Sequence[str], place: QuoteLocation, *, path: str
) -> Suggestion:
    """Create a suggestion from the text that a model wrote for the lines of a place.

    Args:
        text: Replacement for the lines.
        lines: Lines of the file.
        place: Lines that the suggestion replaces.
        path: Path of the file, whose suffix selects the syntax check.

    Raises:
        Unusable: The suggestion changes nothing, is too long, or makes a valid file invalid.
    """
    replacement = _whole_lines(text)
    suggestion = Suggestion(line=place.line, end_line=place.end_line, replacement=replacement)
    old = list(lines[place.line - 1 : place.end_line])
    new = replaced_by(suggestion)
    if old == new:
        message = "it changes nothing"
        raise SuggestionInvalid(message)
    if max(len(old), len(new)) > MOST_LINES:
        message = f"it is longer than {MOST_LINES} lines"
        raise SuggestionInvalid(message)
    sound = SOUND.get(path.rpartition(".")[2].lower())
    if sound is not None and sound("\n".join(lines)):
        whole = "\n".join(applied(lines, (suggestion,)))
        if not sound(whole):
            message = f"with it {path} would not be valid any more"
            raise SuggestionInvalid(message)
    return suggestion


def applied(lines: Sequence[str], suggestions: Sequence[Suggestion]) -> list[str]:
    """Return the lines of a file with suggestions applied, which must not overlap."""
    result = list(lines)
    for each in sorted(suggestions, key=lambda one: one.line, reverse=True):
        result[each.line - 1 : each.end_line] = replaced_by(each)
    return result


def replaced_by(suggestion: Suggestion) -> list[str]:
    """Return the lines that a suggestion puts there."""
    text = suggestion.replacement
    return text.removesuffix("\n").split("\n") if text else []


def _whole_lines(text: str) -> str:
    lines = text.replace("\r\n", "\n").split("\n")
    ends = [number for number, line in enumerate(lines) if number and line.strip() == "```"]
    if ends and lines[0].lstrip().startswith("```"):
        lines = lines[1 : ends[0]]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "".join(f"{line}\n" for line in lines)


def _python(text: str) -> bool:
    try:
        _ = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _toml(text: str) -> bool:
    try:
        _ = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


SOUND: Final[Mapping[str, Callable[[str], bool]]] = {
    "py": _python,
    "pyi": _python,
    "json": _json,
    "toml": _toml,
}
"""By ending, how to tell whether a text is a valid file of its kind."""
