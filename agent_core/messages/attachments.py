"""Texts of a user message that an editor attached, written out for the model. Pure."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

TAGS: Final = ("editor-context", "resource", "selection", "diagnostics", "diff")
BEGINNINGS: Final = ("<", "The user points at ")
"""Prefixes of attached texts; a text with another prefix is the user's own."""
_FENCED: Final = re.compile(rf'<({"|".join(TAGS)})(?: uri="([^"]*)")?>\n.*\n</\1>', re.DOTALL)
_POINTED: Final = re.compile(
    r"The user points at (\S+?)(?:, lines? \d+(?: to \d+)?)?; read it when it matters\."
)


def attachment_name(text: str) -> str | None:
    """Return a short name of what a text stands for, "" when it needs none; None when it is the user's own words."""
    if not text.startswith(BEGINNINGS):
        return None
    if (pointed := _POINTED.fullmatch(text)) is not None:
        return _base_name(pointed[1])
    fenced = _FENCED.fullmatch(text)
    if fenced is None:
        return None
    tag, uri = fenced.groups()
    if tag == "editor-context":
        return ""
    return _base_name(uri) if uri else tag


def user_texts(texts: Iterable[str]) -> list[str]:
    """Return the user's own words; with none, the names of what was sent along."""
    typed: list[str] = []
    names: list[str] = []
    for text in texts:
        name = attachment_name(text)
        if name is None:
            typed.append(text)
        else:
            names.append(name)
    return typed if any(one.strip() for one in typed) else [one for one in names if one]


def _base_name(uri: str) -> str:
    return unquote(uri.rstrip("/").rpartition("/")[2]) or uri
