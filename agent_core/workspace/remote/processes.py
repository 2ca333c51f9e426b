"""Processes of a remote workspace: started and ended by shell scripts, in a session of their own on the other side."""

import secrets
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio import lowlevel

from agent_core.kernel.errors import AccessRefused, FileMissing, WorkspaceError
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.port import NO_NEEDS, KillReport, ProcessEnd
from agent_core.workspace.processes.disk_processes import DiskInteractiveProcess
from agent_core.workspace.processes.mark import LEAST_LIMIT, ProcessMark
from agent_core.workspace.remote import process_scripts as scripts
from agent_core.workspace.remote.transport import Remote

REPORT: Final = b"tiller "
SIGNALLED: Final = 128
MOST_SIGNALS: Final = 64
LOST: Final = 255
"""Exit code that is reported for a command whose connection was lost, as `ssh` does."""
NAP_S: Final = 0.02
END_EXTRA_S: Final = 4.0
"""How long the end of processes may take beyond the grace: also when the other side does not answer."""
FLUSH_S: Final = 1.0
ERRORS_KEPT: Final = 2_000


class RemoteProcesses:
    """Starts processes on the other side."""

    def __init__(self, remote: Remote, roots: Sequence[Path], *, env: Mapping[str, str]) -> None:
        """Create the starter of processes.

        Args:
            remote: The other side.
            roots: The folders of the workspace: programs that are named without a folder are never taken from there.
            env: The environment that scripts have there; only what a command's differs in is sent.
        """
        self._remote = remote
        self._roots = tuple(roots)
        self._env = env

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> "RemoteProcess":
        """Start a process in a session of its own. Nothing contains it, so `needs` changes nothing."""
        del needs
        mark = ProcessMark(
            text=secrets.token_hex(16), limit=LEAST_LIMIT + secrets.randbelow(LEAST_LIMIT)
        )
        wanted = mark.environment(env)
        variables = {
            "cwd": str(cwd),
            "search": env.get("PATH", ""),
            "roots": ":".join(str(root) for root in self._roots if root != Path("/")),
            **_named(mark),
            "input": "given" if stdin else "open",
            "inner": _changes(self._env, wanted) + scripts.INNER.replace("LIMIT", str(mark.limit)),
        }
        script = _assigned(variables) + scripts.MEMBERS + scripts.START
        process = await self._remote.start(script, *argv)
        started = RemoteProcess(self._remote, process, mark=mark)
        try:
            if stdin:
                await process.write(stdin)
                process.finish()
            await started.begin(argv, cwd)
        except BaseException:
            with anyio.move_on_after(END_EXTRA_S, shield=True):
                _ = await started.end(grace_s=0)
            raise
        return started

    async def before_start(self) -> str | None:
        """Do nothing: everything is on the other side's disk already."""
        await lowlevel.checkpoint_if_cancelled()
        return None


class _Reports:
    """Lines that the script which starts a process writes beside its output."""

    def __init__(self, process: DiskInteractiveProcess) -> None:
        self._process = process
        self._rest = b""
        self._other = b""

    @property
    def complaints(self) -> str:
        """Output that is no report: of the program of the connection."""
        return (self._other + self._rest).decode("utf-8", "replace")

    async def next(self) -> list[str] | None:
        """Return the next report, split; None: there is no more."""
        while True:
            line, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                if line.startswith(REPORT):
                    return line.removeprefix(REPORT).decode("utf-8", "replace").split()
                self._other = (self._other + line + end)[-ERRORS_KEPT:]
                continue
            data = await self._process.read_errors()
            if not data:
                return None
            self._rest += data


class RemoteProcess:
    """A process on the other side with its descendants."""

    def __init__(
        self, remote: Remote, process: DiskInteractiveProcess, *, mark: ProcessMark
    ) -> None:
        """Wrap the local process of the connection."""
        self._remote = remote
        self._process = process
        self._reports = _Reports(process)
        self._mark = mark
        self._pid = 0
        self._rest = b""
        self._waiting = anyio.Lock()
        self._ending = anyio.Lock()
        self._end: ProcessEnd | None = None
        self._left: tuple[int, ...] = ()
        """Processes that its first one left; meaningful once there is an end."""
        self._is_lost = False
        self._is_ended = False

    @property
    def pid(self) -> int:
        """The process id of its first process on the other side."""
        return self._pid

    async def begin(self, argv: Sequence[str], cwd: Path) -> None:
        """Wait until its first process is there.

        Raises:
            FileMissing: The program or the folder is not there.
            AccessRefused: It cannot be started.
            WorkspaceUnreachable: The connection was lost.
        """
        with self._remote.patience():
            report = await self._reports.next()
        match report:
            case ["pid", pid]:
                self._pid = int(pid)
            case ["cwd"]:
                message = f"Working directory does not exist on {self._remote.name}: {cwd}"
                raise FileMissing(message)
            case ["ENOENT"]:
                message = f"Program not found: {argv[0]} (ENOENT) on {self._remote.name}"
                raise FileMissing(message)
            case None:
                raise self._remote.unreachable(self._reports.complaints)
            case _:
                message = f"Cannot start {argv[0]} on {self._remote.name}: {' '.join(report)}"
                raise AccessRefused(message)

    async def read(self) -> bytes:
        """Wait for output and give a chunk; at the end of a lost connection, the last one says so."""
        data = await self._process.read()
        if data:
            return data
        if not self._is_ended and self._end is None:
            _ = await self.wait()
        rest, self._rest = self._rest, b""
        return rest

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        await lowlevel.checkpoint_if_cancelled()
        async with self._waiting:
            while self._end is None:
                report = await self._reports.next()
                if report is None:
                    self._end = self._lost()
                elif report[0] == "end":
                    self._left = tuple(map(int, report[2:]))
                    self._end = _end_of(int(report[1]))
            if not (self._is_lost or self._left):
                # Nobody else writes: when this has ended, all of the output has arrived.
                _ = await self._process.wait()
            return self._end

    async def end(self, *, grace_s: float) -> KillReport:
        """End the whole tree: asked first, killed after the grace. Once begun it is carried through."""
        async with self._ending:
            if self._is_ended:
                return KillReport(pids=(), survivors=())
            report = KillReport(pids=(), survivors=())
            with anyio.CancelScope(shield=True):
                if self._end is None or self._left or self._is_lost:
                    report = await self._end_tree(grace_s)
                    with anyio.move_on_after(FLUSH_S):
                        _ = await self.wait()
                        _ = await self._process.wait()
                self._is_ended = True
                _ = await self._process.end(grace_s=0)
            return report

    async def _end_tree(self, grace_s: float) -> KillReport:
        """End what runs there, over a connection that may be another one by now."""
        if not self._pid:
            return KillReport(pids=(), survivors=())
        variables = {
            "first": str(self._pid),
            **_named(self._mark),
            "tries": str(max(1, round(grace_s / 2 / NAP_S))),
        }
        unknown = KillReport(pids=(), survivors=(self._pid,))
        with anyio.move_on_after(grace_s + END_EXTRA_S):
            try:
                status, output = await self._remote.run(
                    _assigned(variables) + scripts.MEMBERS + scripts.END
                )
            except WorkspaceError:
                return unknown
            if status != ["ok"]:
                return unknown
            signalled, left = (set(map(int, line.split())) for line in output.splitlines()[:2])
            return KillReport(pids=tuple(sorted(signalled - left)), survivors=tuple(sorted(left)))
        return unknown

    def _lost(self) -> ProcessEnd:
        """Return the end of a command whose connection was lost; the output ends with a note on it."""
        self._is_lost = True
        if self._is_ended:
            return ProcessEnd(exit_code=None, signal=signal.SIGKILL)
        error = self._remote.unreachable(self._reports.complaints)
        note = f"\n[The connection to {self._remote.name} was lost while the command ran, and whether it finished is not known: look at the state before you run it again. {error}]\n"
        self._rest = note.encode()
        return ProcessEnd(exit_code=LOST)


def _end_of(code: int) -> ProcessEnd:
    if SIGNALLED < code <= SIGNALLED + MOST_SIGNALS:
        return ProcessEnd(exit_code=None, signal=code - SIGNALLED)
    return ProcessEnd(exit_code=code)


def _named(mark: ProcessMark) -> Mapping[str, str]:
    """Return the variables by which scripts look for the processes of a mark."""
    return {"mark": mark.text, "limit": str(mark.limit)}


def _assigned(variables: Mapping[str, str]) -> str:
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())


def _changes(there: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return the commands of sh that make one environment of another."""
    gone = [f"unset {name}\n" for name in there if name not in wanted and name.isidentifier()]
    new = [
        f"export {name}={shlex.quote(value)}\n"
        for name, value in wanted.items()
        if there.get(name) != value and name.isidentifier()
    ]
    return "".join((*gone, *new))
