"""Writes what sessions hold so that it cannot do anything to a terminal."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.text import cell_count, shown

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
CYAN: Final = "36"
PIPE_CELLS: Final = 120
"""How wide rows are where nobody says how wide the terminal is."""
SHORT_ID: Final = 6
ABOUT: Final = ("command", "path", "pattern", "query", "url")
"""Arguments that say what a call is about."""

VERBATIM: Final = "    "
"""Beginning of a line that is not broken between words, such as a command in a question."""


def safe(text: str) -> str:
    """Write out what a terminal would act on, and what would hide from a reader."""
    return shown(text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return a text as one line."""
    return " ".join(safe(text).split())


def call_title(name: str, arguments: JsonObject) -> str:
    """Return a tool call as one line: its name, and of its arguments what it is about."""
    about = next((one for key in ABOUT if isinstance(one := arguments.get(key), str)), "")
    return one_line(f"{name} {about}")


def styled(text: str, style: str, *, colour: bool) -> str:
    """Return a text its colour, where there are colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour and text else text


def clipped(text: str, cells: int) -> str:
    """Cut a line to a width; wide characters take two cells."""
    used = 0
    for place, char in enumerate(text):
        used += cell_count(char)
        if used > cells:
            return text[: max(0, place - 1)] + "…"
    return text


def wrapped(line: str, cells: int) -> list[str]:
    """Return a line as rows of a width, broken between words; rows after the first keep its indentation.

    A word that is wider than a row stays where it is, whole.
    """
    indent = line[: len(line) - len(line.lstrip())]
    if cell_count(line) <= cells or len(indent) >= cells // 2:
        return [line]
    first, *rest = line[len(indent) :].split(" ")
    rows = [f"{indent}{first}"]
    for word in rest:
        row = f"{rows[-1]} {word}"
        fits_below = cell_count(f"{indent}{word}") <= cells
        if cell_count(row) > cells and fits_below and rows[-1].strip():
            rows.append(f"{indent}{word}")
        else:
            rows[-1] = row
    return rows


def excerpt(text: str, chars: int) -> str:
    """Return the beginning of a text, cut between two words."""
    if len(text) <= chars:
        return text
    head, blank, _ = text[: chars + 1].rpartition(" ")
    return f"{head if blank else text[:chars]} …"


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that somebody probably meant; None: none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    return next(iter(get_close_matches(name, [*names], n=1)), None)


def unknown_command(name: str, nearest: str | None, *, otherwise: str = "") -> str:
    """Return the message about a command that does not exist.

    Args:
        name: Without the slash.
        nearest: The command that was probably meant.
        otherwise: A hint where there is none.
    """
    hint = f"Did you mean /{nearest}?" if nearest else otherwise
    return " ".join(
        (
            f"Unknown command /{name}.",
            *filter(None, [hint]),
            "To send it as text, start with a space.",
        )
    )


def padded(text: str, cells: int) -> str:
    """Bring a line to a width."""
    cut = clipped(text, cells)
    return cut + " " * (cells - cell_count(cut))


def cells_of_row() -> int:
    """Return how wide a row may be."""
    return get_terminal_size((PIPE_CELLS, 24)).columns if sys.stdout.isatty() else PIPE_CELLS


def moment(at_ms: int) -> str:
    """Write a time as the clock on the wall has it."""
    try:
        return f"{datetime.fromtimestamp(at_ms // 1000, UTC).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "at no known time"


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return for each id how much of its end tells it from all others. The beginning is the time, the end is random."""
    ordered = sorted(ids, key=lambda one: one[::-1])
    return {one: one[-need:] for one, need in zip(ordered, _needs(ordered), strict=True)}


def _needs(ordered: Sequence[str]) -> Iterator[int]:
    for place, one in enumerate(ordered):
        near = (*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2])
        yield max(SHORT_ID, *(_shared(one, other) + 1 for other in near), 0)


def _shared(one: str, two: str) -> int:
    """Count the characters that two texts end with alike."""
    pairs = zip(reversed(one), reversed(two), strict=False)
    return next((n for n, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(one), len(two)))
