"""The memory files of a user: one for the user, one per project, each with one writer at a time."""

import os
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio.to_thread

from agent_core.kernel import Clock
from agent_core.kernel.errors import ConfigError, UsageError
from agent_core.kernel.json import scrub
from agent_core.kernel.private_file import locked, replace_text
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.text import plain
from agent_core.memory.history import USED, MemoryHistory
from agent_core.memory.markdown import read_memory, with_entry, with_use, without_entries
from agent_core.memory.values import (
    MOST_CHARS,
    MemoryDraft,
    MemoryEntry,
    MemoryFile,
    MemoryScope,
    day_of,
)

T = TypeVar("T")
PROJECTS: Final = "projects"
MOST_BYTES: Final = 16_777_216
ID_BYTES: Final = 4
MOST_LISTED: Final = 5
"""Ids in the subject of a change."""


class MemoryFileStore:
    """Reads and writes the memory files."""

    def __init__(
        self, folder: Path, *, env: Mapping[str, str], clock: Clock, redactor: Redactor
    ) -> None:
        """Create the store; nothing is read yet.

        Args:
            folder: The folder of the memory, which need not exist.
            env: The environment of the user, for git.
            clock: Time.
            redactor: Removes secrets from what is written.
        """
        self._folder = folder
        self._clock = clock
        self._redactor = redactor
        self._history = MemoryHistory(folder, env=env)

    @property
    def today(self) -> str:
        """The day in UTC, `YYYY-MM-DD`."""
        return day_of(self._clock.now_ms())

    def path(self, scope: MemoryScope) -> Path:
        """Return the memory file of a scope, which need not exist."""
        if scope.project is None:
            return self._folder / "user.md"
        return self._folder / PROJECTS / scope.project / "memory.md"

    async def read(self, *scopes: MemoryScope) -> MemoryFile:
        """Return the entries of some scopes, and the parts that cannot be read.

        Raises:
            ConfigError: A file cannot be read at all.
        """
        files = [await anyio.to_thread.run_sync(self.read_now, scope) for scope in scopes]
        return MemoryFile(
            entries=tuple(entry for file in files for entry in file.entries),
            problems=tuple(problem for file in files for problem in file.problems),
        )

    def read_now(self, scope: MemoryScope) -> MemoryFile:
        """Do the same for one scope. Blocking.

        Raises:
            ConfigError: The file cannot be read at all.
        """
        path = self.path(scope)
        return read_memory(_content(path), scope=scope, path=path)

    def text_now(self, scope: MemoryScope) -> str:
        """Return the content of the file of a scope; empty: there is none. Blocking.

        Raises:
            ConfigError: The file cannot be read at all.
        """
        return _content(self.path(scope))

    async def find(self, ids: Collection[str], scopes: Sequence[MemoryScope]) -> list[MemoryEntry]:
        """Return entries by their ids.

        Raises:
            UsageError: There is no such entry.
            ConfigError: A file cannot be read at all.
        """
        entries = (await self.read(*scopes)).entries
        by_id = {entry.id: entry for entry in reversed(entries)}
        if missing := [one for one in ids if one not in by_id]:
            message = f"memory has no entry {missing[0]!r}; `tiller memory list` shows the ids"
            raise UsageError(message)
        return [by_id[one] for one in dict.fromkeys(ids)]

    async def add(self, scope: MemoryScope, drafts: Sequence[MemoryDraft]) -> list[MemoryEntry]:
        """Store entries, without secrets. A text that is there already is not stored again.

        Raises:
            UsageError: A text is empty or too long; nothing was stored.
            ConfigError: The file cannot be read or written; nothing was stored.
        """
        checked = [(draft, self.checked(draft.text)) for draft in drafts]

        def change(text: str) -> tuple[str, list[MemoryEntry]]:
            entries = read_memory(text, scope=scope).entries
            existing = {_key(one): one for one in entries if not one.is_expired(self.today)}
            stored: list[MemoryEntry] = []
            for draft, clean in checked:
                entry = self._entry(draft, clean, scope)
                first = existing.setdefault(_key(entry), entry)
                stored.append(first)
                if first is entry:
                    text = with_entry(text, entry)
            return text, stored

        added = await anyio.to_thread.run_sync(self._change, scope, change)
        await self._history.record(f"Add {_listed(added)}")
        return added

    async def forget(self, entries: Sequence[MemoryEntry]) -> None:
        """Remove entries; the history of the folder keeps them.

        Raises:
            ConfigError: A file cannot be read or written.
        """
        for scope in dict.fromkeys(one.scope for one in entries):
            ids = {one.id for one in entries if one.scope == scope}

            def change(text: str, ids: Collection[str] = ids) -> tuple[str, None]:
                return without_entries(text, ids), None

            await anyio.to_thread.run_sync(partial(self._change, scope, change))
        await self._history.record(f"Remove {_listed(entries)}")

    async def mark_used(self, entries: Sequence[MemoryEntry]) -> None:
        """Record that entries were read today, if that is not recorded yet.

        Raises:
            ConfigError: A file cannot be read or written.
        """
        today = self.today
        stale = [one for one in entries if one.used != today]
        for scope in dict.fromkeys(one.scope for one in stale):
            ids = {one.id for one in stale if one.scope == scope}

            def change(text: str, ids: Collection[str] = ids) -> tuple[str, None]:
                return with_use(text, ids, today), None

            await anyio.to_thread.run_sync(partial(self._change, scope, change))
        if stale:
            await self._history.record(USED)

    async def undo(self) -> str | None:
        """Revert the last change of the folder; return its subject, None if there is none.

        Raises:
            UsageError: There is no git, or it cannot take the change back.
        """
        return await self._history.undo()

    def _change(self, scope: MemoryScope, change: Callable[[str], tuple[str, T]]) -> T:
        """Replace a file by what a function makes of it, while nobody else writes. Blocking."""
        path = Path(os.path.realpath(self.path(scope)))
        try:
            with locked(self._folder / "memory"), locked(path):
                before = _content(path)
                after, result = change(before)
                if after != before:
                    replace_text(path, after)
                return result
        except OSError as error:
            message = f"{path} cannot be changed ({error.strerror or error}); nothing was stored"
            raise ConfigError(message, path=path) from error

    def checked(self, text: str) -> str:
        """Return a text as it would be stored: without secrets and hidden characters.

        Raises:
            UsageError: It is empty or too long.
        """
        clean = plain(scrub(self._redactor.text(text))).strip()
        if not clean:
            message = "there is no text to remember"
            raise UsageError(message)
        if len(clean) > MOST_CHARS:
            message = f"the text has {len(clean)} characters; memory keeps at most {MOST_CHARS} per entry: shorten it, or write it into AGENTS.md"
            raise UsageError(message)
        return clean

    def _entry(self, draft: MemoryDraft, text: str, scope: MemoryScope) -> MemoryEntry:
        return MemoryEntry(
            id=secrets.token_hex(ID_BYTES),
            scope=scope,
            text=text,
            kind=draft.kind,
            path=draft.path,
            origin=draft.origin,
            session=draft.session,
            source=draft.source,
            trust=draft.trust,
            created=self.today,
            expires=draft.expires,
            fields=draft.fields,
            line=0,
        )


def _listed(entries: Sequence[MemoryEntry]) -> str:
    few = len(entries) <= MOST_LISTED
    return ", ".join(one.id for one in entries) if few else f"{len(entries)} entries"


def _key(entry: MemoryEntry) -> tuple[str, str, str | None, str]:
    """Return what two entries with the same content share."""
    text = " ".join(entry.text.split()).casefold()
    return entry.kind, text, entry.path, entry.fields.get("fingerprint", "")


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        message = f"the memory file {path} cannot be read ({error.strerror or error})"
        raise ConfigError(message, path=path) from error
    if len(content) > MOST_BYTES:
        message = f"the memory file {path} has more than {MOST_BYTES} bytes; remove old entries"
        raise ConfigError(message, path=path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = (
            f"the memory file {path} is not UTF-8 text (line {line}); repair it, or move it away"
        )
        raise ConfigError(message, path=path, line=line) from error
