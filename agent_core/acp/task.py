"""A task for an external agent."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from agent_core.acp.model import ExternalAgent
from agent_core.acp.port import AgentChanges, AgentLaunch
from agent_core.acp.requests import (
    COMMAND,
    EDIT,
    LOOK,
    READ,
    START,
    STEP,
    TERMINAL,
    TODO_TOOL,
    WRITE,
    other_tool,
)
from agent_core.acp.tools import AgentWork, agent_tools
from agent_core.kernel.errors import ToolError
from agent_core.tools import Tool

STEPS: Final = (START, STEP, TERMINAL, COMMAND, EDIT, LOOK)


class ExternalTask(Struct, kw_only=True):
    """A task for an external agent."""

    launch: AgentLaunch
    active: Sequence[str]
    """Tools of the session that gives the task."""
    on_activity: Callable[[str], None]
    """Called with the title of what the agent does."""
    changes: AgentChanges
    agent: ExternalAgent | None = None
    """Set when the session of the task is open."""

    def work(self) -> AgentWork:
        """Return the agent."""
        if self.agent is None:
            message = "the external agent is not there"
            raise ToolError(message)
        return self.agent

    @property
    def tools(self) -> Sequence[Tool]:
        """Tools that stand for what the agent does."""
        return agent_tools(self.launch.name, self.work)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the tools of the task: never more than those of the session that gives it.

        Raises:
            ToolError: That session runs no commands.
        """
        if "bash" not in self.active:
            message = f"{self.launch.name!r} is an external agent, which is a command, and the tool bash is not active here; choose another agent"
            raise ToolError(message)
        inherited = {"read": READ, "write": WRITE, "edit": WRITE, "todo": TODO_TOOL}
        own = dict.fromkeys(own for name, own in inherited.items() if name in self.active)
        return (*STEPS, other_tool(self.launch.name), *own)
