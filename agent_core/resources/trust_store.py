"""Keeps what the user said about workspaces in `trust.json`, for their eyes only. Blocking."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from agent_core.kernel import JsonObject, JsonValue, rfc3339
from agent_core.kernel.errors import ConfigError
from agent_core.kernel.json import is_object
from agent_core.kernel.own_file import locked, replace_text
from agent_core.resources.evidence import Evidence
from agent_core.resources.json_text import JsonTextError, read_object

VERSION: Final = 1
Said = Literal["trusted", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What the user said about a workspace, and what they saw then."""

    said: Said
    at: str
    """RFC 3339."""
    hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Small files as they were, to show what has changed."""


class TrustStore:
    """The words about all workspaces of a user."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def word(self, root: Path) -> Word | None:
        """Give what was said about a workspace; None for nothing.

        Raises:
            ConfigError: The file cannot be read: nobody can say what is trusted, so nothing is.
        """
        return self.words().get(str(root))

    def words(self) -> Mapping[str, Word]:
        """Give everything that was said, by folder; an entry that is not understood counts as nothing.

        Raises:
            ConfigError: As `word`.
        """
        folders = self._document().get("folders")
        if not is_object(folders):
            return {}
        read = {name: _word(entry) for name, entry in folders.items()}
        return {name: word for name, word in read.items() if word is not None}

    def say(self, root: Path, said: Said, *, seen: Evidence, at_ms: int) -> None:
        """Keep what the user says; what was said before about the workspace is replaced.

        Raises:
            ConfigError: The file cannot be read or written; it is as it was.
        """
        made: JsonObject = {
            "said": said,
            "at": rfc3339(at_ms),
            "hashes": dict(seen.hashes),
            "texts": {name: one.text for name, one in seen.files.items() if one.text is not None},
        }

        def change(folders: JsonObject) -> JsonObject:
            before = folders.get(str(root))
            return {**folders, str(root): {**before, **made} if is_object(before) else made}

        self._change(change)

    def forget(self, root: Path) -> bool:
        """Forget what was said about a workspace; tells whether there was anything.

        Raises:
            ConfigError: As `say`.
        """
        found = False

        def change(folders: JsonObject) -> JsonObject:
            nonlocal found
            found = str(root) in folders
            return {name: entry for name, entry in folders.items() if name != str(root)}

        self._change(change)
        return found

    def _change(self, change: Callable[[JsonObject], JsonObject]) -> None:
        real = Path(os.path.realpath(self._path))
        try:
            with locked(real):
                document = self._document()
                folders = document.get("folders")
                before: JsonObject = folders if is_object(folders) else {}
                after = change(before)
                if after != before:
                    whole = {"version": VERSION, **document, "folders": after}
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
            words = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise self._unreadable(words or str(error)) from error
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
        message = f"{self._path} cannot be read ({why}), so no workspace is trusted: repair it, or move it away"
        return ConfigError(message, path=self._path)


def _word(entry: JsonValue) -> Word | None:
    if not is_object(entry):
        return None
    said, at = entry.get("said"), entry.get("at")
    if said not in {"trusted", "refused"}:
        return None
    return Word(
        said="trusted" if said == "trusted" else "refused",
        at=at if isinstance(at, str) else "",
        hashes=_texts(entry.get("hashes")),
        texts=_texts(entry.get("texts")),
    )


def _texts(value: JsonValue) -> Mapping[str, str]:
    if not is_object(value):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}
