"""Tools that need a permission, and what a test does as the person who is asked."""

from dataclasses import dataclass, field
from typing import Any

from agent_core.events import (
    PermissionRequested,
    ToolEnded,
)
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import StorageUnavailable
from agent_core.session.permissions.broker import LoadedRules
from agent_core.tools import text_result
from agent_core.workspace.permissions.policy import Rule
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench
from tests.support.workspace.tools import FunctionTool

PATH = "/usr/bin:/bin"


def command_tool() -> FunctionTool:
    """Make a tool that runs commands as far as permissions can see."""

    async def work(arguments, context):
        return text_result(f"ran {arguments['command']}")

    return FunctionTool("bash", work, kind="execute")


def write_tool(name: str = "write") -> FunctionTool:
    """Make a tool that writes what it is told, where it is told, or where `really` says."""

    async def work(arguments, context):
        files = context.files
        path = await files.resolve(arguments.get("really", arguments["path"]), "write")
        await files.write(path, "new", base=None)
        return text_result(f"wrote {path}")

    return FunctionTool(name, work, kind="edit")


@dataclass
class MemoryRules:
    """Keeps rules in a list."""

    kept: list[Rule] = field(default_factory=list)
    broken: bool = False

    async def load(self) -> LoadedRules:
        return LoadedRules(rules=tuple(self.kept))

    async def save(self, rule: Rule) -> None:
        if self.broken:
            raise StorageUnavailable("no space left on the disk")
        self.kept.append(rule)

    async def remove(self, rule_id: str) -> None:
        self.kept = [one for one in self.kept if one.id != rule_id]


def run(command: str, *, call_id: str = "c1", **more: JsonValue):
    return call("bash", {"command": command, **more}, id=call_id)


def model_of(*commands: str) -> ScriptedModel:
    """Make a model that runs each command in a turn of its own, then stops."""
    return ScriptedModel(
        [*(run(one, call_id=f"c{at}") for at, one in enumerate(commands)), say("done")]
    )


async def asked(it: Bench, count: int = 1) -> Any:
    event = await it.until(PermissionRequested, count)
    assert isinstance(event, PermissionRequested)
    return event.request


async def ended(it: Bench) -> list[str]:
    return [one.status for one in await it.idle() if isinstance(one, ToolEnded)]


async def result_of(it: Bench) -> Any:
    return await it.session.wait_idle()
