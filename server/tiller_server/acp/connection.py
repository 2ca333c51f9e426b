"""One client of the Agent Client Protocol: its methods, and the sessions that it has opened."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from tiller_server.acp.capabilities import (
    NEWEST,
    ClientCapabilities,
    client_capabilities,
    offered_version,
    server_capabilities,
)
from tiller_server.acp.content import prompt_content
from tiller_server.acp.errors import (
    AUTH_REQUIRED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    AcpError,
    of_agent,
)
from tiller_server.acp.mcp_servers import mcp_servers
from tiller_server.acp.peer import JsonRpcPeer, PeerHandler, PeerReply, Reader, Request, Writer
from tiller_server.acp.sessions.client_files import ClientFileRequests
from tiller_server.acp.sessions.options import option_change
from tiller_server.acp.sessions.session import AcpSession, OpenAgent, Opening
from tiller_server.acp.sessions.turns import Turns
from tiller_server.acp.sessions.user_dialogs import UserDialogs
from tiller_server.acp.unbound_requests import UnboundRequests
from tiller_server.acp.updates.stream import CONTINUE, EPOCH, PROMPTED, RECREATE, SESSION
from tiller_server.agent_client.connection import AgentRefused, RequestHandler

ACCEPT_S: Final = 2.0
_log = logging.getLogger(__name__)

MAX_SESSIONS: Final = 64
"""Open sessions of a client."""
NO_KEY: Final = "No key of a provider is there. Run `tiller auth login` in a terminal."
TERMINAL_LOGIN: Final[JsonObject] = {
    "type": "terminal",
    "id": "tiller-login",
    "name": "Sign in",
    "description": "Asks for a provider and its key in a terminal.",
    "args": ["--login"],
    "env": {},
}
"""How the client signs its user in: with `tiller acp --login`."""
UNSTORED: Final = frozenset({"SessionNotFound", "Internal"})
"""Kinds of errors when a session is opened of which the daemon had stored nothing, or a part of a line, when it ended."""
DELIVERIES: Final[Mapping[str, str]] = {"auto": "auto", "followUp": "followUp"}


class AcpConnection:
    """One client, from its first message to the end of the connection."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        open_agent: OpenAgent,
        *,
        client_id: str,
        env: Mapping[str, str],
        clock: Clock,
        newest: int = NEWEST,
    ) -> None:
        """Prepare it; `serve` has to run.

        Args:
            reader: Bytes of the client.
            writer: Bytes to the client; closed at the end.
            open_agent: Connects to the agent; called once per session.
            client_id: Stable and unique id of the client process: the same when it connects again.
            env: Environment of the client.
            clock: Time.
            newest: Newest version of the protocol that is served.
        """
        self.client: ClientCapabilities | None = None
        """Capabilities of the client; None before `initialize`."""
        self._open_agent = open_agent
        self._unbound = UnboundRequests(open_agent, env=env, clock=clock)
        self._client_id = client_id
        self._clock = clock
        self._newest = newest
        self._sessions: dict[str, tuple[AcpSession, Turns]] = {}
        self._tasks = asyncio.TaskGroup()
        self._requests: dict[str, PeerHandler] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "logout": self._logout,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/list": self._list,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }
        self._peer = JsonRpcPeer(
            reader,
            writer,
            requests=self._requests,
            notifications={"session/cancel": self._cancel},
            first_number=clock.now_ms(),
        )

    async def serve(self) -> None:
        """Serve the client until it leaves; its runs go on in the agent."""
        async with self._tasks:
            try:
                await self._peer.serve(before_end=self._accept_prompts)
            finally:
                for session, _ in self._sessions.values():
                    session.close()

    def close(self) -> None:
        """End the connection."""
        self._peer.close()

    async def _accept_prompts(self) -> None:
        """Wait until the agent has the prompts that were sent, which it goes on with."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ACCEPT_S):
                for session, _ in [*self._sessions.values()]:
                    for prompt in session.prompts.pending:
                        _ = await prompt.accepted.wait()

    # ------------------------------------------------------------------ the client

    async def _initialize(self, request: Request) -> JsonObject:
        if self.client is not None:
            raise AcpError(INVALID_REQUEST, "initialize was sent before")
        if min(offered_version(request.params), self._newest) > NEWEST:
            return await self._initialize_version2(request)
        return await self._introduce(client_capabilities(request.params))

    async def _initialize_version2(self, request: Request) -> JsonObject:
        from tiller_server.acp import version2  # noqa: PLC0415 - a draft that few clients speak

        self._peer.requests = version2.request_handlers(self._requests)
        params = version2.initialize_params(request.params)
        client = client_capabilities(params, protocol=version2.VERSION)
        return version2.initialize_result(await self._introduce(client))

    async def _introduce(self, client: ClientCapabilities) -> JsonObject:
        self.client = client
        is_signed_in = not client.has_terminal_auth or await self._unbound.has_key()
        return server_capabilities([] if is_signed_in else [TERMINAL_LOGIN])

    async def _authenticate(self, request: Request) -> JsonObject:
        _ = self._introduced()
        method = request.params.get("methodId")
        if not isinstance(method, str):
            raise AcpError(INVALID_PARAMS, "authenticate: methodId is a text")
        if not await self._unbound.has_key():
            raise AcpError(AUTH_REQUIRED, NO_KEY)
        return {}

    async def _logout(self, _request: Request) -> JsonObject:
        _ = self._introduced()
        await self._unbound.log_out()
        return {}

    # ------------------------------------------------------------------ sessions

    async def _new(self, request: Request) -> PeerReply:
        if not isinstance(request.params.get("mcpServers"), list):
            raise AcpError(INVALID_PARAMS, "session/new: mcpServers is a list, which may be empty")
        session = await self._opened(request, "new")
        result: JsonObject = {"sessionId": session.stream.session, **session.described()}
        return PeerReply(result=result, then=session.begin)

    async def _load(self, request: Request) -> PeerReply:
        session = await self._opened(request, self._named(request))
        try:
            await session.replay()
        except AgentRefused as error:
            raise of_agent(error) from error
        session.stream.report_state()
        return PeerReply(result=session.described(), then=session.begin)

    async def _resume(self, request: Request) -> PeerReply:
        named = self._named(request)
        meta = as_object(request.params.get("_meta"))
        try:
            session = await self._opened(request, as_text(meta.get(SESSION)) or named, named)
        except AcpError as error:
            if error.data.get("kind") not in UNSTORED or meta.get(RECREATE) is not True:
                raise
            # `tiller acp` says that no prompt of it was answered: it is made anew, under the same id.
            session = await self._opened(request, "new", named)
        run, (_, turns) = as_text(meta.get(CONTINUE)), self._sessions[session.stream.session]
        is_continued = bool(run) and await turns.go_on(run)
        if run and not is_continued and meta.get(EPOCH) != session.stream.epoch:
            # The run is over, and its daemon ended before the client was told: no event of it will come.
            session.stream.report_end()
        else:
            is_prompted = meta.get(PROMPTED) is True
            session.stream.report_state(is_continued=is_continued, is_prompted=is_prompted)
        return PeerReply(result=session.described(), then=session.begin)

    async def _opened(self, request: Request, which: str, named: str = "") -> AcpSession:
        """Open a session, or return it if this client has it open already.

        Args:
            request: The request, with folders and `_meta`.
            which: Id of the session, or `new`.
            named: Id by which the client knows it; empty: its own.
        """
        client = self._introduced()
        folders = _folders(request)
        if (held := self._sessions.get(named or which)) is not None:
            return held[0]
        if len(self._sessions) >= MAX_SESSIONS:
            raise AcpError(INVALID_REQUEST, f"{MAX_SESSIONS} sessions are open; close one first")
        meta = as_object(request.params.get("_meta"))
        opening = Opening(
            session=which,
            named=named,
            folders=folders,
            mcp_servers=mcp_servers(request.params.get("mcpServers")),
            meta=meta,
            client_id=self._client_id,
        )
        session = AcpSession(self._peer, client, opening)
        dialogs = UserDialogs(self._peer, client, session, clock=self._clock)
        handlers: dict[str, RequestHandler] = {
            "agent/permission": dialogs.ask_permission,
            "agent/question": dialogs.ask_question,
            **ClientFileRequests(self._peer, session).handlers,
        }
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._tasks.create_task(self._hold(session, handlers, ready))
        task.add_done_callback(lambda _: self._forget(session))
        try:
            await ready
        except asyncio.CancelledError:
            session.close()
            _ = task.cancel()
            raise
        self._sessions[session.stream.session] = session, Turns(session)
        return session

    async def _hold(
        self,
        session: AcpSession,
        handlers: Mapping[str, RequestHandler],
        ready: "asyncio.Future[None]",
    ) -> None:
        try:
            await session.run(self._open_agent, handlers, ready)
        except Exception:  # noqa: BLE001 - a session that breaks must not end the others of its client
            _log.exception("A session of an ACP client has broken off.")

    def _forget(self, session: AcpSession) -> None:
        held = self._sessions.get(session.stream.session)
        if held is not None and held[0] is session:
            del self._sessions[session.stream.session]

    async def _close(self, request: Request) -> JsonObject:
        session, turns = self._session(request)
        await turns.cancel()
        session.close()
        self._forget(session)
        return {}

    async def _delete(self, request: Request) -> JsonObject:
        stored = named = self._named(request)
        if (held := self._sessions.get(named)) is not None:
            stored = held[0].id
            _ = await self._close(request)
        await self._unbound.delete(stored)
        return {}

    async def _list(self, request: Request) -> JsonObject:
        _ = self._introduced()
        cwd = request.params.get("cwd")
        folder = None if cwd is None else _folder(cwd, request.method)
        return await self._unbound.sessions(folder, request.params.get("cursor"))

    # ------------------------------------------------------------------ turns

    async def _prompt(self, request: Request) -> JsonObject:
        session, turns = self._session(request)
        content = prompt_content(request.params.get("prompt"))
        meta = as_object(as_object(request.params.get("_meta")).get("tiller.dev"))
        delivery = DELIVERIES.get(as_text(meta.get("delivery")), "auto")
        message_id = f"{self._client_id}:{session.id}:{request.id}"
        if self._introduced().protocol > NEWEST:
            request.on_cancel = lambda: self._begin(turns.withdraw(message_id))
            shown = request.params.get("prompt")
            inserted = await turns.insert(message_id, content, delivery=delivery, shown=shown)
            return {"messageId": inserted}
        request.on_cancel = lambda: self._begin(turns.cancel())
        stop_reason = await turns.prompt(message_id, content, delivery=delivery)
        return {"stopReason": stop_reason, "_meta": session.stream.meta}

    def _cancel(self, params: JsonObject) -> None:
        held = self._sessions.get(as_text(params.get("sessionId")))
        if held is not None:
            self._begin(held[1].cancel())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        _ = self._tasks.create_task(work)

    # ------------------------------------------------------------------ configuration

    async def _set_mode(self, request: Request) -> JsonObject:
        mode = request.params.get("modeId")
        if not isinstance(mode, str):
            raise AcpError(INVALID_PARAMS, "session/set_mode: modeId is a text")
        _ = await self._configured(request, {"mode": mode})
        return {}

    async def _set_config_option(self, request: Request) -> JsonObject:
        session = await self._configured(request, option_change(request.params))
        return {"configOptions": session.options()}

    async def _configured(self, request: Request, change: JsonObject) -> AcpSession:
        session, _ = self._session(request)
        try:
            await session.configure(change)
        except AgentRefused as error:
            raise AcpError(INVALID_PARAMS, str(error), of_agent(error).data) from error
        return session

    # ------------------------------------------------------------------ params

    def _introduced(self) -> ClientCapabilities:
        if self.client is None:
            raise AcpError(INVALID_REQUEST, "initialize comes first")
        return self.client

    def _named(self, request: Request) -> str:
        _ = self._introduced()
        session = request.params.get("sessionId")
        if not isinstance(session, str) or not session:
            raise AcpError(INVALID_PARAMS, f"{request.method}: sessionId is a text")
        if session in {"new", "latest"}:
            raise AcpError(NOT_FOUND, f"there is no session {session!r}")
        return session

    def _session(self, request: Request) -> tuple[AcpSession, Turns]:
        session = self._named(request)
        held = self._sessions.get(session)
        if held is None:
            message = f"session {session!r:.80} is not open here; open it with session/load or session/resume"
            raise AcpError(NOT_FOUND, message)
        return held


def _folders(request: Request) -> tuple[Path, ...]:
    more = request.params.get("additionalDirectories")
    named = (request.params.get("cwd"), *(more if isinstance(more, list) else []))
    return tuple(_folder(one, request.method) for one in named)


def _folder(given: JsonValue, method: str) -> Path:
    if not isinstance(given, str) or "\0" in given or not Path(given).is_absolute():
        message = f"{method}: cwd and additionalDirectories are absolute paths, not {given!r:.200}"
        raise AcpError(INVALID_PARAMS, message)
    return Path(given)
