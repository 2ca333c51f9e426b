"""Runs an agent on a task in a process of its own: `tiller run` in a worktree, killed and continued where a task asks."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final, Literal

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text, decode
from agent_core.kernel.threads import uncancelled
from agent_core.kernel.values import Value
from tiller_server.evaluation.place import AgentPlace
from tiller_server.evaluation.tasks.task import KillPoint, TaskLimits

TILLER: Final = (sys.executable, "-P", "-m", "tiller_server.cli.entry")
GRACE_S: Final = 60.0
"""Time that an agent may take beyond its limit before it is killed."""
ERROR_CHARS: Final = 2000
MINUTES: Final = "budgets.minutes"
"""Names the budget in the error of a run that ended for its time."""

EndOfAgent = Literal["ended", "timeout", "not-killed", "not-started"]


class AgentUse(Struct, kw_only=True):
    """Use of the model by an agent, over all its processes."""

    turns: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """None: the price of an answer is unknown."""

    def add(self, usage: JsonObject) -> None:
        """Count an answer of the model."""
        self.turns += 1
        tokens = as_object(usage.get("tokens"))
        kinds = ("in", "out", "cacheRead", "cacheWrite")
        self.tokens += sum(_whole(tokens.get(kind)) for kind in kinds)
        amount = as_object(usage.get("cost")).get("amount")
        if not isinstance(amount, int | float) or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += amount


class AgentRun(Struct, kw_only=True):
    """Record of an agent that ended."""

    end: EndOfAgent = "ended"
    status: str = "failed"
    """Status of the last run, as its event says."""
    error: str = ""
    retryable: bool = False
    """Whether the error is one of the provider, so that the attempt says nothing about the agent."""
    session: str = ""
    session_file: str = ""
    folder: str = ""
    """Worktree in which it worked."""
    use: AgentUse = msgspec.field(default_factory=AgentUse)
    kills: int = 0
    errors: str = ""
    """End of its standard error."""
    output: str = ""
    """All of its standard output, where that is a document."""


class RunOrder(Value, frozen=True, kw_only=True):
    """Order to run one agent."""

    place: AgentPlace
    repository: Path
    model: str
    statement: str
    limits: TaskLimits
    kill: KillPoint | None = None


async def run_agent(order: RunOrder) -> AgentRun:
    """Run the agent to its end; one that is to be killed is continued once."""
    record = AgentRun()
    limits = _limits(order.limits)
    begin = (
        *("run", "--no-daemon", "--json", "--worktree", "-C", str(order.repository), "--trust"),
        *("--permission", order.place.permission, "--model", order.model, *limits),
    )
    with anyio.move_on_after(order.limits.minutes * 60 + GRACE_S) as scope:
        killed = await _follow(begin, order, record, prompt=order.statement, kill=order.kill)
        if order.kill is not None and not killed and record.end == "ended":
            record.end = "not-killed"
        elif order.kill is not None and killed:
            go_on = (
                *("run", "--no-daemon", "--json", "-C", str(order.repository), "--trust"),
                *("--permission", order.place.permission, "--model", order.model, *limits),
                *("--resume", record.session),
            )
            _ = await _follow(go_on, order, record, prompt=order.kill.prompt, kill=None)
    if scope.cancelled_caught or (record.status == "budget" and MINUTES in record.error):
        record.end = "timeout"
    return record


async def run_review(order: RunOrder, *, base: str, head: str) -> AgentRun:
    """Review the change between two commits; the report is the output of the record."""
    session = order.place.folder / "session.jsonl"
    record = AgentRun(session_file=str(session))
    arguments = (
        *("review", "--workspace", str(order.repository), "--base", base, "--head", head),
        *("--format", "json", "--fail-on", "never", "--model", order.model),
        *("--save-session", str(session)),
        *_limits(order.limits),
    )
    with anyio.move_on_after(order.limits.minutes * 60 + GRACE_S) as scope:
        async with _AgentProcess(arguments, order.place.variables, order.place.folder) as process:
            output, errors = bytearray(), bytearray()
            async with anyio.create_task_group() as group:
                group.start_soon(_collect, process.stdout, output)
                group.start_soon(_collect, process.stderr, errors)
                if process.stdin is not None:
                    await process.stdin.aclose()
            code = await process.wait()
            record.output = output.decode("utf-8", "replace")
            record.errors = errors.decode("utf-8", "replace")[-ERROR_CHARS:]
            record.status = "completed" if code == 0 else "failed"
    if scope.cancelled_caught:
        record.end = "timeout"
    return record


def _limits(limits: TaskLimits) -> tuple[str, ...]:
    return ("--max-turns", str(limits.turns), "--max-minutes", str(limits.minutes))


class _Kill:
    """Counts the events at which the process is killed."""

    def __init__(self, point: KillPoint) -> None:
        self._point = point
        self._left = point.count
        self._names: dict[str, str] = {}

    def is_due(self, event: JsonObject) -> bool:
        kind, item = as_text(event.get("type")), as_text(event.get("item"))
        if kind == "tool.started":
            self._names[item] = as_text(event.get("name"))
        name = self._names.get(item, "")
        if kind == self._point.event and self._point.tool in {None, name}:
            self._left -= 1
            return self._left == 0
        return False


async def _follow(
    arguments: Sequence[str],
    order: RunOrder,
    record: AgentRun,
    *,
    prompt: str,
    kill: KillPoint | None,
) -> bool:
    """Run one process and read its events; return whether it was killed on the way."""
    killing = None if kill is None else _Kill(kill)
    is_killed = False
    errors = bytearray()
    async with (
        _AgentProcess(arguments, order.place.variables, order.place.folder) as process,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_collect, process.stderr, errors)
        if process.stdin is not None:
            # A process that ends at once reads nothing; its errors say why.
            with suppress(anyio.BrokenResourceError):
                await process.stdin.send(prompt.encode())
            await process.stdin.aclose()
        async with aclosing(_lines(process.stdout)) as lines:
            async for line in lines:
                event = _event(line)
                _note(event, record)
                if killing is not None and not is_killed and killing.is_due(event):
                    process.kill()
                    is_killed = True
                    record.kills += 1
        _ = await process.wait()
    record.errors = errors.decode("utf-8", "replace")[-ERROR_CHARS:]
    return is_killed


def _note(event: JsonObject, record: AgentRun) -> None:
    match event.get("type"):
        case "session":
            record.session = as_text(event.get("id"))
            record.session_file = as_text(event.get("file"))
            record.folder = as_text(event.get("cwd"))
        case "message.ended" if event.get("role") == "assistant":
            record.use.add(as_object(event.get("usage")))
        case "tool.ended":
            record.use.calls += 1
        case "error":  # there is no session, so no result
            record.end = "not-started"
            record.error = as_text(as_object(event.get("error")).get("message"))
        case "result":
            record.status = as_text(event.get("status"))
            error = as_object(event.get("error"))
            record.error = as_text(error.get("message"))
            record.retryable = error.get("retryable") is True
        case _:
            pass


def _event(line: bytes) -> JsonObject:
    try:
        return as_object(decode(line))
    except ValueError:
        return {}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


class _AgentProcess:
    """A process in a group of its own, which is killed with everything it started."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._arguments = arguments
        self._env = env
        self._folder = folder
        self._process: Process | None = None

    async def __aenter__(self) -> Process:
        self._process = await uncancelled(
            anyio.open_process(
                (*TILLER, *self._arguments),
                stdin=subprocess.PIPE,
                cwd=self._folder,
                env=self._env,
                start_new_session=True,
            )
        )
        return self._process

    async def __aexit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _lines(stream: ByteReceiveStream | None) -> AsyncGenerator[bytes]:
    if stream is None:
        return
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def _collect(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for chunk in stream:
            into += chunk
