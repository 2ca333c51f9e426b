"""Command prefixes: `ssh` with one shared connection, and `exec` of a container engine."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import anyio
from anyio import to_thread

from agent_core.workspace.permissions.policy.commands.programs import find_outside_program
from agent_core.workspace.processes.disk_processes import DiskInteractiveProcess, DiskProcesses
from agent_core.workspace.remote.transport import ERRORS_KEPT, one_argument, unreachable

CONNECT_S: Final = 15
KEEP_ALIVE_S: Final = 15
KEEP_ALIVES: Final = 3
END_S: Final = 3.0
NO_BRACKETS: Mapping[int, None] = {ord("["): None, ord("]"): None}
"""`ssh` takes an IPv6 address without them."""
READY: Final = b"tiller-ready\n"
SSH_OPTIONS: Final = (
    *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}"),
    *("-o", "LogLevel=ERROR", "-o", "RemoteCommand=none", "-o", "ClearAllForwardings=yes"),
    *("-o", "ForwardAgent=no", "-o", "ForwardX11=no"),
)
"""No questions: there is no terminal. The agent is not lent to a machine on which a model runs commands. Whether the host is the right one is decided by the user's own known hosts."""


class SshPrefix:
    """One connection to a host, which all scripts share; it is made anew when it has ended."""

    def __init__(
        self,
        host: str,
        *,
        env: Mapping[str, str],
        options: Sequence[str] = (),
        keep_alive_s: int = KEEP_ALIVE_S,
    ) -> None:
        """Create the prefix; there is no connection yet.

        Args:
            host: As the user's ssh configuration knows it.
            env: The environment of `ssh`: its PATH, HOME and agent.
            options: More options of `ssh`, before all others.
            keep_alive_s: After so many seconds of silence the host is asked whether it is there, three times.
        """
        self._host = host
        self._target = host.translate(NO_BRACKETS)
        self._env = env
        self._options = (
            *(*options, *SSH_OPTIONS, "-o", f"ServerAliveInterval={keep_alive_s}"),
            *("-o", f"ServerAliveCountMax={KEEP_ALIVES}"),
        )
        self._processes = DiskProcesses()
        self._folder: str | None = None
        self._master: DiskInteractiveProcess | None = None
        self._turn = anyio.Lock()

    @property
    def name(self) -> str:
        """The other side, for messages."""
        return f"ssh:{self._host}"

    @property
    def advice(self) -> str:
        """Return what a person can do when it is not reached."""
        return f"check with `ssh {self._host} true` in a terminal that the host answers without a question"

    @property
    def master_pid(self) -> int | None:
        """The process that holds the connection; None: there is none."""
        return None if self._master is None else self._master.pid

    async def argv(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs a script there; connects if the connection has ended."""
        line = one_argument(script, arguments)
        program, socket = await self._connected()
        return (
            *(program, *self._options, "-o", "ControlMaster=no", "-o", f"ControlPath={socket}"),
            *("--", self._target, line),
        )

    async def close(self) -> None:
        """End the connection."""
        async with self._turn:
            await self._end_master()
            if self._folder is not None:
                await to_thread.run_sync(_remove_folder, self._folder)
                self._folder = None

    async def _connected(self) -> tuple[str, str]:
        async with self._turn:
            program = await to_thread.run_sync(_find, "ssh", self._env)
            if program is None:
                raise unreachable(self, "there is no program `ssh` on the PATH")
            if self._folder is None:
                # A socket's path has at most 104 characters, so it is not among the user's own folders.
                self._folder = await to_thread.run_sync(_make_folder)
            socket = f"{self._folder}/s"
            if self._master is None or _is_over(self._master):
                await self._end_master()
                self._master = await self._connect(program, socket)
            return program, socket

    async def _connect(self, program: str, socket: str) -> DiskInteractiveProcess:
        line = one_argument("printf 'tiller-ready\\n'; exec cat >/dev/null", ())
        argv = (
            *(program, *self._options, "-o", "ControlMaster=yes", "-o", f"ControlPath={socket}"),
            *("-o", "ControlPersist=no", "--", self._target, line),
        )
        process = await self._processes.talk(argv, cwd=Path("/"), env=self._env, given={})
        output, errors = b"", b""
        is_ready = False
        try:
            # Twice: the key exchange has a time limit of its own in newer versions only.
            with anyio.move_on_after(2 * CONNECT_S):
                while READY not in output and (data := await process.read()):
                    output += data
                is_ready = READY in output
                while not is_ready and (data := await process.read_errors()):
                    errors = (errors + data)[-ERRORS_KEPT:]
        finally:
            if not is_ready:
                with anyio.move_on_after(END_S, shield=True):
                    _ = await process.end(grace_s=0)
        if is_ready:
            return process
        lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines()]
        why = next((line for line in reversed(lines) if line), "no answer in time")
        raise unreachable(self, why)

    async def _end_master(self) -> None:
        if self._master is not None:
            with anyio.move_on_after(END_S, shield=True):
                _ = await self._master.end(grace_s=0)
            self._master = None
        if self._folder is not None:
            with suppress(FileNotFoundError):
                await anyio.Path(self._folder, "s").unlink()


class ContainerPrefix:
    """A container that runs."""

    def __init__(
        self,
        engine: Literal["docker", "podman"],
        container: str,
        *,
        env: Mapping[str, str],
        options: Sequence[str] = (),
        user: str = "",
    ) -> None:
        """Create the prefix.

        Args:
            engine: The program that is used.
            container: Name or id.
            env: The environment of the engine's program.
            options: Options of the engine, before `exec`.
            user: Whom scripts run as; empty: the user of the container.
        """
        self._engine: Literal["docker", "podman"] = engine
        self._container = container
        self._env = env
        self._options = tuple(options)
        self._user = ("-u", user) if user else ()

    @property
    def name(self) -> str:
        """The other side, for messages."""
        return f"{self._engine}:{self._container}"

    @property
    def advice(self) -> str:
        """Return what a person can do when it is not reached."""
        return f"check with `{self._engine} exec {self._container} true` in a terminal that the container runs"

    async def argv(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs a script there."""
        program = await find_engine(self._engine, self._env)
        if program is None:
            raise unreachable(self, f"there is no program `{self._engine}` on the PATH")
        return (
            *(program, *self._options, "exec", "-i", *self._user, self._container),
            *("sh", "-c", script, "sh", *arguments),
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""
        await anyio.lowlevel.checkpoint()


async def find_engine(engine: Literal["docker", "podman"], env: Mapping[str, str]) -> str | None:
    """Return the path of an engine's program; None: it is not on the PATH."""
    return await to_thread.run_sync(_find, engine, env)


def _is_over(process: DiskInteractiveProcess) -> bool:
    """Return whether a child of this process has ended; it is not reaped."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _find(name: str, env: Mapping[str, str]) -> str | None:
    return find_outside_program(name, env_path=env.get("PATH", os.defpath), roots=())


def _make_folder() -> str:
    return tempfile.mkdtemp(prefix="tl-ssh-", dir="/tmp")


def _remove_folder(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
