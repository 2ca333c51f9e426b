"""Reading of resources: JSON that people write, and reports of what could not be read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn, Protocol

from agent_core.kernel import JsonObject
from agent_core.kernel.json import JsonValue, is_object
from agent_core.kernel.text import readable
from agent_core.kernel.values import Value

ResourceKind = Literal[
    "context", "skill", "prompt", "agent", "extension", "systemPrompt", "settings"
]


class Resource(Value, frozen=True, kw_only=True):
    """Something that was read."""

    kind: ResourceKind
    name: str
    path: Path | None = None


class LoadProblem(Value, frozen=True, kw_only=True):
    """Something that could not be used as it is, and why."""

    message: str
    """One sentence: the error, and its effect. The location is in the other fields."""
    path: Path | None = None
    line: int | None = None
    """Counted from 1."""
    level: Literal["warning", "error"] = "warning"
    """`error`: it was left out."""

    def __str__(self) -> str:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        """Format the problem with its location, as compilers do."""
        where = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        return readable(f"{where}: {self.message}" if where else self.message)


class LoadedResources(Value, frozen=True, kw_only=True):
    """Result of reading resources."""

    resources: tuple[Resource, ...] = ()
    problems: tuple[LoadProblem, ...] = ()

    def plus(self, other: "LoadedResources") -> "LoadedResources":
        """Return both."""
        return LoadedResources(
            resources=self.resources + other.resources, problems=self.problems + other.problems
        )


class Reloadable(Protocol):
    """Something that can be read anew while a session is open."""

    async def reload(self) -> LoadedResources:
        """Read it again and apply it. Never raises: an error is a problem in the result."""
        ...


BLANKS = " \t\r\n"


class JsonTextPosition(Value, frozen=True, kw_only=True):
    """A point in a text, both counted from 1; columns count characters."""

    line: int
    column: int


class JsonTextError(ValueError):
    """The text is not what it should be, and where."""

    def __init__(self, message: str, place: JsonTextPosition | None) -> None:
        super().__init__(message)
        self.place = place


def read_object(text: str) -> JsonObject:
    """Read a JSON object; a text of nothing but white space is an empty one.

    Raises:
        JsonTextError: It is no JSON, or no object.
    """
    if not text.strip():
        return {}
    try:
        found: JsonValue = json.loads(text, parse_constant=_refuse)  # pyright: ignore[reportAny] - a parser gives Any
    except json.JSONDecodeError as error:
        place = JsonTextPosition(line=error.lineno, column=error.colno)
        message = f"is not valid JSON: {error.msg}"
        raise JsonTextError(message, place) from error
    except RecursionError as error:
        raise JsonTextError("is nested too deeply to be read", None) from error
    except ValueError as error:
        message = f"is not valid JSON: {error}"
        raise JsonTextError(message, None) from error
    if not is_object(found):
        raise JsonTextError("must hold a JSON object: { … }", place_at(text, _skip(text, 0)))
    return found


def find_key(text: str, path: Sequence[str]) -> JsonTextPosition | None:
    """Find the key at the end of a path of keys; None when it is not there.

    Of a key that is given twice the last counts, as it does for the value.

    Args:
        text: A JSON text that could be read.
        path: Keys from the outermost object inwards.
    """
    start = _skip(text, 0)
    found: int | None = None
    for key in path:
        if start >= len(text) or text[start] != "{":
            return None
        member = _member(text, start, key)
        if member is None:
            return None
        found, start = member
    return None if found is None else place_at(text, found)


def place_at(text: str, index: int) -> JsonTextPosition:
    """Turn an index into a line and a column."""
    before = text[:index]
    return JsonTextPosition(
        line=before.count("\n") + 1, column=index - (before.rfind("\n") + 1) + 1
    )


def _member(text: str, start: int, wanted: str) -> tuple[int, int] | None:
    """Return the index of a key and of its value in the object that starts there."""
    found: tuple[int, int] | None = None
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, end = _value(text, at)
        value_at = _skip(text, _skip(text, end) + 1)
        if key == wanted:
            found = (at, value_at)
        _, end = _value(text, value_at)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _value(text: str, at: int) -> tuple[object, int]:
    """Read the value that starts there; give the index behind it too."""
    return json.JSONDecoder().raw_decode(text, at)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def _refuse(name: str) -> NoReturn:
    message = f"{name} is not a JSON value"
    raise ValueError(message)
