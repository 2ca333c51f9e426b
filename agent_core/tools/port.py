"""The port of tools: the context, the input and the result of a call."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn, Protocol, TypeAlias

import anyio
import msgspec

from agent_core.events import Answers, Budgets, QuestionLine, TaskInfo
from agent_core.kernel import Clock, JsonObject, JsonValue, ToolCallId
from agent_core.kernel.errors import ToolError, WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.messages import Text, UserContent
from agent_core.workspace import Files, Process, Processes, Workspace
from agent_core.workspace.permissions.call_permission import Needs, SecretAccess, ToolKind

if TYPE_CHECKING:
    from agent_core.tools.command_output import OutputCapture

MOST_TEXTS: Final = 64
MOST_CHARS: Final = 16_000_000
"""Of all remembered texts together."""


class ReadCache:
    """The text of each file as a model knows it: as it was read last, with what the model changed in it since.

    The files looked at longest ago are forgotten first; of them nothing is known then.
    """

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}

    def get(self, path: Path) -> str | None:
        """Return what is known of a file; None: nothing."""
        return self._texts.get(path)

    def forget(self, path: Path) -> None:
        """Forget the text of a file: its present content comes from the model itself or from an unknown source."""
        _ = self._texts.pop(path, None)

    def clear(self) -> None:
        """Know nothing any more: the conversation is another one now."""
        self._texts.clear()

    def put(self, path: Path, text: str) -> None:
        """Record what a model knows from now on."""
        _ = self._texts.pop(path, None)
        self._texts[path] = text
        while len(self._texts) > MOST_TEXTS or (
            len(self._texts) > 1 and sum(map(len, self._texts.values())) > MOST_CHARS
        ):
            del self._texts[next(iter(self._texts))]


Version: TypeAlias = tuple[int, ...]
_Stamp: TypeAlias = tuple[int, int, int]

ANSWER_S: Final = 5.0
END_S: Final = 1.0
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class ProgramVersions:
    """Versions by program. Each is asked for once, and again when its file is another."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[_Stamp | None, Version | None]] = {}

    async def of(
        self, program: str, *, processes: Processes, cwd: Path, env: Mapping[str, str]
    ) -> Version | None:
        """Return the version that a program reports with `--version`; None: it reports none in time."""
        stamp = await run_in_thread(_stamp, program)
        cached = self._cache.get(program)
        if cached is None or cached[0] != stamp:
            version = await _ask(program, processes=processes, cwd=cwd, env=env)
            cached = self._cache[program] = (stamp, version)
        return cached[1]


def version_in(text: str) -> Version | None:
    """Return the first version in a text, as numbers."""
    found = _VERSION.search(text)
    return None if found is None else tuple(int(part) for part in found[0].split("."))


async def _ask(
    program: str, *, processes: Processes, cwd: Path, env: Mapping[str, str]
) -> Version | None:
    said = b""
    try:
        process = await processes.start((program, "--version"), cwd=cwd, env=env)
    except WorkspaceError:
        return None
    try:
        with anyio.move_on_after(ANSWER_S):
            while data := await process.read():
                said += data
    finally:
        with anyio.move_on_after(END_S, shield=True):
            _ = await process.end(grace_s=0)
    return version_in(said.decode("utf-8", "replace"))


def _stamp(program: str) -> _Stamp | None:
    try:
        found = os.stat(program)  # noqa: PTH116 - a path as it is started
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class ToolSpec(Value, frozen=True, kw_only=True):
    """Declaration of a tool, for models, policies and prompts."""

    name: str
    description: str
    parameters: JsonObject
    """A JSON Schema of type object."""
    kind: ToolKind
    parallel_safe: bool = False
    """It may run beside other safe calls of the same batch."""
    snippet: str = ""
    """One line for the system prompt."""
    guidelines: tuple[str, ...] = ()
    """Rules for the system prompt."""
    mcp: str | None = None
    """`server/tool`, when another server runs it."""


class ToolInfo(Value, frozen=True, kw_only=True):
    """A tool of a session, for programs that list its tools."""

    name: str
    description: str
    parameters: JsonObject
    """A JSON Schema of type object."""
    kind: ToolKind
    source: str
    """`built-in`, `extension:NAME`, `mcp:SERVER`, or `program` for a tool of the program that opened the session."""
    is_active: bool
    """Whether the model sees it."""


class AskUser(Protocol):
    """Asks a person what is meant."""

    async def __call__(
        self,
        questions: Sequence[QuestionLine],
        /,
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask and wait. A line without an answer gets its default, if all lines have one.

        Args:
            questions: The lines of one form.
            blocking: The call cannot continue without an answer; the user is informed of that.
            timeout_s: Seconds after which no answer is expected any more; None: as the settings define for permissions.

        Raises:
            UsageError: The questions cannot be asked; the text says why.
        """
        ...


class BackgroundCommand(Value, frozen=True, kw_only=True):
    """A command that goes on beside the runs of its session."""

    id: str
    """`bg1`, `bg2` …, unique in the session."""
    command: str
    log: str
    """File with all of its output; empty: there is none."""
    log_line: str
    """Line that names the log, and why it is missing or cut."""
    is_log_whole: bool
    """Whether the log holds all of the output so far."""
    size: int
    """Bytes of output in the log."""
    is_running: bool
    exit_code: int | None = None
    """None while it runs, and when a signal ended it."""
    signal: int | None = None
    ports: tuple[int, ...] = ()
    """TCP ports on which it listens."""


class BackgroundPage(Value, frozen=True, kw_only=True):
    """Part of the output of a background command."""

    command: BackgroundCommand
    text: str
    next: int
    """Place in bytes where the next page begins."""


class BackgroundCommands(Protocol):
    """The background commands of a session. They end with it, at the latest."""

    async def start(
        self, command: str, *, call: ToolCallId, needs: frozenset[Needs]
    ) -> BackgroundCommand:
        """Start a command, and give it a moment in which it may fail.

        Raises:
            ToolError: Too many are running, or the log cannot be written.
            WorkspaceError: It cannot be started.
        """
        ...

    async def adopt(
        self, command: str, process: Process, capture: "OutputCapture", *, call: ToolCallId
    ) -> BackgroundCommand:
        """Move a running command to the background.

        Args:
            command: The command.
            process: Its process, which belongs to the session from the first moment.
            capture: Its output so far.
            call: The tool call that started it.
        """
        ...

    async def list(self) -> Sequence[BackgroundCommand]:
        """Return those that run, and the last ones that ended, oldest first."""
        ...

    async def read(self, id_: str, *, offset: int | None, wait_s: float) -> BackgroundPage:
        """Return output that was not read yet; waits for some.

        Args:
            id_: The command.
            offset: Where to begin, in bytes; None: where the last reading ended.
            wait_s: How long to wait while there is nothing new and the command runs.

        Raises:
            ToolError: There is no such command.
        """
        ...

    async def stop(self, id_: str) -> BackgroundCommand:
        """End a command with everything that it started; one that has ended stays as it is.

        Raises:
            ToolError: There is no such command.
        """
        ...


def no_background() -> BackgroundCommands:
    """Refuse background commands: there is no session.

    Raises:
        ToolError: Always.
    """
    message = "Nothing can run in the background here."
    raise ToolError(message)


TaskIsolation: TypeAlias = Literal["none", "worktree"]
"""`worktree`: the task works on a copy of the committed files, and the workspace does not change."""


class TaskOrder(Value, frozen=True, kw_only=True):
    """A task that the model gives to another agent."""

    description: str
    """A few words for people."""
    prompt: str
    preset: str
    model: str | None = None
    """Name of the model; None: that of the preset, else that of the session."""
    background: bool = False
    budget: Budgets = Budgets()
    isolation: TaskIsolation = "none"


class TaskReport(Value, frozen=True, kw_only=True):
    """A task, and what the model is told of it."""

    task: TaskInfo
    text: str
    """The state of the task, and its report once it has ended."""
    report: str = ""
    """The part of the report that the task wrote, for people; empty: it has not ended."""

    def details(self) -> dict[str, JsonValue]:
        """Return what the result of the call that started the task keeps for clients."""
        task: dict[str, JsonValue] = {"task": task_details(self.task)}
        return {**task, "report": self.report} if self.report else task


def task_details(task: TaskInfo) -> dict[str, JsonValue]:
    """Return what a result keeps of a task for clients."""
    return {
        "id": task.id,
        "session": task.session,
        "description": task.description,
        "preset": task.preset,
        "state": task.state,
        "background": task.background,
        "worktree": task.worktree,
        "turns": task.turns,
        "tool_calls": task.tool_calls,
    }


class TaskPresetInfo(Value, frozen=True, kw_only=True):
    """A kind of agent that tasks can be given to."""

    name: str
    description: str


class Tasks(Protocol):
    """The tasks of a session. They end with it, at the latest."""

    async def run(
        self, order: TaskOrder, *, call: ToolCallId, leave: anyio.Event | None
    ) -> TaskReport:
        """Start a task; wait for its end, unless it is to work in the background.

        Cancelled while it waits, it stops the task.

        Args:
            order: The task.
            call: The call of the tool.
            leave: When it is set, the task goes on in the background, and this returns.

        Raises:
            ToolError: The task cannot be started; the text says why.
        """
        ...

    async def results(self, ids: Sequence[str], *, wait_s: float) -> Sequence[TaskReport]:
        """Return tasks with their reports; waits until all of them have ended.

        Args:
            ids: The tasks; empty: all that have not ended.
            wait_s: How long to wait, in seconds.

        Raises:
            ToolError: There is no such task.
        """
        ...

    def list(self) -> Sequence[TaskInfo]:
        """Return the tasks that run, were lost or ended last, oldest first."""
        ...

    async def stop(self, id_: str) -> TaskReport:
        """Stop a task; one that has ended stays as it is.

        Raises:
            ToolError: There is no such task.
        """
        ...

    async def stop_for_user(self, id_: str) -> TaskInfo:
        """Stop a task; the model is told as of any other end.

        Raises:
            ToolError: There is no such task.
        """
        ...

    async def resume(self, id_: str) -> TaskInfo:
        """Continue a task that ended without a result where it stopped; it works in the background.

        Raises:
            ToolError: There is no such task, it has a result, or it runs.
        """
        ...

    async def wait(self) -> None:
        """Wait until none runs or waits for another."""
        ...

    async def close(self) -> None:
        """Stop all of them because the session closes; they can be continued when it is opened again."""
        ...


def no_tasks() -> NoReturn:
    """Refuse tasks: there is no session that could have any.

    Raises:
        ToolError: Always.
    """
    message = (
        "A task cannot start tasks of its own: do the work yourself, or report what is left to do."
    )
    raise ToolError(message)


async def ask_nobody(
    questions: Sequence[QuestionLine],
    /,
    *,
    blocking: bool = True,
    timeout_s: float | None = None,
) -> Answers:
    """Ask nobody: there is none."""
    _ = questions, blocking, timeout_s
    return Answers(answers=None, by="policy")


class ToolContext(Value, frozen=True, kw_only=True):
    """Resources of one call. No other call shares them."""

    call: ToolCallId
    workspace: Workspace
    clock: Clock
    output: Callable[[str], None]
    """Show live output to front ends; never the model. Cheap, never waits."""
    scratch: str
    """A private folder for whole outputs of this session."""
    options: Mapping[str, JsonValue] = msgspec.field(default_factory=dict[str, JsonValue])
    """The settings of this tool (`bash.timeoutS`, `bash.prefix` …) without its prefix."""
    ask: AskUser = ask_nobody
    """Asks a person what is meant."""
    seen: ReadCache = msgspec.field(default_factory=ReadCache)
    """Texts of files as the model knows them."""
    secrets: SecretAccess = msgspec.field(default_factory=SecretAccess)
    """The secret files that a person let the session read."""
    background: Callable[[], BackgroundCommands] = no_background
    """Returns the session's commands in the background."""
    tasks: Callable[[], Tasks] = no_tasks
    """Returns the session's tasks."""
    leave: anyio.Event | None = None
    """When this is set, what the call runs is to go on in the background."""
    versions: ProgramVersions = msgspec.field(default_factory=ProgramVersions)
    """Versions of the programs that tools start by themselves."""
    pause: Callable[[], AbstractContextManager[object]] = nullcontext
    """Stops the clock of the call's time limit while a person is asked."""
    name_warning: str | None = None
    """Warning about the name of the file that the call changes; part of its result."""

    @property
    def files(self) -> Files:
        """The workspace's files."""
        return self.workspace.files

    @property
    def processes(self) -> Processes:
        """The workspace's processes."""
        return self.workspace.processes


class ToolResult(Value, frozen=True, kw_only=True):
    """Result of a call: `content` for the model, `details` for the front end, never the other way round."""

    content: tuple[UserContent, ...]
    details: JsonValue = None
    is_error: bool = False


def text_result(text: str, *, details: JsonValue = None) -> ToolResult:
    """Make a result of words."""
    return ToolResult(content=(Text(text=text),), details=details)


def error_result(
    text: str, *, details: JsonValue = None, happened: str | None = None
) -> ToolResult:
    """Make a failed result of words that tell the model how to go on.

    Args:
        text: For the model.
        details: For front ends.
        happened: The text without what only a model can do; None: it is for people as it is.
    """
    if details is None and happened is not None:
        details = {"happened": happened}
    return ToolResult(content=(Text(text=text),), details=details, is_error=True)


class ConditionalTool(Protocol):
    """A tool that models do not see while what it needs is missing."""

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        ...


class CheckedCall(Value, frozen=True, kw_only=True):
    """A call of a tool with arguments that fit it; nothing has been done yet."""

    arguments: JsonObject
    """The arguments as hooks, policies and front ends see them."""
    run: Callable[[ToolContext], Awaitable[ToolResult]]
    """Does it. The text of a `TillerError` becomes the error result. Cancellation must leave no process and no
    half-written file behind."""
    details: Callable[[], Awaitable[JsonObject | None]] | None = None
    """Returns details to show while it runs; None: there are none."""


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """Declaration of the tool."""
        ...

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does, for people; must cope with missing or odd arguments."""
        ...

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Coerce and check the arguments of a call; pure.

        Raises:
            ArgumentsInvalid: They do not fit; the text teaches the model.
        """
        ...
