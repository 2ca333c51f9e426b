"""Change sets as clients get them: lines and characters of their own counting, without secrets."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from anyio import to_thread

from agent_core.changes.history import ChangeSet
from agent_core.changes.hunks import GONE, FileReview, Hunk
from agent_core.kernel import JsonValue
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.lsp.documents.positions import LineIndex, PositionEncoding

Clean: TypeAlias = Callable[[str], str]
TEXT_CHARS: Final = 65_536
"""How much of one text is sent."""
SET_CHARS: Final = 4_194_304
"""How much of all texts of a change set."""


class _Room:
    """How much more text fits."""

    def __init__(self) -> None:
        self._left = SET_CHARS

    def cut(self, text: str) -> str:
        """Return as much of a text as fits, followed by the count of the characters that are left out."""
        fits = min(TEXT_CHARS, self._left)
        self._left -= min(len(text), fits)
        return text if len(text) <= fits else f"{text[:fits]}… ({len(text) - fits} more characters)"


async def change_set(
    one: ChangeSet,
    *,
    encoding: PositionEncoding,
    redactor: Redactor | None = None,
    patch: str | None = None,
) -> dict[str, JsonValue]:
    """Return a change set in its wire form.

    Args:
        one: The change set.
        encoding: How the client counts characters.
        redactor: Removes secrets from the texts.
        patch: The whole as a patch, when the client asked for that; the hunks are left out then.
    """
    cleaner, room = redactor or Redactor(), _Room()

    def clean(text: str) -> str:
        return room.cut(cleaner.text(text))

    files = [
        await to_thread.run_sync(partial(_file, file, encoding, clean, with_hunks=patch is None))
        for file in one.files
    ]
    encoded: dict[str, JsonValue] = {"id": one.id, "base": one.base, "files": files}
    if patch is not None:
        encoded["patch"] = await to_thread.run_sync(cleaner.text, patch)
    return encoded


def _file(
    file: FileReview, encoding: PositionEncoding, clean: Clean, *, with_hunks: bool
) -> dict[str, JsonValue]:
    hashes: dict[str, JsonValue] = {}
    if file.first is not None:
        hashes["before"] = file.first.sha256
    if file.last is not None:
        hashes["after"] = file.last.sha256
    encoded: dict[str, JsonValue] = {
        "uri": file.path.as_uri(),
        "op": file.op,
        "sha256": hashes,
        "state": "onDisk" if file.last is None or file.last.saved else "unsaved",
        "hunks": _hunks(file, encoding, clean) if with_hunks else [],
    }
    if file.op == "move" and file.origin is not None:
        encoded["oldUri"] = file.origin.as_uri()
    if (file.last or file.first) is not None and file.text is None:
        encoded["binary"] = True
    return encoded


def _hunks(file: FileReview, encoding: PositionEncoding, clean: Clean) -> list[JsonValue]:
    lines = LineIndex(file.text or "", encoding)
    grown = 0
    encoded: list[JsonValue] = []
    for one in file.hunks:
        start, end = lines.position(one.start), lines.position(one.end)
        old = LineIndex(one.old, encoding).position(len(one.old))
        first = start[0] - grown
        encoded.append(
            {
                "id": one.id,
                "before": _range((first, 0), (first + old[0], old[1])),
                "after": _range(start, end),
                "oldText": clean(one.old),
                "newText": clean(_shown(file, one)),
                "state": one.state,
                "toolCall": one.maker.call or "",
            }
        )
        if one.state not in GONE:
            grown += end[0] - start[0] - old[0]
    return encoded


def _shown(file: FileReview, one: Hunk) -> str:
    """Return what stands there now; of what is gone, what stood there."""
    return one.new if one.state in GONE or file.text is None else file.text[one.start : one.end]


def _range(start: tuple[int, int], end: tuple[int, int]) -> dict[str, JsonValue]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }
