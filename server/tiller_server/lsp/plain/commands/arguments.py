"""Arguments that people and editors pass to a command: words, a place, or one object with names; pure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tiller_server.lsp.jsonrpc.messages import as_array, as_object
from tiller_server.lsp.plain.task_prompts import TaskDiagnostic, TaskLocation, problem_of
from tiller_server.lsp.sessions.client import invalid_params

SHOWN_CHARS: Final = 120

CommandArguments = Sequence[object]


def text_argument(name: str, arguments: CommandArguments, *, key: str = "text") -> str:
    """Return the words behind a command: strings and numbers, or one object that has them under a key.

    Raises:
        RpcError: It is something else.
    """
    if len(arguments) == 1 and as_object(arguments[0]) is not None:
        return str(object_of(name, arguments, members={key: str}).get(key, ""))
    if all(_is_plain(one) for one in arguments):
        return " ".join(str(one) for one in arguments).strip()
    message = f"{name} takes words, or {{{key!r}: …}}, got {shown(list(arguments))}"
    raise invalid_params(message)


def object_of(
    name: str, arguments: CommandArguments, *, members: Mapping[str, type | tuple[type, ...]]
) -> Mapping[str, object]:
    """Return the one object behind a command, with the members that are known; empty when nothing is behind it.

    Raises:
        RpcError: It is no object, or a member is unknown or of the wrong kind.
    """
    if not arguments:
        return {}
    given = as_object(arguments[0])
    names = ", ".join(f"`{one}`" for one in members)
    if given is None or len(arguments) > 1:
        message = f"{name} takes one object with {names}, got {shown(list(arguments))}"
        raise invalid_params(message)
    for key, value in given.items():
        kind = members.get(key)
        if kind is None:
            message = f"{name} knows no {key!r}; it takes {names}"
            raise invalid_params(message)
        if value is not None and (not isinstance(value, kind) or _is_odd_bool(value, kind)):
            message = f"{name}: {key} cannot be {shown(value)}"
            raise invalid_params(message)
    return {key: value for key, value in given.items() if value is not None}


def check_nothing(name: str, arguments: CommandArguments) -> None:
    """Check that a command has no arguments.

    Raises:
        RpcError: It has some.
    """
    if arguments:
        message = f"{name} takes nothing behind it, got {list(arguments)!r:.120}"
        raise invalid_params(message)


def place_of(
    name: str,
    arguments: CommandArguments,
    *,
    root: Path | None,
    make: Callable[..., TaskLocation | None],
) -> TaskLocation | None:
    """Read a place: `PATH [FIRST [LAST]]` with lines from 1, or an object with `uri` or `path`, and `range` or `line`.

    Args:
        name: Name of the command, for error messages.
        arguments: Arguments of the command.
        root: Folder that relative paths start from.
        make: Creates a place from a URI and 0-based lines; returns None when it is no file.

    Returns:
        None when the arguments name no place.

    Raises:
        RpcError: The arguments are no valid place; the text describes a valid one.
    """
    if not arguments:
        return None
    uri, lines0 = (
        _from_object(name, arguments, root)
        if as_object(arguments[0]) is not None
        else _from_tokens(name, arguments, root)
    )
    if uri is None:
        return None
    place = make(uri, lines0)
    if place is None:
        message = f"{name}: {shown(uri)} is no file"
        raise invalid_params(message)
    return place


def problems_of(arguments: CommandArguments) -> tuple[TaskDiagnostic, ...]:
    """Return the diagnostics that a code action put behind its command."""
    given = as_object(arguments[0]) if arguments else None
    listed = as_array((given or {}).get("diagnostics")) or ()
    found = (problem_of(as_object(one) or {}) for one in listed)
    return tuple(one for one in found if one is not None)


def lines_of(value: object) -> tuple[int, int] | None:
    """Return the lines of a range, from 0; one that ends at the beginning of a line does not reach into it."""
    given = as_object(value) or {}
    start, end = as_object(given.get("start")) or {}, as_object(given.get("end")) or {}
    first, last = _line(start.get("line")), _line(end.get("line"))
    if first is None or last is None:
        return None
    if last > first and end.get("character") == 0:
        last -= 1
    return first, max(first, last)


def shown(value: object) -> str:
    """Show an argument in a complaint, shortened."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _from_object(
    name: str, arguments: CommandArguments, root: Path | None
) -> tuple[str | None, tuple[int, int] | None]:
    given = object_of(
        name,
        arguments,
        members={
            "uri": str, "path": str, "range": dict, "line": int, "lastLine": int, "diagnostics": list,
        },
    )  # fmt: skip
    lines0 = None
    if "range" in given and (lines0 := lines_of(given["range"])) is None:
        message = f"{name}: range cannot be {shown(given['range'])}"
        raise invalid_params(message)
    line, last = given.get("line"), given.get("lastLine")
    if isinstance(line, int):
        lines0 = _lines0(name, line, last if isinstance(last, int) else line)
    uri, path = given.get("uri"), given.get("path")
    if isinstance(uri, str):
        return uri, lines0
    return _uri(name, path, root) if isinstance(path, str) else None, lines0


def _from_tokens(
    name: str, arguments: CommandArguments, root: Path | None
) -> tuple[str, tuple[int, int] | None]:
    match [_number(one) for one in arguments]:
        case [str(path)]:
            return _uri(name, path, root), None
        case [str(path), int(line)]:
            return _uri(name, path, root), _lines0(name, line, line)
        case [str(path), int(first), int(last)]:
            return _uri(name, path, root), _lines0(name, first, last)
        case _:
            message = f"{name} takes a path and lines from 1, got {shown(list(arguments))}"
            raise invalid_params(message)


def _uri(name: str, path: str, root: Path | None) -> str:
    if path.startswith("file:"):
        return path
    if not path or "\0" in path:
        message = f"{name}: {shown(path)} is no path"
        raise invalid_params(message)
    full = Path(path)
    if not full.is_absolute():
        if root is None:
            message = f"{name}: no folder is open, so the path {shown(path)} must be absolute"
            raise invalid_params(message)
        full = root / full
    return full.as_uri()


def _lines0(name: str, first: int, last: int) -> tuple[int, int]:
    if not 1 <= first <= last:
        message = f"{name}: lines {first} to {last} make no sense; they count from 1"
        raise invalid_params(message)
    return first - 1, last - 1


def _number(value: object) -> object:
    """Convert the text of a number to the number: some editors quote every argument. Other values stay."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:  # noqa: PLR2004 - digits
        return int(value)
    return value


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _line(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    return value


def _is_odd_bool(value: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, bool) and kind is int
