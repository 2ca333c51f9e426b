"""The tools that Tiller brings along, one file each."""

from collections.abc import Callable, Sequence

from agent_core.tools.builtin.ask import ask_tool
from agent_core.tools.builtin.background import background_tool
from agent_core.tools.builtin.bash import bash_tool
from agent_core.tools.builtin.edit.tool import edit_tool
from agent_core.tools.builtin.find import find_tool
from agent_core.tools.builtin.grep.tool import grep_tool
from agent_core.tools.builtin.ls import ls_tool
from agent_core.tools.builtin.plan import PlanReview, plan_tool
from agent_core.tools.builtin.read.tool import read_tool
from agent_core.tools.builtin.task import task_tools
from agent_core.tools.builtin.todo import todo_tool
from agent_core.tools.builtin.web import fetch_tool, web_search_tool
from agent_core.tools.builtin.write import write_tool
from agent_core.tools.port import TaskPresetInfo, Tool

__all__ = [
    "ask_tool",
    "background_tool",
    "bash_tool",
    "builtin_tools",
    "edit_tool",
    "fetch_tool",
    "find_tool",
    "grep_tool",
    "ls_tool",
    "plan_tool",
    "read_tool",
    "task_tools",
    "todo_tool",
    "web_search_tool",
    "write_tool",
]


def builtin_tools(
    *,
    can_search: Callable[[], bool] = lambda: False,
    is_planning: Callable[[], bool] = lambda: False,
    plan_review: PlanReview = "complex",
    task_presets: Callable[[], Sequence[TaskPresetInfo]] = tuple,
    had_tasks: Callable[[], bool] = lambda: False,
) -> tuple[Tool, ...]:
    """Make all of them, in the order in which models see them.

    Args:
        can_search: Whether a service for web search is configured at present.
        is_planning: Whether plans are shown for approval at present.
        plan_review: When plans are asked for.
        task_presets: Returns the agents that tasks can be given to at present.
        had_tasks: Whether the session ever had a background task.
    """
    return (
        read_tool(),
        write_tool(),
        edit_tool(),
        bash_tool(),
        grep_tool(),
        find_tool(),
        ls_tool(),
        todo_tool(),
        ask_tool(),
        background_tool(),
        fetch_tool(),
        web_search_tool(can_search),
        plan_tool(is_planning, review=plan_review),
        *task_tools(task_presets, had_tasks=had_tasks),
    )
