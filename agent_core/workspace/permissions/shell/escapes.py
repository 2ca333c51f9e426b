"""Undoes the escapes of bash, as far as a text says them."""

import re
from collections.abc import Mapping
from typing import Final

LETTERS: Final[Mapping[str, str]] = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
ANSI: Final = re.compile(
    r"""\\(?:
        x(?P<hex>[0-9a-fA-F]{1,2}) | u(?P<short>[0-9a-fA-F]{1,4}) | U(?P<long>[0-9a-fA-F]{1,8})
        | (?P<octal>[0-7]{1,3}) | c(?P<control>.) | (?P<other>.)
    )""",
    re.DOTALL | re.VERBOSE,
)
IN_BACKTICKS: Final = re.compile(r"\\([\\`$])")
HIGHEST: Final = 0x10FFFF


def decoded(text: str) -> str:
    r"""Return what stands in `$'…'`, with `\x72` and the like as their characters."""
    return ANSI.sub(_character, text)


def unescaped(text: str) -> str:
    """Return the line that stands between two backticks."""
    return IN_BACKTICKS.sub(r"\1", text)


def end_of_backticks(text: str, start: int) -> int:
    """Return where the backtick stands that closes the one before `start`; the end of the text without one."""
    at = start
    while at < len(text) and text[at] != "`":
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _character(found: re.Match[str]) -> str:
    for group, base in (("hex", 16), ("short", 16), ("long", 16), ("octal", 8)):
        if digits := found[group]:
            number = int(digits, base)
            return chr(number) if number <= HIGHEST else ""
    if control := found["control"]:
        return chr(ord(control) & 0x1F)
    other = found["other"]
    return LETTERS.get(other, other)
