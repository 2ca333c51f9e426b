"""A command runs with no less containment than it was judged with, or its question named."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.events import Budgets
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.runs.usage import BudgetPolicy
from agent_core.tools import text_result
from agent_core.workspace import NO_NEEDS, Process, Workspace
from agent_core.workspace.permissions.call_permission import Needs, SandboxLevel
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import asked, ended, model_of, run
from tests.support.session.scripted_model import ScriptedModel, say
from tests.support.session.sessions import NoProcesses, bench
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.tools import FunctionTool

ROOT = Path("/project")
UNCONTAINED: frozenset[Needs] = frozenset({"uncontained"})


class NotedProcesses:
    """Notes what processes would have been started with."""

    def __init__(self) -> None:
        self.needs: list[frozenset[Needs]] = []
        self._nothing = NoProcesses()

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        self.needs.append(needs)
        return await self._nothing.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)

    async def before_start(self) -> str | None:
        return None


def starting_tool() -> FunctionTool:
    async def work(arguments, context):
        _ = await context.processes.start(("true",), cwd=ROOT, env={})
        return text_result("started")

    return FunctionTool("bash", work, kind="execute")


def place_of(processes: NotedProcesses, standing: PermissionState) -> WorkspaceContext:
    workspace = Workspace(
        roots=(ROOT,), files=MemoryFiles((ROOT,), Path("/home/user")), processes=processes, env={}
    )
    return WorkspaceContext(
        workspace=workspace, permissions=standing, allowance=BudgetPolicy(ceiling=Budgets())
    )


@pytest.mark.parametrize(
    ("level", "needs"), [("full", NO_NEEDS), ("partial", UNCONTAINED), ("none", UNCONTAINED)]
)
async def test_a_command_is_started_as_it_was_judged(
    level: SandboxLevel, needs: frozenset[Needs]
) -> None:
    processes = NotedProcesses()
    place = place_of(processes, PermissionState(mode="yolo", containment=lambda: level))
    async with bench(model_of("make x"), tools=[starting_tool()], workspace=place) as it:
        await it.session.prompt("go")
        _ = await ended(it)
    assert processes.needs == [needs]


@pytest.mark.parametrize(("before", "needs"), [("full", NO_NEEDS), ("none", UNCONTAINED)])
async def test_a_yes_is_one_to_the_containment_that_the_question_named(
    before: SandboxLevel, needs: frozenset[Needs]
) -> None:
    levels: list[SandboxLevel] = [before]
    processes = NotedProcesses()
    standing = PermissionState(mode="ask", containment=lambda: levels[-1])
    place = place_of(processes, standing)
    model = ScriptedModel([run("make x", needs=["network"]), say("done")])
    async with bench(model, tools=[starting_tool()], workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert request.subject.sandbox == before
        levels.append("none")
        it.session.permissions.answer(request.request, "allowOnce")
        _ = await ended(it)
    assert processes.needs == [needs]
