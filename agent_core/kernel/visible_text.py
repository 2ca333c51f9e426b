"""Makes visible what a text hides: controls, orders to a terminal, signs that turn or hide others. Pure."""

import re
from functools import cache
from typing import Final

_ESCAPES: Final = (
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, moving, erasing
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and its kin
    r"|\x1b[ -/]{1,4}[0-~]|\x1b[0-OQ-WYZ\\`-~]"
)
_HIDDEN: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but \t \n \r, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PARTIAL: Final = (
    r"\x1b|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}|\x1b[ -/]{1,4}"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}\x1b?"
)
_SHOWN: Final = re.compile(r"<U\+([0-9A-F]{4,6})>")
_JOINER: Final = "\u200d"
_NON_JOINER: Final = "\u200c"
_MARKS: Final = range(0xFE00, 0xFE10)
_KEYS: Final = "0123456789#*\xa9\xae\u203c\u2049\u2122\u2139"
"""Characters that are not emoji but may be drawn as one."""
_EMOJI: Final = range(0x1F000, 0x1FB00)
_SYMBOLS: Final = range(0x2190, 0x2C00)
_JOINED_SCRIPTS: Final = (range(0x0600, 0x0780), range(0x0900, 0x0E00), range(0xFB50, 0xFE00))
"""Arabic and the scripts of India, whose letters are told by joiners how to stand together."""


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(rf"[{_HIDDEN}]")


@cache
def _lone_return() -> re.Pattern[str]:
    return re.compile(r"\r(?!\n)")


@cache
def _escapes() -> re.Pattern[str]:
    return re.compile(_ESCAPES)


@cache
def _partial() -> re.Pattern[str]:
    return re.compile(_PARTIAL)


@cache
def _openings() -> re.Pattern[str]:
    return re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")


def shown(text: str) -> str:
    r"""Return a text with everything hidden in it written out, `<U+202E>`; nothing is dropped.

    Line breaks (also `\r` before `\n`) and tabs stay. So do joiners where a script or an emoji needs them.
    """
    if text.isascii() and text.isprintable():
        return text
    whole = _hidden().sub(_sign, text)
    return _lone_return().sub("<U+000D>", whole) if "\r" in whole else whole


def readable(text: str) -> str:
    """Return a name with everything hidden written out, and bytes that are no characters, which no wire takes, too."""
    return shown(text.encode("utf-8", "backslashreplace").decode())


def plain(text: str) -> str:
    r"""Return what a command wrote as words: orders to a terminal dropped, what else is hidden written out.

    A line that was written over and over, `\r`, becomes lines.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text or not text.isascii():
        text = _escapes().sub("", text)
    if "\r" in text:
        text = _lone_return().sub("\n", text)
    return _hidden().sub(_sign, text)


def for_model(text: str) -> str:
    r"""Return the text of a file or a tool for a model: invisible characters are written out, `\r` stays as it is."""
    if text.isascii() and text.isprintable():
        return text
    return _hidden().sub(_sign, text)


def one_line(text: str) -> str:
    """Return a name or title on one line, with everything hidden written out."""
    return shown(" ".join(text.split()))


def as_meant(text: str) -> str:
    """Return a text in which `<U+202E>` stands for the sign itself, as a model copies it from what it read."""
    return _SHOWN.sub(_meant, text)


def unfinished(text: str) -> int:
    """Return where the end of a text may be the beginning of an order to a terminal; the text's length: nowhere."""
    place = 0
    while (opening := _openings().search(text, place)) is not None:
        whole = _escapes().match(text, opening.start())
        if whole is None and _partial().fullmatch(text, opening.start()):
            return opening.start()
        place = opening.end() if whole is None else whole.end()
    return len(text) - 1 if text.endswith("\r") else len(text)


class PlainStream:
    """`plain` for a text that comes in pieces."""

    def __init__(self) -> None:
        self._kept = ""

    def push(self, text: str) -> str:
        """Add text; return the complete part, as plain text."""
        whole = self._kept + text
        cut = unfinished(whole)
        self._kept = whole[cut:]
        return plain(whole[:cut])

    def finish(self) -> str:
        """Return the rest."""
        rest, self._kept = self._kept, ""
        return plain(rest)


def _sign(found: re.Match[str]) -> str:
    sign = found[0]
    text, place = found.string, found.start()
    if _is_needed(sign, text, place):
        return sign
    return f"<U+{ord(sign):04X}>"


def _is_needed(sign: str, text: str, place: int) -> bool:
    """Return whether a sign that shows nothing itself belongs to what stands beside it."""
    before = ord(text[place - 1]) if place else 0
    after = ord(text[place + 1]) if place + 1 < len(text) else 0
    if ord(sign) in _MARKS:
        return _is_picture(before) or chr(before) in _KEYS
    if sign == _JOINER and (_is_picture(before) or before in _MARKS) and _is_picture(after):
        return True
    if sign in {_JOINER, _NON_JOINER}:
        return any(before in script and after in script for script in _JOINED_SCRIPTS)
    return False


def _is_picture(point: int) -> bool:
    return point in _EMOJI or point in _SYMBOLS


def _meant(found: re.Match[str]) -> str:
    point = int(found[1], 16)
    sign = chr(point) if point <= 0x10FFFF else ""  # noqa: PLR2004 - the last code point there is
    return sign if sign and _hidden().match(sign) else found[0]
