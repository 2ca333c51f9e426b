"""Changes single values of the user's settings.json, and nothing else in it."""

import json
import os
import stat
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
    real = path.resolve()
    try:
        with locked(real):
            text, mode = _read(real)
            made = json.dumps(_changed(read_object(text), changes), indent=2, ensure_ascii=False)
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


def _read(real: Path) -> tuple[str, int]:
    try:
        with real.open("rb") as file:
            return file.read().decode("utf-8-sig"), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return "", NEW_MODE
