"""Requests of a client outside of an open session: the list of sessions, deleting one, and keys of providers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.clock import rfc3339
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object
from agent_core.providers.auth.credentials import KEYLESS
from agent_core.resources.paths import app_paths
from tiller_server import VERSION
from tiller_server.acp.errors import INVALID_PARAMS, AcpError, of_agent
from tiller_server.acp.sessions.session import OpenAgent
from tiller_server.agent_client.connection import AgentClient, AgentRefused

PAGE = 100


class UnboundRequests:
    """Requests without a session; each has a connection of its own to the agent."""

    def __init__(self, open_agent: OpenAgent, *, env: Mapping[str, str], clock: Clock) -> None:
        """Prepare it.

        Args:
            open_agent: Connects to the agent.
            env: Environment of the client, which says where sessions are stored.
            clock: Time.
        """
        self._open_agent = open_agent
        self._env = env
        self._clock = clock

    async def sessions(self, folder: Path | None, cursor: JsonValue) -> JsonObject:
        """Return a page of stored sessions, newest first.

        Args:
            folder: Only those of this folder; None: of all folders.
            cursor: `nextCursor` of the page before; None: the first page.

        Raises:
            AcpError: The cursor was not given out.
        """
        from agent_core.assembly.library import open_library  # noqa: PLC0415 - at first use

        place = cursor if isinstance(cursor, str) else None
        async with open_library(app_paths(self._env), clock=self._clock) as library:
            try:
                page = await library.list(
                    None if folder is None else str(folder), limit=PAGE, cursor=place
                )
            except UsageError as error:
                raise AcpError(INVALID_PARAMS, f"session/list: {error}") from error
        rows: list[JsonValue] = [
            {
                "sessionId": one.session,
                "cwd": one.cwd,
                "title": one.title or one.preview,
                "updatedAt": rfc3339(one.modified_ms),
            }
            for one in page.sessions
        ]
        return (
            {"sessions": rows} if page.next is None else {"sessions": rows, "nextCursor": page.next}
        )

    async def delete(self, session: str) -> None:
        """Delete a stored session.

        Raises:
            AcpError: There is none of this id, or it cannot be deleted.
        """
        await self._ask("agent/session/delete", {"session": session})

    async def has_key(self) -> bool:
        """Return whether a provider has a key; local ones, which need none, say nothing about that."""
        return any(
            one.get("state") == "ok" and one.get("source") != KEYLESS
            for one in await self._accounts()
        )

    async def log_out(self) -> None:
        """Delete the stored credentials of all providers."""
        for account in await self._accounts():
            if account.get("state") == "ok":
                await self._ask("agent/auth/logout", {"provider": account.get("provider")})

    async def _accounts(self) -> list[JsonObject]:
        listed = (await self._ask("agent/auth/status", {})).get("providers")
        return [as_object(one) for one in listed] if isinstance(listed, list) else []

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        refusal: AgentRefused | None = None
        result: JsonValue = None
        async with self._connected() as agent:
            try:
                result = await agent.request(method, params)
            except AgentRefused as error:
                refusal = (
                    error  # an error would leave the task group of the connection as one of a group
                )
        if refusal is not None:
            raise of_agent(refusal) from refusal
        return as_object(result)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AgentClient]:
        async with self._open_agent({}, {}) as agent:
            await agent.introduce({"name": "ACP", "version": VERSION, "role": "panel"})
            yield agent
