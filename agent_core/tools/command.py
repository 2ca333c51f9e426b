"""Runs one command with bash in the workspace: starts it, watches it, and ends it with everything that it started."""

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import defpath

import anyio

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import FileMissing
from agent_core.kernel.text import Truncation, format_size
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.arguments import MAX_SECONDS
from agent_core.workspace import NO_NEEDS, KillReport, Process, ProcessEnd, Workspace
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.permissions.policy.commands.programs import (
    find_outside_program,
    outside_path,
)

DEFAULT_TIMEOUT_S = 600.0
KILL_GRACE_S = 0.15
END_BOUND_S = 6.0
"""How long cleaning up may take, whatever happens."""
IDLE_S = 0.1
"""Once the shell has ended, its background children are not waited for longer than this silence …"""
LINGER_S = 1.0
"""… nor, if they go on writing, longer than this."""
SHELLS = ("/bin/bash", "bash")
DISARMED: Mapping[str, str] = {
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Environment without a terminal: a program that would wait for a person continues or fails at once."""
SIGNALLED = 128
MOST_NAMED = 20


class BashCommand:
    """One command, its output, and its end. Its output can be read also after a cancellation."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        options: Mapping[str, JsonValue],
        scratch: str,
        show: Callable[[str], None],
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> None:
        """Create a command that is not started yet; `needs` is the access beyond containment that was agreed to."""
        from agent_core.tools.command_output import LiveOutput, OutputCapture  # noqa: PLC0415 - at first use

        self.end: ProcessEnd | None = None
        """None: it was ended before it was over."""
        self.timed_out = False
        self.killed: KillReport | None = None
        """Result of ending the process tree; None: unknown."""
        self._workspace = workspace
        self._options = options
        self._needs = needs
        self._timeout_s = DEFAULT_TIMEOUT_S
        self.left: Process | None = None
        """The process, when the command is to go on without this call; the caller ends it."""
        self._live = LiveOutput(show)
        self.capture = OutputCapture(folder=scratch, live=self._live)

    async def run(
        self, text: str, *, timeout_s: float | None = None, leave: anyio.Event | None = None
    ) -> None:
        """Run it to its end, or until it is to be left running. Cancelled, it leaves no process behind.

        Args:
            text: The command; the settings may put a prefix before it.
            timeout_s: After this it is ended; None: as the settings say.
            leave: When this is set the command is left running, and `left` is its process.

        Raises:
            FileMissing: There is no such shell.
            AccessRefused: It cannot be started.
        """
        self._timeout_s = timeout_s or _timeout_s(self._options)
        process = await start_bash(text, self._workspace, options=self._options, needs=self._needs)
        is_left = False
        try:
            await self._watch(process, leave)
            is_wanted = leave is not None and leave.is_set()
            is_left = is_wanted and self.end is None and not self.timed_out
        finally:
            if not is_left:
                await self._end(process)
        self.left = process if is_left else None

    async def _end(self, process: Process) -> None:
        """End the process with everything that it started."""
        with anyio.move_on_after(END_BOUND_S, shield=True):
            self.killed = await process.end(grace_s=KILL_GRACE_S)
            while rest := await process.read():
                await self.capture.add(rest)
            await self.capture.close()

    @property
    def full_output(self) -> str | None:
        """The file with all of the output, once that is longer than what `tail` gives."""
        return self.capture.file.path

    def tail(self) -> Truncation:
        """Return the end of the output with the counts of all of it."""
        return self.capture.tail()

    def colors(self, tail: Truncation) -> list[JsonValue]:
        """Return the colours of a tail as spans: start, end (UTF-16 code units), style."""
        return [list(span) for span in self.capture.colors(tail.content)]

    def about_cut(self, tail: Truncation) -> str:
        """Return what part of the output a cut tail is, and where the rest is."""
        last, limit = tail.total_lines, format_size(tail.max_bytes)
        where = self.capture.file.named("Full output")
        if tail.last_line_partial:
            size, whole = (
                format_size(tail.output_bytes),
                format_size(self.capture.last_line_bytes()),
            )
            return f"[Showing last {size} of line {last} (line is {whole}). {where}]"
        first = last - tail.output_lines + 1
        why = f" ({limit} limit)" if tail.truncated_by == "bytes" else ""
        return f"[Showing lines {first}-{last} of {last}{why}. {where}]"

    def about_end(self) -> str:
        """Return how it ended; empty when it ended well."""
        if self.timed_out or self.end is None:
            return f"Command timed out after {self._timeout_s:g} seconds"
        if self.end.signal is not None:
            name = _signal_name(self.end.signal)
            return f"Command exited with code {SIGNALLED + self.end.signal} (killed by {name})"
        return f"Command exited with code {self.end.exit_code}" if self.end.exit_code else ""

    def notes(self) -> tuple[str, ...]:
        """Return what nobody could know from the output."""
        killed = self.killed
        if killed is None:
            return ("It could not be made sure that everything it started has ended.",)
        notes: list[str] = []
        if killed.pids and self.end is not None:
            notes.append(
                f"{_processes(len(killed.pids))} left running in the background when the command ended, and ended with it. What must go on for longer has to be used in the same command."
            )
        if killed.survivors:
            pids = ", ".join(str(pid) for pid in killed.survivors)
            notes.append(f"These processes could not be ended: {pids}")
        if killed.quarantined:
            names = ", ".join(str(path) for path in killed.quarantined[:MOST_NAMED])
            if (more := len(killed.quarantined) - MOST_NAMED) > 0:
                names += f" and {more} more"
            notes.append(
                f"Containment took away what the command made under protected names: {names}. Programs and agents obey such files; make them with the write or edit tool, and the user is asked."
            )
        return (*notes, *killed.denied)

    async def _watch(self, process: Process, leave: anyio.Event | None) -> None:
        """Read until the command is over: its shell has ended and nothing more is coming; or until it is left."""
        closed = anyio.Event()

        async def pump() -> None:
            if data := await process.read():
                group.start_soon(self._live.run)
            while data:
                await self.capture.add(data)
                data = await process.read()
            closed.set()

        async with anyio.create_task_group() as group:
            group.start_soon(pump)
            if leave is not None:
                group.start_soon(_cancel_on, leave, group.cancel_scope)
            with anyio.move_on_after(self._timeout_s) as time:
                self.end = await process.wait()
                if not closed.is_set():
                    await self._silence(closed)
            self.timed_out = time.cancelled_caught and self.end is None
            group.cancel_scope.cancel()  # somebody may be still at work

    async def _silence(self, closed: anyio.Event) -> None:
        """Wait until every writer is gone, or nothing has come for a moment, or background children just go on."""
        with anyio.move_on_after(LINGER_S):
            while not closed.is_set():
                seen = self.capture.total_bytes
                with anyio.move_on_after(IDLE_S):
                    await closed.wait()
                if self.capture.total_bytes == seen:
                    return


async def start_bash(
    text: str,
    workspace: Workspace,
    *,
    options: Mapping[str, JsonValue],
    needs: frozenset[Needs] = NO_NEEDS,
) -> Process:
    """Start a command with the shell of the settings; the caller ends it.

    Args:
        text: The command; the settings may put a prefix before it.
        workspace: Where it runs.
        options: The settings of the tool.
        needs: The access beyond containment that was agreed to.

    Raises:
        FileMissing: There is no such shell.
        AccessRefused: It cannot be started.
    """
    shell, script = options.get("shellPath"), script_of(text, options)
    shells = (shell,) if isinstance(shell, str) and shell else SHELLS
    processes, root = workspace.processes, workspace.root
    if "git" in script.casefold() and workspace.address is None:
        # Without that word nothing follows from the command line.
        needs |= await run_in_thread(_needs_of, script, workspace)
    env = {**workspace.env, **DISARMED}
    if "gitData" in needs and workspace.address is None:
        env["PATH"] = await run_in_thread(_path_for_git, script, workspace)
    for one in shells[:-1]:
        with suppress(FileMissing):
            return await processes.start((one, "-c", script), cwd=root, env=env, needs=needs)
    last = shells[-1]
    if workspace.address is None:
        last = await run_in_thread(_shell, last, workspace)
    return await processes.start((last, "-c", script), cwd=root, env=env, needs=needs)


def _needs_of(script: str, workspace: Workspace) -> frozenset[Needs]:
    """Return what follows from the command line itself. Blocking."""
    from agent_core.workspace.permissions.policy.commands.git_operations import writes_data  # noqa: PLC0415 - at first use

    writes = writes_data(
        script, env_path=workspace.env.get("PATH", ""), roots=tuple(workspace.roots)
    )
    return frozenset({"gitData"}) if writes else NO_NEEDS


def _path_for_git(script: str, workspace: Workspace) -> str:
    """Return the PATH for plain commands of git, whose data they may write. Blocking.

    Programs of the workspace are not on it, since the user's own settings may start some (`gpg`, `git-lfs`). A
    repository that itself starts programs was asked about, and its hooks need them.
    """
    from agent_core.workspace.permissions.policy.commands.git_operations import (  # noqa: PLC0415 - at first use
        line_starts_programs,
    )

    path, roots = workspace.env.get("PATH", defpath), tuple(workspace.roots)
    if line_starts_programs(script, cwd=workspace.root, roots=roots):
        return path
    return outside_path(path, roots=roots)


async def _cancel_on(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _shell(name: str, workspace: Workspace) -> str:
    """Find a shell that is named without its folder: a workspace on the PATH must not bring its own. Blocking.

    Raises:
        FileMissing: There is none outside of the workspace.
    """
    if "/" in name:
        return name
    path = workspace.env.get("PATH", defpath)
    found = find_outside_program(name, env_path=path, roots=workspace.roots)
    if found is None:
        message = f"Program not found on the PATH outside of the workspace: {name}. The user can name one by its whole path in the setting bash.shellPath"
        raise FileMissing(message)
    return found


def script_of(command: str, options: Mapping[str, JsonValue]) -> str:
    """Return what the shell is given for a command: behind what the settings put before every one. Pure."""
    prefix = options.get("prefix")
    if isinstance(prefix, str) and prefix:
        return _no_option(f"{prefix}\n{command}")
    return _no_option(command)


def _no_option(script: str) -> str:
    # bash, dash and zsh look for options also behind `-c`. `--` would end them, but fish takes that for the script.
    return f" {script}" if script.startswith(("-", "+")) else script


def _timeout_s(options: Mapping[str, JsonValue]) -> float:
    given = options.get("timeoutS")
    if isinstance(given, int | float) and 0 < given <= MAX_SECONDS:
        return float(given)
    return DEFAULT_TIMEOUT_S


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _processes(count: int) -> str:
    return "1 process was" if count == 1 else f"{count} processes were"
