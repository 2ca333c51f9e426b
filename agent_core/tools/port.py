"""Interface of a tool: a declaration, checked arguments, a run, a result for two readers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from agent_core.events import Answers, QuestionLine
from agent_core.kernel import Clock, JsonObject, JsonValue, ToolCallId
from agent_core.kernel.values import Value
from agent_core.messages import Text, UserContent
from agent_core.tools.program_versions import ProgramVersions
from agent_core.tools.read_cache import ReadCache
from agent_core.workspace import Files, Processes, Workspace
from agent_core.workspace.permissions.call_permission import ToolKind
from agent_core.workspace.permissions.secret_access import SecretAccess


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
    versions: ProgramVersions = msgspec.field(default_factory=ProgramVersions)
    """Versions of the programs that tools start by themselves."""
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


@runtime_checkable
class ConditionalTool(Protocol):
    """A tool that models do not see while what it needs is missing."""

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        ...


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """Declaration of the tool."""
        ...

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does, for people; must cope with missing or odd arguments."""
        ...

    def check(self, arguments: JsonObject) -> JsonObject:
        """Coerce and check arguments; pure.

        Raises:
            ArgumentsInvalid: They do not fit; the text teaches the model.
        """
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Do it. `arguments` are what `check` gave.

        Raises:
            TillerError: Its text becomes the error result. Cancellation must leave no process and no
                half-written file behind.
        """
        ...
