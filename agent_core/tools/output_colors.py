"""Colours of what a command wrote, as spans of its plain text. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.kernel.text import plain, without_escapes

MOST_SPANS: Final = 1_000
"""Of one output; the last ones are kept."""
MOST_SEQUENCES: Final = 5_000
"""An output with more control sequences has no colours: to read them would hold up the event loop."""
_STYLE: Final = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_KINDS: Final[Mapping[int, str]] = {
    1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike",
    **dict.fromkeys((*range(30, 38), *range(90, 98)), "foreground"),
    **dict.fromkeys((*range(40, 48), *range(100, 108)), "background"),
}  # fmt: skip
_ENDS: Final[Mapping[int, Sequence[str]]] = {
    0: ("bold", "dim", "italic", "underline", "inverse", "strike", "foreground", "background"),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("inverse",),
    29: ("strike",),
    39: ("foreground",),
    49: ("background",),
}
_EXTENDED: Final[Mapping[int, str]] = {38: "foreground", 48: "background"}
_PALETTE: Final = 5
_RGB: Final = 2
_LENGTHS: Final[Mapping[int, int]] = {_PALETTE: 1, _RGB: 3}
_MOST: Final = 255

ColorSpan = tuple[int, int, str]
"""Start and end in UTF-16 code units of the text, and the parameters of a select graphic rendition sequence, `1;31`."""


def color_spans(raw: str, text: str) -> tuple[ColorSpan, ...]:
    """Return the colours of a text, in order; they do not overlap.

    Args:
        raw: The output as a terminal gets it.
        text: The end of `plain(raw)`.

    Returns:
        No span where the place of the colours in the text is not certain: a control sequence holds another one, or hidden
        characters are written out.
    """
    if raw.count("\x1b[") > MOST_SEQUENCES:
        return ()
    parts, styles = _split(raw)
    joined = "".join(parts)
    whole = plain(joined)
    if len(whole) != len(joined) or whole != plain(raw) or not whole.endswith(text):
        return ()
    first = len(whole) - len(text)
    spans: list[tuple[int, int, str]] = []
    place = -first
    for part, style in zip(parts, styles, strict=True):
        start, place = place, place + len(part)
        if style and place > max(start, 0):
            spans.append((max(start, 0), place, style))
    return tuple(_as_utf16(text, spans[-MOST_SPANS:]))


def _split(raw: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the parts of an output between changes of style, without control sequences, and the style of each."""
    parts: list[str] = []
    styles: list[str] = []
    style: dict[str, str] = {}
    end = 0
    for sequence in _STYLE.finditer(raw):
        parts.append(without_escapes(raw[end : sequence.start()]))
        styles.append(_written(style))
        _change(style, sequence[1])
        end = sequence.end()
    return (*parts, without_escapes(raw[end:])), (*styles, _written(style))


def _written(style: Mapping[str, str]) -> str:
    return ";".join(style[kind] for kind in sorted(style))


def _change(style: dict[str, str], parameters: str) -> None:
    """Change a style by the parameters of a sequence; unknown ones are left out."""
    # A colon separates parts of one parameter. Only those of colours are read; they may have an empty part.
    fields = (
        field
        for one in parameters.split(";")
        for field in (filter(None, one.split(":")) if one.startswith(("38:", "48:")) else (one,))
    )
    numbers = iter([int(field or 0) if field.isdecimal() or not field else -1 for field in fields])
    for number in numbers:
        for kind in _ENDS.get(number, ()):
            _ = style.pop(kind, None)
        if number in _EXTENDED:
            if (color := _extended(numbers)) is not None:
                style[_EXTENDED[number]] = f"{number};{color}"
        elif number in _KINDS:
            style[_KINDS[number]] = str(number)


def _extended(numbers: Iterator[int]) -> str | None:
    """Return the rest of a colour of the palette or of one by red, green and blue; None: it is not complete."""
    form = next(numbers, -1)
    rest = [next(numbers, -1) for _ in range(_LENGTHS.get(form, 0))]
    if not rest or not all(0 <= one <= _MOST for one in rest):
        return None
    return ";".join(map(str, (form, *rest)))


def _as_utf16(text: str, spans: Sequence[ColorSpan]) -> Iterator[ColorSpan]:
    if not text or ord(max(text)) <= 0xFFFF:  # noqa: PLR2004 - each character is one unit
        yield from spans
        return
    place = units = 0
    for start, end, style in spans:
        units += _units(text[place:start])
        length = _units(text[start:end])
        yield units, units + length, style
        place, units = end, units + length


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
