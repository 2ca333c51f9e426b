"""Where in a JSON text a value stands, so that a complaint about it can point there: pure."""

import json
from collections.abc import Sequence

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def place_of(text: str, path: Sequence[str | int]) -> tuple[int, int]:
    """Return line and column, from 1, of the value at `path` in a valid text, or of the nearest thing around it."""
    at = _skip_blank(text, 0)
    for step in path:
        inner = _child(text, at, step)
        if inner is None:
            break
        at = inner
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _child(text: str, at: int, step: str | int) -> int | None:
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return None
    at = _skip_blank(text, at + 1)
    count = 0
    while text[at] not in "}]":
        key: str | int = count
        if opening == "{":
            key, at = _skip_value(text, at)
            at = _skip_blank(text, _skip_blank(text, at) + 1)
        if key == step:
            return at
        _, at = _skip_value(text, at)
        at = _skip_blank(text, at)
        if text[at] == ",":
            at = _skip_blank(text, at + 1)
        count += 1
    return None


def _skip_value(text: str, at: int) -> tuple[str, int]:
    value: object
    value, end = _DECODER.raw_decode(text, at)  # pyright: ignore[reportAny] - a parser gives Any
    return (value if isinstance(value, str) else ""), end


def _skip_blank(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANK:
        at += 1
    return at
