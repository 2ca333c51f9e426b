"""The built-in tools at work in a folder, without a server: what a tool costs, nothing else."""

from collections.abc import Mapping
from pathlib import Path

from agent_core.hooks import HookRunner, HookTable
from agent_core.kernel import JsonValue, SystemClock, ToolCallId
from agent_core.messages import ToolCall
from agent_core.tools import ToolContext
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.runner import ToolRunner
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import Sandbox
from tests.support.workspace.tools import AllowsAll, echo

NOTHING = "echo"
"""A tool that does nothing: what it takes is the cost of every call."""


class ToolBench:
    """Runs calls as the loop runs them."""

    def __init__(
        self, root: Path, env: Mapping[str, str], *, sandbox: Sandbox | None = None
    ) -> None:
        """Take a real folder, in which and beside which may be written, and what contains commands."""
        self._workspace = Workspace(
            roots=(root,),
            files=DiskFiles((root,), root.parent),
            processes=DiskProcesses(sandbox=sandbox),
            env=env,
        )
        self._scratch = str(root.parent / "outputs")
        tools = {tool.spec.name: tool for tool in (*builtin_tools(), echo(NOTHING))}
        self._runner = ToolRunner(
            tools=lambda: tools,
            hooks=HookRunner(HookTable(), report=lambda _: None),
            policy=AllowsAll(),
            clock=SystemClock(),
            context=lambda call, output: ToolContext(
                call=call.id,
                workspace=self._workspace,
                clock=SystemClock(),
                output=output,
                scratch=self._scratch,
            ),
        )

    async def run(self, name: str, **arguments: JsonValue) -> None:
        """Run one call, which must succeed."""
        call = ToolCall(id=ToolCallId("call-1"), name=name, arguments=arguments)
        outcome = await self._runner.run(
            call, running=lambda _, _details: None, output=lambda _: None
        )
        if outcome.status != "ok":
            message = f"{name} failed: {outcome.result.content}"
            raise RuntimeError(message)
