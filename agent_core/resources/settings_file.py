"""Changes single values of the user's settings.json, and nothing else in it."""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ConfigError
from agent_core.resources.json_text import JsonTextError, read_object

NEW_MODE = 0o644


def change_settings_now(path: Path, changes: JsonObject) -> None:
    """Set keys of the outermost object, blocking; keys that are not named stay, also unknown ones.

    The file is replaced whole or not at all; a link stays a link.

    Raises:
        ConfigError: The file cannot be read, is no JSON object, or cannot be written; it is as it was.
    """
    real = path.resolve()
    try:
        text, mode = _read(real)
        made = json.dumps({**read_object(text), **changes}, indent=2, ensure_ascii=False)
        _replace(real, made + "\n", mode)
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
        words = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        message = f"{path} cannot be changed ({words}); nothing was changed"
        raise ConfigError(message, path=path) from error


def _read(real: Path) -> tuple[str, int]:
    try:
        with real.open("rb") as file:
            return file.read().decode("utf-8-sig"), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return "", NEW_MODE


def _replace(real: Path, text: str, mode: int) -> None:
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd, temporary = mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            _ = file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        _ = Path(temporary).replace(real)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
