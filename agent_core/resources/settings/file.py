"""Changes single values of the user's settings.json, and nothing else in it."""

import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.json import is_object
from agent_core.kernel.private_file import locked, replace_text
from agent_core.resources.load_result import JsonTextError, read_object

NEW_MODE = 0o644


def change_settings_now(path: Path, changes: JsonObject) -> None:
    """Set keys, blocking; within objects too, and what is not named stays, also what nobody knows.

    The file is replaced whole or not at all, by one writer at a time; a link stays a link.

    Raises:
        ConfigError: The file cannot be read, is no JSON object, or cannot be written; it is as it was.
    """
    _edit(path, lambda before: _changed(before, changes))


def remove_setting_now(path: Path, keys: Sequence[str]) -> None:
    """Remove a key, given with those of the objects around it; blocking. Nothing changes if it is not there.

    Raises:
        ConfigError: As in `change_settings_now`.
    """
    _edit(path, lambda before: _without(before, keys))


def _edit(path: Path, edit: Callable[[JsonObject], JsonObject]) -> None:
    real = path.resolve()
    try:
        with locked(real):
            text, mode = _read(real)
            before = read_object(text)
            after = edit(before)
            if after != before:
                made = json.dumps(after, indent=2, ensure_ascii=False)
                replace_text(real, made + "\n", mode=mode)
    except JsonTextError as error:
        place = error.place
        where = f"{path}:{place.line}:{place.column}: " if place else f"{path} "
        message = f"{where}{error}; repair it first: nothing was changed"
        raise ConfigError(
            message,
            path=path,
            line=place.line if place else None,
            column=place.column if place else None,
        ) from error
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"{path} cannot be changed ({reason}); nothing was changed"
        raise ConfigError(message, path=path) from error


def _changed(before: JsonObject, changes: JsonObject) -> JsonObject:
    made = dict(before)
    for key, value in changes.items():
        old = made.get(key)
        made[key] = _changed(old, value) if is_object(old) and is_object(value) else value
    return made


def _without(before: JsonObject, keys: Sequence[str]) -> JsonObject:
    first, *rest = keys
    if first not in before:
        return before
    inner = before[first]
    left = {key: value for key, value in before.items() if key != first}
    if not rest or not is_object(inner):
        return before if rest else left
    inner_left = _without(inner, rest)
    # An object that holds nothing any more goes too.
    return {**before, first: inner_left} if inner_left else left


def _read(real: Path) -> tuple[str, int]:
    try:
        with real.open("rb") as file:
            return file.read().decode("utf-8-sig"), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return "", NEW_MODE
