"""A file of what the user said about things of one kind, for their eyes only. Blocking."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.json import as_object, is_object
from agent_core.kernel.private_file import locked, replace_text
from agent_core.resources.json_text import JsonTextError, read_object

VERSION: Final = 1


class DecisionFile:
    """A JSON file with one object of entries by name. Other content of the file is kept."""

    def __init__(self, path: Path, *, section: str, else_: str) -> None:
        """Read and write one file.

        Args:
            path: Path of the file, which need not exist.
            section: The key of the object of entries.
            else_: The consequence of an unreadable file, for its error, for example "no workspace is trusted".
        """
        self._path = path
        self._section = section
        self._else = else_

    def entries(self) -> JsonObject:
        """Return the entries by name; empty when there is no file.

        Raises:
            ConfigError: The file cannot be read, so its entries are unknown.
        """
        return as_object(self._document().get(self._section))

    def change(self, change: Callable[[JsonObject], JsonObject]) -> None:
        """Replace the entries by what a function makes of them, while nobody else writes.

        Raises:
            ConfigError: It cannot be read or written; it is as it was.
        """
        real = Path(os.path.realpath(self._path))
        try:
            with locked(real):
                document = self._document()
                before = as_object(document.get(self._section))
                after = change(before)
                if after != before:
                    whole = {"version": VERSION, **document, self._section: after}
                    replace_text(real, json.dumps(whole, indent=1, ensure_ascii=True) + "\n")
        except OSError as error:
            message = (
                f"{self._path} cannot be changed ({error.strerror or error}); nothing was changed"
            )
            raise ConfigError(message, path=self._path) from error

    def _document(self) -> JsonObject:
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise self._unreadable(reason or str(error)) from error
        try:
            document = read_object(text)
        except JsonTextError as error:
            place = error.place
            where = f" at line {place.line}, column {place.column}" if place else ""
            why = f"{error}{where}"
            raise self._unreadable(why) from error
        version = document.get("version", VERSION)
        if version != VERSION or isinstance(version, bool):
            why = f"it has version {version!r}; this Tiller knows {VERSION}"
            raise self._unreadable(why)
        return document

    def _unreadable(self, why: str) -> ConfigError:
        message = (
            f"{self._path} cannot be read ({why}), so {self._else}: repair it, or move it away"
        )
        return ConfigError(message, path=self._path)


def texts_of(value: JsonValue) -> Mapping[str, str]:
    """Return the texts of an object by name; values that are not texts are left out."""
    if not is_object(value):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}
