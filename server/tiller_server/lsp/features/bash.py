"""`agent/bash`: run a command of the user's own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.events.subscription import Subscription, of_bash
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.transport.progress import ProgressToken
from tiller_server.lsp.wire import BashParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Run it to its end; `$/cancelRequest` ends it, and the answer says so."""
    asked = parse(BashParams, params, method="agent/bash")
    open_session = await client.resolve_session(asked.session)
    session = open_session.session
    async with _shown(client, open_session, asked.partial_result_token):
        try:
            with open_session.environment.use_for_submission(client.origin.env):
                result = await session.execute_bash(
                    asked.command, exclude_from_context=asked.exclude_from_context or False
                )
        except TillerError as error:
            raise to_rpc_error(error, session=session.id) from error
    await client.flush()
    answer: dict[str, Any] = {
        "output": result.output,
        "exitCode": result.exit_code,
        "cancelled": result.cancelled,
        "truncated": result.truncated,
    }
    return answer if result.full_output is None else {**answer, "fullOutput": result.full_output}


@asynccontextmanager
async def _shown(
    client: ConnectedClient, open_session: Any, token: ProgressToken | None
) -> AsyncGenerator[None]:
    """Send what the command prints on the token of the request."""
    if token is None:
        yield
        return
    subscription = Subscription(client.connection, open_session, token=token, only=of_bash)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(subscription.run())
        try:
            yield
        finally:
            await subscription.flush()
            subscription.close()
        _ = await sending
