"""Brings the lines of older session files to format version 3: pure."""

from collections.abc import Callable, Container, Mapping, Sequence

from agent_core.kernel import JsonObject, JsonValue
from agent_core.transcript.entries import FORMAT_VERSION

FIRST_VERSION = 1
"""Version of a header without a version."""


def version_of(header: JsonObject) -> int:
    """Return which version a file with this header has."""
    version = header.get("version")
    return version if isinstance(version, int) else FIRST_VERSION


def migrate(
    lines: Sequence[JsonObject], *, new_id: Callable[[Container[object]], str]
) -> tuple[JsonObject, ...]:
    """Bring the lines of a file to today's version; lines of today or later stay as they are.

    Args:
        lines: The header, then the entries.
        new_id: Draws an id that is not among the given ones, for versions in which entries had none.
    """
    if not lines or version_of(lines[0]) >= FORMAT_VERSION:
        return tuple(lines)
    migrated = [dict(line) for line in lines]
    if version_of(migrated[0]) < 2:  # noqa: PLR2004 - the version it is brought to
        _to_version_2(migrated, new_id=new_id)
    _to_version_3(migrated)
    return tuple(migrated)


def _to_version_2(
    lines: list[dict[str, JsonValue]], *, new_id: Callable[[Container[object]], str]
) -> None:
    """Chain the entries: each follows the one before it."""
    taken: set[str] = set()
    ids: list[str | None] = [None]
    for line in lines[1:]:
        drawn = new_id(taken)
        taken.add(drawn)
        line["id"] = drawn
        line["parentId"] = ids[-1]
        ids.append(drawn)
    for line in lines[1:]:
        place = line.pop("firstKeptEntryIndex", None)
        # The index counts the header; one that leads nowhere keeps nothing, which is the entry's own id.
        if isinstance(place, int):
            inside = 0 < place < len(ids)
            line["firstKeptEntryId"] = ids[place] if inside else line["id"]
    lines[0]["version"] = 2


def _to_version_3(lines: list[dict[str, JsonValue]]) -> None:
    """Rename the role `hookMessage` to `custom` and set the format version, in place."""
    for line in lines[1:]:
        message = line.get("message")
        if isinstance(message, Mapping) and message.get("role") == "hookMessage":
            line["message"] = dict(message) | {"role": "custom"}
    lines[0]["version"] = FORMAT_VERSION
