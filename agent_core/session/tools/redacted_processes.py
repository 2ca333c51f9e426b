"""Output of processes, redacted of the program's secrets before it is truncated, shown or stored on disk."""

import codecs
from collections.abc import Mapping
from pathlib import Path

from agent_core.kernel.redaction.redactor import Redactor
from agent_core.workspace import KillReport, Process, ProcessEnd, Processes
from agent_core.workspace.permissions.call_permission import Needs

NOTHING: frozenset[Needs] = frozenset()


class RedactedProcesses:
    """A workspace's processes; no byte of a held secret comes out of them, wherever their output is cut into chunks."""

    def __init__(self, processes: Processes, redactor: Redactor) -> None:
        self._processes = processes
        self._redactor = redactor

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NOTHING,
    ) -> Process:
        """Start, and read through the redactor."""
        process = await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        return _Redacted(process, self._redactor) if self._redactor.holds_any else process

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


class _Redacted:
    def __init__(self, process: Process, redactor: Redactor) -> None:
        self._process = process
        self._stream = redactor.held_stream()
        # What is no UTF-8 comes out again byte for byte.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        while data := await self._process.read():
            if clean := self._stream.push(self._decoder.decode(data)):
                return clean.encode("utf-8", "surrogateescape")
        rest = self._stream.push(self._decoder.decode(b"", final=True)) + self._stream.finish()
        return rest.encode("utf-8", "surrogateescape")

    async def wait(self) -> ProcessEnd:
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        return await self._process.end(grace_s=grace_s)
