"""`agent/bash`: run a command of the user's own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.events.subscription import Subscription, of_bash
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.transport.progress import ProgressToken
from tiller_server.lsp.wire import BashParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Run it to its end; `$/cancelRequest` ends it, and the answer says so."""
    asked = parse(BashParams, params, method="agent/bash")
    hosted = await front.hosted(asked.session)
    session = hosted.session
    async with _shown(front, hosted, asked.partial_result_token):
        try:
            with hosted.environment.speaks(front.origin.env):
                result = await session.execute_bash(
                    asked.command, exclude_from_context=asked.exclude_from_context or False
                )
        except TillerError as error:
            raise rpc_error(error, session=session.id) from error
    await front.flush()
    answer: dict[str, Any] = {
        "output": result.output,
        "exitCode": result.exit_code,
        "cancelled": result.cancelled,
        "truncated": result.truncated,
    }
    return answer if result.full_output is None else {**answer, "fullOutput": result.full_output}


@asynccontextmanager
async def _shown(front: Front, hosted: Any, token: ProgressToken | None) -> AsyncGenerator[None]:
    """Send what the command prints on the token of the request."""
    if token is None:
        yield
        return
    subscription = Subscription(front.connection, hosted, token=token, only=of_bash)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(subscription.run())
        try:
            yield
        finally:
            await subscription.flush()
            subscription.close()
        _ = await sending
