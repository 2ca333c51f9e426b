"""Runs shell scripts on the other side of SSH or in a container, through one command prefix."""

import os
import shlex
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import anyio

from agent_core.kernel.errors import (
    AccessRefused,
    ProcessGone,
    WorkspaceError,
    WorkspaceUnreachable,
)
from agent_core.workspace.processes.disk_processes import DiskInteractiveProcess, DiskProcesses

SILENCE_S: Final = 60.0
"""How long the other side may be silent in an operation on files."""
END_S: Final = 3.0
ERRORS_KEPT: Final = 2_000
MOST_ARGUMENT_BYTES: Final = 131_000
"""Linux takes 131,072 bytes as one argument."""
CANNOT_READ: Final = 9
"""Exit code of a script that failed in the middle of its output, and not because of the connection."""
PIECE_BYTES: Final = 65_536
STATES: Final = (b"ok", b"error")
NEWLINE: Final = 0x0A
FIRST_PLAIN: Final = 0x20
LAST_PLAIN: Final = 0x7E


class CommandPrefix(Protocol):
    """How a script is run elsewhere."""

    @property
    def name(self) -> str:
        """The other side, for messages: `ssh:HOST`."""
        ...

    @property
    def advice(self) -> str:
        """Advice to a person when it is not reached, as the end of a sentence."""
        ...

    async def argv(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the command of this machine that runs a script of `sh` with arguments there; connects if need be.

        Raises:
            WorkspaceUnreachable: There is no connection.
        """
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


class RemoteScript:
    """A script that runs on the other side."""

    def __init__(self, process: DiskInteractiveProcess, remote: "Remote") -> None:
        self._process = process
        self._remote = remote
        self._said = b""
        self._rest = b""

    async def write(self, data: bytes) -> None:
        """Send input; it is lost when the script does not read any more, which its answer shows."""
        view = memoryview(data)
        with suppress(ProcessGone):
            for start in range(0, len(view), PIECE_BYTES):
                with self._remote.patience():
                    await self._process.write(bytes(view[start : start + PIECE_BYTES]))

    def finish(self) -> None:
        """Close its input."""
        self._process.finish()

    async def read(self) -> bytes:
        """Return the next bytes of its output; empty at the end.

        Raises:
            WorkspaceUnreachable: It is silent for too long.
        """
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        with self._remote.patience():
            return await self._process.read()

    async def read_forever(self) -> bytes:
        """Return the next bytes of its output, however long that takes."""
        rest, self._rest = self._rest, b""
        return rest or await self._process.read()

    async def status(self) -> list[str]:
        """Return the words of the status line: the state, and figures.

        Lines before it are left out: login shells with start files that write something put them there.

        Raises:
            WorkspaceUnreachable: It ended without one: the connection was lost, or there never was one.
        """
        text = b""
        while True:
            line, end, rest = text.partition(b"\n")
            if end and line.split(b" ", 1)[0] in STATES:
                self._rest = rest
                return line.decode("utf-8", "replace").split()
            if end:
                text = rest
                continue
            data = await self.read()
            if not data:
                raise await self.lost()
            text += data

    async def check_end(self) -> int:
        """Wait for the end after all output was read, and return 0, or `CANNOT_READ`.

        Raises:
            WorkspaceUnreachable: The connection was lost, and output may be missing.
        """
        with self._remote.patience():
            end = await self._process.wait()
        if end.exit_code not in {0, CANNOT_READ}:
            raise await self.lost()
        return end.exit_code

    async def lost(self) -> WorkspaceUnreachable:
        """Return the error for a lost connection, with what the program of the connection reported."""
        with anyio.move_on_after(END_S):
            while data := await self._process.read_errors():
                self._said = (self._said + data)[-ERRORS_KEPT:]
        return self._remote.unreachable(self._said.decode("utf-8", "replace"))

    async def end(self) -> None:
        """End it here; there its input ends."""
        with anyio.move_on_after(END_S, shield=True):
            _ = await self._process.end(grace_s=0)


class Remote:
    """The other side of a remote workspace."""

    def __init__(
        self, prefix: CommandPrefix, *, env: Mapping[str, str], silence_s: float = SILENCE_S
    ) -> None:
        """Wrap a command prefix.

        Args:
            prefix: How scripts are run.
            env: The environment of this machine for the programs of the prefix.
            silence_s: How long the other side may be silent.
        """
        self._prefix = prefix
        self._env = env
        self._silence_s = silence_s
        self._processes = DiskProcesses()

    @property
    def name(self) -> str:
        """The other side, for messages."""
        return self._prefix.name

    async def close(self) -> None:
        """End the connection."""
        await self._prefix.close()

    async def start(self, script: str, *arguments: str) -> DiskInteractiveProcess:
        """Start a script; the caller ends the process.

        Raises:
            WorkspaceUnreachable: There is no connection.
            AccessRefused: The script with its arguments is too long, or has characters that cannot be passed on.
        """
        if any("\0" in part for part in arguments):
            message = "the command cannot be passed on: leave out NUL and broken characters"
            raise AccessRefused(message)
        try:
            argv = await self._prefix.argv(script, arguments)
            size = max(len(os.fsencode(part)) for part in argv)
        except UnicodeEncodeError as error:
            message = (
                f"the command cannot be passed on ({error}): leave out NUL and broken characters"
            )
            raise AccessRefused(message) from error
        if size > MOST_ARGUMENT_BYTES:
            message = f"The command is too long ({size} bytes as it is sent, E2BIG): write it to a file and run that"
            raise AccessRefused(message)
        return await self._processes.talk(argv, cwd=Path("/"), env=self._env, given={})

    @asynccontextmanager
    async def script(self, script: str, *arguments: str) -> AsyncGenerator[RemoteScript]:
        """Run a script while the context is entered."""
        running = RemoteScript(await self.start(script, *arguments), self)
        try:
            yield running
        finally:
            await running.end()

    async def run(
        self, script: str, *arguments: str, stdin: bytes = b""
    ) -> tuple[list[str], bytes]:
        """Run a script to its end; return the words of its first line, and the rest of its output.

        Raises:
            WorkspaceUnreachable: The connection was lost, or there is none.
        """
        async with self.script(script, *arguments) as running:
            failure: WorkspaceError | None = None
            status: list[str] = []
            output: list[bytes] = []
            async with anyio.create_task_group() as group:
                group.start_soon(_send, running, stdin)
                try:
                    status = await running.status()
                    while data := await running.read():
                        output.append(data)
                    code = await running.check_end()
                    if code == CANNOT_READ:
                        status = ["error", "EIO"]
                except WorkspaceError as error:
                    failure = error  # not raised in the group, which would wrap it
                group.cancel_scope.cancel()
            if failure is not None:
                raise failure
            return status, b"".join(output)

    @contextmanager
    def patience(self) -> Generator[None]:
        """Limit the time of the block to what the other side may be silent.

        Raises:
            WorkspaceUnreachable: The block took longer.
        """
        with anyio.move_on_after(self._silence_s) as scope:
            yield
        if scope.cancelled_caught:
            why = f"no answer for {self._silence_s:g} s"
            raise self.unreachable(why)

    def unreachable(self, said: str) -> WorkspaceUnreachable:
        """Return the error for a connection that was lost or could not be made.

        Args:
            said: Output of the program of the connection; its last line is shown.
        """
        lines = [line.strip() for line in said.splitlines()]
        why = next(
            (line for line in reversed(lines) if line and not line.startswith("tiller ")), ""
        )
        return unreachable(self._prefix, why or "the connection was cut")


def unreachable(prefix: CommandPrefix, why: str) -> WorkspaceUnreachable:
    """Return the error for another side that cannot be reached."""
    return WorkspaceUnreachable(
        f"{prefix.name} cannot be reached: {why}.",
        advice=f" The next call connects again; if that fails, {prefix.advice}.",
    )


async def _send(running: RemoteScript, data: bytes) -> None:
    with suppress(WorkspaceError):
        await running.write(data)
    running.finish()


def one_argument(script: str, arguments: Sequence[str]) -> str:
    """Return a command line for any login shell that runs a script with `sh`.

    Quotes, backslashes and the like are written in octal, since fish and csh read them in other ways than `sh`.
    """
    whole = f"set -- {shlex.join(arguments)}\n{script}"
    encoded = "".join(map(_encoded, os.fsencode(whole)))
    return f"exec sh -c 'eval \"$(printf %b \"$0\")\"' '{encoded}'"


def _encoded(byte: int) -> str:
    """Return a byte for `printf %b` inside of single quotes."""
    if byte == NEWLINE:
        return "\\n"
    return (
        chr(byte)
        if FIRST_PLAIN <= byte <= LAST_PLAIN and chr(byte) not in "'\\!"
        else f"\\0{byte:03o}"
    )
