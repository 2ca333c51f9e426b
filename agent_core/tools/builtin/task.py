"""The tools of tasks: give work to another agent, and look after what was given."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Final, Generic

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from agent_core.events import Budgets, TaskInfo
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.text import one_line
from agent_core.tools.arguments import ModelTool, ToolArguments, ToolArgumentsT, schema_of
from agent_core.tools.port import (
    CheckedCall,
    TaskIsolation,
    TaskOrder,
    TaskPresetInfo,
    TaskReport,
    Tool,
    ToolContext,
    ToolResult,
    ToolSpec,
    error_result,
    task_details,
    text_result,
)

TASK: Final = "task"
"""Name of the tool, and key of the task in the details of its results."""
GENERAL: Final = "general"
MOST_WAIT_S: Final = 600.0
DESCRIPTION_CHARS: Final = 80
UNSUCCESSFUL: Final = frozenset({"failed", "cancelled", "budget", "lost"})
"""States in which the result of a task is an error."""


class TaskBudget(BaseModel):
    """Limits of a task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: Annotated[int, Field(gt=0)] | None = None
    usd: Annotated[float, Field(gt=0)] | None = None
    turns: Annotated[int, Field(gt=0)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None


class TaskArguments(ToolArguments):
    """Arguments of `task`."""

    other_names: ClassVar[Mapping[str, str]] = {
        "subagent_type": "preset",
        "agent": "preset",
        "run_in_background": "background",
    }

    description: str = Field(description="The task in three to six words, for the user")
    prompt: str = Field(
        description=(
            "The whole task; the agent sees nothing of this conversation. Say what it is for, which files matter, what to "
            "do and what to report"
        )
    )
    preset: str = Field(default=GENERAL, description="The agent that does it")
    model: str | None = Field(default=None, description="Another model (default: the present one)")
    background: bool = Field(
        default=False,
        description="Go on meanwhile; you are told when it has ended (default: wait for its report)",
    )
    isolation: TaskIsolation = Field(
        default="none",
        description=(
            "worktree: it works on a copy of the last commit, and the user merges its changes (default: none, in the "
            "workspace)"
        ),
    )
    budget: TaskBudget | None = Field(default=None, description="Limits of what it uses")


class TaskResultArguments(ToolArguments):
    """Arguments of `task_result`."""

    other_names: ClassVar[Mapping[str, str]] = {"id": "ids", "wait": "waitS", "wait_s": "waitS"}

    ids: list[str] = Field(
        default=[], description="The tasks, such as t1 (default: all that have not ended)"
    )
    wait_s: Annotated[float, Field(ge=0, le=MOST_WAIT_S)] = Field(
        default=0,
        alias="waitS",
        description=f"How long to wait until they have ended, in seconds, at most {MOST_WAIT_S:g}",
    )


class TaskListArguments(ToolArguments):
    """Arguments of `task_list`: none."""


class TaskStopArguments(ToolArguments):
    """Arguments of `task_stop`."""

    id: str = Field(description="The task, such as t1")


class TaskTool:
    """The tool `task`; its description names the agents that there are at present."""

    def __init__(self, presets: Callable[[], Sequence[TaskPresetInfo]]) -> None:
        self._presets = presets
        self._listed: tuple[TaskPresetInfo, ...] = ()
        self._tool = _task_tool(())

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return bool(self._presets())

    @property
    def spec(self) -> ToolSpec:
        """Declaration of the tool."""
        listed = tuple(self._presets())
        if listed != self._listed:
            self._listed, self._tool = listed, _task_tool(listed)
        return self._tool.spec

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        return self._tool.title(arguments)

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Coerce and check the arguments of a call."""
        return self._tool.check(arguments)


class TaskCareTool(ModelTool[ToolArgumentsT], Generic[ToolArgumentsT], frozen=True, kw_only=True):
    """A tool that looks after background tasks; models see it once there was one."""

    had_tasks: Callable[[], bool]

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return self.had_tasks()


def task_tools(
    presets: Callable[[], Sequence[TaskPresetInfo]], *, had_tasks: Callable[[], bool]
) -> tuple[Tool, ...]:
    """Make the tools.

    Args:
        presets: Returns the agents that tasks can be given to at present; none: there are no tasks here.
        had_tasks: Whether the session ever had a background task.
    """

    def care(
        name: str,
        description: str,
        arguments: type[ToolArgumentsT],
        execute: Callable[[ToolArgumentsT, ToolContext], Awaitable[ToolResult]],
    ) -> Tool:
        spec = ToolSpec(
            name=name,
            description=description,
            parameters=schema_of(arguments),
            kind="read",
            parallel_safe=True,
        )
        return TaskCareTool(
            spec=spec, arguments=arguments, titled=_title, execute=execute, had_tasks=had_tasks
        )

    reports = "Return the reports of tasks, or how far they are; waits for them with waitS."
    return (
        TaskTool(presets),
        care("task_result", reports, TaskResultArguments, _result),
        care("task_list", "List the tasks of this session.", TaskListArguments, _list),
        care("task_stop", "Stop a task.", TaskStopArguments, _stop),
    )


def _task_tool(presets: Sequence[TaskPresetInfo]) -> ModelTool[TaskArguments]:
    agents = "".join(f"\n- {one.name}: {one.description}" for one in presets)
    description = (
        "Give a task to another agent that starts with an empty conversation and works in the same workspace. Only its report "
        "comes back. Use it for searches that read much, and for parts of the work that do not depend on each other: several "
        f"calls in one answer run side by side. Agents:{agents}"
    )
    return ModelTool(
        spec=ToolSpec(
            name=TASK,
            description=description,
            parameters=schema_of(TaskArguments),
            # Permission is asked for what the task does, not for the task.
            kind="read",
            parallel_safe=True,
            snippet="Give a task to another agent",
        ),
        arguments=TaskArguments,
        titled=_title_of_task,
        execute=_run,
    )


def _title_of_task(arguments: JsonObject) -> str:
    text = arguments.get("description")
    short = one_line(text)[:DESCRIPTION_CHARS] if isinstance(text, str) else ""
    return f"task: {short}" if short else "task"


def _title(arguments: JsonObject) -> str:
    ids = arguments.get("ids", arguments.get("id"))
    names = [ids] if isinstance(ids, str) else ids if isinstance(ids, list) else []
    return " ".join(["tasks", *(one for one in names if isinstance(one, str))])


async def _run(arguments: TaskArguments, context: ToolContext) -> ToolResult:
    budget = arguments.budget
    order = TaskOrder(
        description=one_line(arguments.description)[:DESCRIPTION_CHARS] or GENERAL,
        prompt=arguments.prompt,
        preset=arguments.preset,
        model=arguments.model,
        background=arguments.background,
        isolation=arguments.isolation,
        budget=Budgets()
        if budget is None
        else Budgets(
            usd=budget.usd, tokens=budget.tokens, turns=budget.turns, minutes=budget.minutes
        ),
    )
    report = await context.tasks().run(order, call=context.call, leave=context.leave)
    return _returned(report)


async def _result(arguments: TaskResultArguments, context: ToolContext) -> ToolResult:
    reports = await context.tasks().results(arguments.ids, wait_s=arguments.wait_s)
    shown: list[JsonValue] = [task_details(one.task) for one in reports]
    text = "\n\n".join(one.text for one in reports)
    return text_result(text or "No task is running.", details={"tasks": shown})


async def _list(_: TaskListArguments, context: ToolContext) -> ToolResult:
    tasks = context.tasks().list()
    shown: list[JsonValue] = [task_details(one) for one in tasks]
    lines = [f"{one.id} ({one.description}, {one.preset}): {_state(one)}" for one in tasks]
    return text_result("\n".join(lines) or "There are no tasks.", details={"tasks": shown})


async def _stop(arguments: TaskStopArguments, context: ToolContext) -> ToolResult:
    report = await context.tasks().stop(arguments.id)
    return replace(_returned(report), is_error=False)


def _returned(report: TaskReport) -> ToolResult:
    details = report.details()
    if report.task.state in UNSUCCESSFUL:
        return error_result(report.text, details=details)
    return text_result(report.text, details=details)


def _state(task: TaskInfo) -> str:
    return f"{task.state}, {task.activity}" if task.activity else task.state
