"""`agent/bash`: run a command of the user's own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tiller_server.lsp.events.subscription import Subscription, of_bash
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.transport.progress import ProgressToken
from tiller_server.lsp.wire.runs import BASH, BashParams, BashResult


@session_feature(BASH)
async def bash(
    client: ConnectedClient, open_session: OpenSession, params: BashParams
) -> BashResult:
    """Run it to its end; `$/cancelRequest` ends it, and the answer says so."""
    async with _shown(client, open_session, params.partial_result_token):
        with open_session.environment.use_for_submission(client.origin.env):
            result = await open_session.session.execute_bash(
                params.command, exclude_from_context=params.exclude_from_context or False
            )
    await client.flush()
    return BashResult(
        output=result.output,
        exit_code=result.exit_code,
        cancelled=result.cancelled,
        truncated=result.truncated,
        full_output=result.full_output,
    )


@asynccontextmanager
async def _shown(
    client: ConnectedClient, open_session: OpenSession, token: ProgressToken | None
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
