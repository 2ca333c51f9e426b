"""Tools for tests: real implementations of the port that do next to nothing."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from agent_core.kernel import JsonObject
from agent_core.tools import CheckedCall, ToolContext, ToolResult, ToolSpec, text_result
from agent_core.workspace.permissions.call_permission import Allowed, ToolKind

Work = Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]


class AllowsAll:
    """A policy that lets every call run: for tests of what tools do."""

    async def judge(self, **_call: object) -> Allowed:
        return Allowed()


class FunctionTool:
    """A tool made of one async function; takes any arguments."""

    def __init__(
        self, name: str, work: Work, *, kind: ToolKind = "read", parallel_safe: bool = False
    ) -> None:
        self._spec = ToolSpec(
            name=name,
            description=f"test tool {name}",
            parameters={"type": "object"},
            kind=kind,
            parallel_safe=parallel_safe,
        )
        self._work = work
        self.calls: list[JsonObject] = []

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def title(self, arguments: JsonObject) -> str:
        return self._spec.name

    def check(self, arguments: JsonObject) -> CheckedCall:
        return CheckedCall(arguments=arguments, run=partial(self.run, arguments))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.calls.append(arguments)
        return await self._work(arguments, context)


def echo(name: str = "echo", *, parallel_safe: bool = False) -> FunctionTool:
    """Make a tool that gives its `text` back."""

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return text_result(f"{name}:{arguments.get('text', '')}")

    return FunctionTool(name, work, parallel_safe=parallel_safe)


class Hold:
    """A tool that waits until the test lets it go; tells when it is entered and how it was left."""

    def __init__(
        self, name: str = "hold", *, kind: ToolKind = "execute", parallel_safe: bool = False
    ) -> None:
        self.entered = anyio.Event()
        self.release = anyio.Event()
        self.cancelled = False
        self.tool = FunctionTool(name, self._work, kind=kind, parallel_safe=parallel_safe)

    async def _work(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.output("working\n")
        self.entered.set()
        try:
            await self.release.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise
        return text_result("held")
