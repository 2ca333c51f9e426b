"""Whatever fails in the gate, the answer is no."""

from dataclasses import dataclass

import pytest
from typing_extensions import override

from agent_core.session.permissions import broker, requests
from agent_core.session.permissions.broker import LoadedRules, PermissionState
from agent_core.tools import text_result
from agent_core.workspace.permissions.policy import decision
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import MemoryRules, command_tool, ended, model_of, run
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool


@dataclass
class Broken:
    """Raises whatever is asked of it."""

    error: Exception

    def __call__(self, *_args, **_kwargs):
        raise self.error


ERRORS = [RuntimeError("boom"), OSError("disk"), TimeoutError(), KeyError("x")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    ("module", "name"),
    [
        (decision, "decide"),
        (requests, "build_request"),
        (requests, "as_input"),
        (broker, "is_protected"),
        (broker, "is_secret"),
        (broker, "is_inside"),
        (broker, "_unasked"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_whatever_fails_in_the_gate_nothing_runs_unasked(
    monkeypatch, module, name, error
) -> None:
    monkeypatch.setattr(module, name, Broken(error))
    ran: list[str] = []

    async def work(arguments, context):
        ran.append("ran")
        return text_result("ran")

    tools = [
        FunctionTool("bash", work, kind="execute"),
        FunctionTool("read", work, kind="read"),
        FunctionTool("write", work, kind="edit"),
    ]
    turns = {
        "is_secret": call("read", {"path": ".env"}),
        "is_protected": call("write", {"path": "AGENTS.md"}),
        "is_inside": call("write", {"path": "AGENTS.md"}),
    }
    fallback = "rules" if name == "_unasked" else "ask"
    standing = PermissionState(mode="ask", fallback=fallback)
    model = ScriptedModel([turns.get(name, run("make x")), say("ok")])
    files = {".env": "A=1"}
    async with bench(model, tools=tools, standing=standing, clock=HeldClock(), files=files) as it:
        await it.session.prompt("go")
        assert await ended(it) == ["blocked"]
        assert ran == []


@pytest.mark.parametrize("part", ["snapshot", "containment", "is_trusted", "refresh"])
async def test_whatever_fails_in_what_holds_nothing_runs(part) -> None:
    standing = PermissionState(mode="ask")
    broken = Broken(RuntimeError("boom"))
    if part in {"snapshot", "refresh"}:
        standing = type("BrokenStanding", (PermissionState,), {part: broken})(mode="ask")
    else:
        setattr(standing, part, broken)
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        it.session.permissions._broker.permissions = standing
        await it.session.prompt("go")
        assert await ended(it) == ["blocked"]


async def test_a_keeper_that_fails_while_the_rules_are_read_again_refuses() -> None:
    class Failing(MemoryRules):
        @override
        async def load(self) -> LoadedRules:
            raise RuntimeError("boom")

    standing = PermissionState(mode="ask", keeper=Failing())
    async with bench(
        model_of("make x"), tools=[command_tool()], standing=standing, clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        assert await ended(it) == ["blocked"]
        assert "which means no" in it.results()[0]
