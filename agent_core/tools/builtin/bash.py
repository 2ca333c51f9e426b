"""The tool `bash`: runs a command and gives the end of what it wrote."""

import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

import anyio
from pydantic import Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import FileMissing
from agent_core.kernel.truncation import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_LINES,
    Truncation,
    format_size,
)
from agent_core.messages import Text
from agent_core.tools.arguments import MAX_SECONDS, ModelTool, Seconds, ToolArguments, schema_of
from agent_core.tools.builtin.bash_output import LiveOutput, OutputCapture
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec
from agent_core.workspace import Killed, Process, ProcessEnd

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
"""Nobody sits at a terminal: what would wait for a person goes on or fails at once."""
SIGNALLED = 128
TITLE_CHARS = 120


class BashArguments(ToolArguments):
    """What `bash` takes."""

    command: str = Field(description="The bash command")
    timeout: Seconds | None = Field(default=None, description="Seconds after which it is ended")


@dataclass(slots=True)
class _Run:
    """What becomes of one command."""

    end: ProcessEnd | None = None
    timed_out: bool = False
    aborted: bool = False
    killed: Killed | None = None


def bash_tool() -> ModelTool[BashArguments]:
    """Make the tool."""
    limit = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="bash",
            description=f"Run a command with bash in the workspace. Gives what it wrote to stdout and stderr, the last {DEFAULT_MAX_LINES} lines or {limit}, whichever is less; longer output is kept whole in a file that is named. There is no input. The command and everything that it started are ended when it returns or its time is over.",
            parameters=schema_of(BashArguments),
            kind="execute",
            snippet="Run a command",
            guidelines=("Use bash for builds, tests and everything that no other tool does.",),
        ),
        arguments=BashArguments,
        titled=_title,
        execute=_bash,
    )


def _title(arguments: JsonObject) -> str:
    command = arguments.get("command")
    text = " ".join(command.split()) if isinstance(command, str) else ""
    return f"$ {text if len(text) <= TITLE_CHARS else text[:TITLE_CHARS] + '…'}"


async def _bash(arguments: BashArguments, context: ToolContext) -> ToolResult:
    stale = await context.processes.before_start()
    timeout_s = arguments.timeout or _timeout_s(context.options)
    begun_s = context.clock.monotonic_s()
    live = LiveOutput(context.output)
    capture = OutputCapture(folder=context.scratch, live=live)
    run = _Run()
    process = await _start(arguments.command, context)
    try:
        await _watch(process, capture, live, run, timeout_s=timeout_s)
    except anyio.get_cancelled_exc_class():
        run.aborted = True
        raise
    finally:
        with anyio.move_on_after(END_BOUND_S, shield=True):
            run.killed = await process.end(grace_s=KILL_GRACE_S)
            while rest := await process.read():
                await capture.add(rest)
            await capture.close()
        if run.aborted:
            context.output("\n\nCommand aborted")
    took_ms = round((context.clock.monotonic_s() - begun_s) * 1000)
    return _result(arguments, capture, run, stale, timeout_s=timeout_s, took_ms=took_ms)


async def _start(command: str, context: ToolContext) -> Process:
    options = context.options
    prefix, shell = options.get("prefix"), options.get("shellPath")
    script = f"{prefix}\n{command}" if isinstance(prefix, str) and prefix else command
    shells = (shell,) if isinstance(shell, str) and shell else SHELLS
    env = {**context.workspace.env, **DISARMED}
    for shell in shells[:-1]:
        with suppress(FileMissing):
            return await context.processes.start(
                (shell, "-c", script), cwd=context.workspace.root, env=env
            )
    return await context.processes.start(
        (shells[-1], "-c", script), cwd=context.workspace.root, env=env
    )


async def _watch(
    process: Process, capture: OutputCapture, live: LiveOutput, run: _Run, *, timeout_s: float
) -> None:
    """Read until the command is over: its shell has ended and nothing more is coming."""
    closed = anyio.Event()

    async def pump() -> None:
        if data := await process.read():
            group.start_soon(live.run)
        while data:
            await capture.add(data)
            data = await process.read()
        closed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(pump)
        with anyio.move_on_after(timeout_s) as time:
            run.end = await process.wait()
            if not closed.is_set():
                await _silence(closed, capture)
        run.timed_out = time.cancelled_caught and run.end is None
        if capture.total_bytes or not closed.is_set():
            group.cancel_scope.cancel()  # somebody is still at work


async def _silence(closed: anyio.Event, capture: OutputCapture) -> None:
    """Wait until every writer is gone, or nothing has come for a moment, or background children just go on."""
    with anyio.move_on_after(LINGER_S):
        while not closed.is_set():
            seen = capture.total_bytes
            with anyio.move_on_after(IDLE_S):
                await closed.wait()
            if capture.total_bytes == seen:
                return


def _timeout_s(options: Mapping[str, JsonValue]) -> float:
    given = options.get("timeoutS")
    if isinstance(given, int | float) and 0 < given <= MAX_SECONDS:
        return float(given)
    return DEFAULT_TIMEOUT_S


def _result(
    arguments: BashArguments,
    capture: OutputCapture,
    run: _Run,
    stale: str | None,
    *,
    timeout_s: float,
    took_ms: int,
) -> ToolResult:
    tail = capture.tail()
    parts = [tail.content if tail.content.strip() else "(no output)"]
    if tail.truncated:
        parts.append(_notice(tail, capture))
    if said := _about_end(run, timeout_s=timeout_s):
        parts.append(said)
    parts += [f"[{note}]" for note in (*_notes(run), *([stale] if stale else []))]
    failed = run.timed_out or run.end is None or run.end.exit_code != 0
    details: dict[str, JsonValue] = {
        "command": arguments.command,
        "exit_code": run.end.exit_code if run.end else None,
        "signal": run.end.signal if run.end else None,
        "timed_out": run.timed_out,
        "duration_ms": took_ms,
        "truncated": tail.truncated,
        "full_output": capture.file.path,
    }
    if tail.truncated:
        details["truncation"] = {
            name: value
            for name, value in asdict(tail).items()  # pyright: ignore[reportAny] - the fields are JSON
            if name != "content"
        }
    if run.killed and run.killed.survivors:
        details["survivors"] = list(run.killed.survivors)
    text = parts[0] if len(parts) == 1 else "\n\n".join(part.removesuffix("\n") for part in parts)
    return ToolResult(content=(Text(text=text),), details=details, is_error=failed)


def _notice(tail: Truncation, capture: OutputCapture) -> str:
    last, limit = tail.total_lines, format_size(tail.max_bytes)
    file = capture.file
    where = f"Full output: {file.path}" if file.path else "The full output was not kept"
    if file.problem:
        where += f", cut: {file.problem}" if file.path else f": {file.problem}"
    if tail.last_line_partial:
        size, whole = format_size(tail.output_bytes), format_size(capture.last_line_bytes())
        return f"[Showing last {size} of line {last} (line is {whole}). {where}]"
    first = last - tail.output_lines + 1
    why = f" ({limit} limit)" if tail.truncated_by == "bytes" else ""
    return f"[Showing lines {first}-{last} of {last}{why}. {where}]"


def _about_end(run: _Run, *, timeout_s: float) -> str:
    if run.timed_out or run.end is None:
        return f"Command timed out after {timeout_s:g} seconds"
    if run.end.signal is not None:
        name = _signal_name(run.end.signal)
        return f"Command exited with code {SIGNALLED + run.end.signal} (killed by {name})"
    return f"Command exited with code {run.end.exit_code}" if run.end.exit_code else ""


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _notes(run: _Run) -> tuple[str, ...]:
    """Tell what the model could not know from the output."""
    killed = run.killed
    if killed is None:
        return ("It could not be made sure that everything it started has ended.",)
    notes: list[str] = []
    if killed.pids and run.end is not None:
        notes.append(
            f"{_processes(len(killed.pids))} left running in the background when the command ended, and ended with it. What must go on for longer has to be used in the same command."
        )
    if killed.survivors:
        pids = ", ".join(str(pid) for pid in killed.survivors)
        notes.append(f"These processes could not be ended: {pids}")
    return tuple(notes)


def _processes(count: int) -> str:
    return "1 process was" if count == 1 else f"{count} processes were"
