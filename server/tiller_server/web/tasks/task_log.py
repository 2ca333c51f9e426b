"""Which tasks were created: one line each in a file, for all servers of the user."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.private_file import locked, replace_text
from agent_core.kernel.values import Value, threadsafe

KEPT: Final = 1000
"""The newest tasks; older ones are dropped from the file, their sessions stay."""


class TaskRecord(Value, frozen=True, kw_only=True):
    """A task that was created. Its state is that of its run, which its session has."""

    id: str
    """Also the `messageId` of its prompt, which makes the prompt idempotent."""
    session: str
    at_ms: int
    key: str | None = None
    """Digest of the `Idempotency-Key`."""
    body: str = ""
    """Digest of the request."""
    is_handled: bool = False
    """A command of an extension handled the prompt, of which the session knows nothing."""


class TaskLog:
    """The file of tasks. All methods block."""

    def __init__(self, path: Path) -> None:
        """Use a file, which need not exist."""
        self._path = path

    def newest_first(self) -> Sequence[TaskRecord]:
        """Return all tasks.

        Raises:
            OSError: The file cannot be read.
        """
        return [*reversed(self._read().values())]

    def add(self, record: TaskRecord) -> TaskRecord:
        """Store a task; return the one with the same key, if there is one already.

        Raises:
            OSError: The file cannot be written.
        """
        with locked(self._path):
            records = self._read()
            for other in records.values():
                if record.key is not None and other.key == record.key:
                    return other
            self._write({**records, record.id: record})
        return record

    def put(self, record: TaskRecord) -> None:
        """Replace a task.

        Raises:
            OSError: The file cannot be written.
        """
        with locked(self._path):
            self._write({**self._read(), record.id: record})

    def remove(self, id_: str) -> None:
        """Forget a task whose prompt was refused.

        Raises:
            OSError: The file cannot be written.
        """
        with locked(self._path):
            self._write({key: one for key, one in self._read().items() if key != id_})

    def _read(self) -> dict[str, TaskRecord]:
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        records: dict[str, TaskRecord] = {}
        for line in lines:
            try:
                record = msgspec.json.decode(line, type=threadsafe(TaskRecord))
            except msgspec.DecodeError:
                continue  # of another version, or damaged
            records[record.id] = record
        return records

    def _write(self, records: Mapping[str, TaskRecord]) -> None:
        kept = [*records.values()][-KEPT:]
        replace_text(self._path, "".join(f"{msgspec.json.encode(one).decode()}\n" for one in kept))
