"""The set-up pages for editors, read as their readers do: which block goes into which file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.harness.shared import ROOT

EDITORS: Final = ROOT / "docs/editors"
_BLOCK: Final = re.compile(
    r"(?P<before>[^\n]*(?:\n[^\n]+)*)\n\n```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE: Final = re.compile(r"[Ii]n `(~/[^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code on a page."""

    section: str
    """The heading that it stands below."""
    language: str
    text: str
    file: str | None
    """Where the line before it says that it goes."""


def page(name: str) -> str:
    """Give the text of a page."""
    return (EDITORS / name).read_text("utf-8")


def blocks(name: str) -> Sequence[Block]:
    """Give the blocks of a page, in their order."""
    found: list[Block] = []
    for part in re.split(r"^#+ ", page(name), flags=re.MULTILINE)[1:]:
        section, _, body = part.partition("\n")
        for one in _BLOCK.finditer(body):
            file = _FILE.findall(one["before"])
            found.append(
                Block(
                    section=section,
                    language=one["language"],
                    text=one["text"],
                    file=file[-1] if file else None,
                )
            )
    return found


def block(name: str, section: str, *, language: str) -> Block:
    """Give the first block of a section in a language."""
    return next(one for one in blocks(name) if (one.section, one.language) == (section, language))


def write_block(one: Block, home: Path) -> Path:
    """Put a block where the page says, for the user with that home."""
    assert one.file is not None, f"no line says where this goes:\n{one.text}"
    path = home / one.file.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(one.text, encoding="utf-8")
    return path
