"""A session whose model gives tasks to external agents, and the person who is asked."""

import json
import sys
from pathlib import Path
from typing import Any

from agent_core.events import TaskEnded, TaskInfo, TaskUpdated
from agent_core.session import AgentSession
from tests.support.mcp.mcp_office import McpOffice, call

HERE = Path(__file__).parent
SCRIPTED = HERE / "scripted_agent.py"
LIAR = HERE / "liar.py"


def scripted(**more: Any) -> dict[str, Any]:
    """Name the agent of the SDK."""
    return {"command": sys.executable, "args": [str(SCRIPTED)], **more}


def liar(habit: str, **more: Any) -> dict[str, Any]:
    """Name an agent with a bad habit."""
    return {"command": sys.executable, "args": ["-I", str(LIAR), habit], **more}


class AgentOffice(McpOffice):
    """Sessions with external agents in one folder."""

    def agents(self, *, mode: str = "yolo", settings: Any = None, **named: Any) -> None:
        """Write the user's settings."""
        self.configure(
            permission={"mode": mode},
            externalAgents=named,
            **({} if settings is None else settings),
        )

    async def give(
        self, session: AgentSession, *steps: list[Any], preset: str = "robot", **more: Any
    ) -> str:
        """Have an agent work on a task of these steps; return the result of the call."""
        order = {
            k: more.pop(k) for k in ("background", "model", "budget", "isolation") if k in more
        }
        task = call("task", description="do it", prompt=json.dumps(steps), preset=preset, **order)
        (result,) = await self.run(session, task, **more)
        return result

    @property
    def tasks(self) -> list[TaskInfo]:
        """The tasks that have ended."""
        return [one.task for one in self.events if isinstance(one, TaskEnded)]

    @property
    def activities(self) -> list[str]:
        """What tasks did, as it was told."""
        updates = [one.task.activity for one in self.events if isinstance(one, TaskUpdated)]
        return [one for one in updates if one]
