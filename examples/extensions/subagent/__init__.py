"""A tool that gives a task to a second agent with a context of its own; only its answer comes back."""

import os

from pydantic import Field

from agent_core import create_session
from agent_core.extensions import (
    ExtensionApi,
    ToolArguments,
    ToolCallContext,
    ToolResult,
    error_result,
    text_result,
)
from agent_core.kernel.errors import TillerError

NAME = "explore"
LOOKS = ("read", "grep", "find", "ls")


class ExploreArguments(ToolArguments):
    """What `explore` takes."""

    task: str = Field(
        description="What to find out, with all that is needed to know: nothing else is seen"
    )


def extension(api: ExtensionApi) -> None:
    """Register the tool."""

    @api.tool(
        name=NAME,
        kind="read",
        parallel_safe=True,
        title=lambda asked: f"explore {asked.get('task', '')}",
    )
    async def explore(asked: ExploreArguments, ctx: ToolCallContext) -> ToolResult:
        """Have another agent look through the workspace and answer a question. It can read and search, not change."""
        model = ctx.model
        if model is None:
            return error_result("There is no model to ask.")
        try:
            # Cancelled, the block is left, and the second agent ends with it.
            async with create_session(
                workspace=ctx.root,
                model=model.ref,
                tools=LOOKS,
                store="memory",
                settings={"permission": {"fallback": "deny"}},
                trusted=ctx.is_trusted,
                env=os.environ,  # noqa: TID251 - keys of models are in the environment of whoever started this
            ) as session:
                _ = await session.prompt(asked.task)
                ended = await session.wait_idle()
                answer = session.info.last_answer()
        except TillerError as error:
            return error_result(f"The other agent could not be asked: {error}")
        if answer is None or ended is None or ended.status != "completed":
            how = "it did not begin" if ended is None else ended.status
            return error_result(f"The other agent came to no answer: {how}.")
        return text_result(answer, details={"agent_session": session.id, "model": model.ref})
