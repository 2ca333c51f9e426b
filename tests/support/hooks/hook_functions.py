"""Hook functions that give, raise or hang, and a runner that notes every failure."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agent_core.hooks import GoOn, Hook, HookFailure, HookLimits, HookRunner, HookTable
from agent_core.messages import Text
from agent_core.tools import ToolResult, text_result
from tests.support.workspace.tools import FunctionTool


def gives(outcome: object, *, seen: list[object] | None = None) -> Callable[..., Awaitable[Any]]:
    """Make a hook function that notes what it is asked and always gives the same."""

    async def run(asked: object, _: object) -> Any:
        if seen is not None:
            seen.append(asked)
        return outcome

    return run


def raises(error: BaseException) -> Callable[..., Awaitable[Any]]:
    async def run(*_: object) -> Any:
        raise error

    return run


async def hangs(*_: object) -> Any:
    await anyio.sleep_forever()
    return GoOn()


def text(words: str) -> tuple[Text, ...]:
    return (Text(text=words),)


def bash(output: str = "output", **details: Any) -> FunctionTool:
    async def work(*_: object) -> ToolResult:
        return text_result(output, details=details or None)

    return FunctionTool("bash", work, kind="execute")


def put(table: HookTable, at: type[Any], *hooks: Hook[Any, Any]) -> None:
    """Put several hooks at a point."""
    for hook in hooks:
        table.add(hook, at=at)


def runner(
    table: HookTable, *, limit_s: float = 5.0
) -> tuple[HookRunner, list[tuple[str, str, str]]]:
    failures: list[tuple[str, str, str]] = []

    def report(failure: HookFailure) -> None:
        failures.append((failure.owner, failure.point, failure.error))

    return HookRunner(
        table, report=report, limits=HookLimits(short_s=limit_s, long_s=limit_s)
    ), failures
