"""Puts the questions of a session before the person at one client, and withdraws them when somebody was faster."""

import logging
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agent_core.events import PermissionRequest, PermissionRequested, PermissionResolved
from agent_core.kernel.errors import TillerError
from agent_core.session import AgentSession
from server.lsp import pictures
from server.lsp.dialogs import answered, chosen, dialog
from server.lsp.documents import Mirror
from server.lsp.permission import OBSERVER, check_role
from server.lsp.protocol import Connection
from server.lsp.rpc import RpcError

PERMISSION: Final = "agent/permission"
SHOW_MESSAGE: Final = "window/showMessageRequest"
QUIET_S: Final = 1.0
"""A dialog that stops everything else waits for such a pause in the user's typing."""

_log = logging.getLogger(__name__)


class Dialogs:
    """The questions before one client. One that shows `agent/permission` gets all at once, another one by one."""

    def __init__(
        self,
        connection: Connection,
        mirror: Mirror,
        *,
        name: str,
        role: str | None,
        shows: bool,
        blocking: bool,
    ) -> None:
        """Start with nothing asked.

        Args:
            connection: The client.
            mirror: Its documents, to see whether somebody types.
            name: Who answers, as others are told.
            role: As what it attached; an observer is not asked.
            shows: The client declared that it shows permission requests.
            blocking: Nothing else happens in the client while a dialog is open.
        """
        self._connection = connection
        self._mirror = mirror
        self._name = name
        self._role = role
        self._shows = shows
        self._blocking = blocking
        self._turn = anyio.Lock()
        self._open: dict[str, anyio.CancelScope] = {}
        self._following: list[anyio.CancelScope] = []

    async def follow(self, session: AgentSession) -> None:
        """Ask what the session asks, until it is closed or the client leaves; first what waits already."""
        if self._role == OBSERVER:
            return
        reader = session.subscribe()
        try:
            async with anyio.create_task_group() as group:
                self._following.append(group.cancel_scope)
                for request in session.permissions.pending:
                    self._start(group, session, request)
                async for stamped in reader:
                    match stamped.event:
                        case PermissionRequested(request=request):
                            self._start(group, session, request)
                        case PermissionResolved(request=request):
                            self._withdraw(request)
                        case _:
                            pass
                group.cancel_scope.cancel()
        finally:
            reader.close()

    def check_may_decide(self) -> None:
        """Let a client that may decide pass.

        Raises:
            RpcError: It said that it only watches.
        """
        check_role(self._role)

    def close(self) -> None:
        """The client has left: nobody is asked here any more. What waits goes on waiting."""
        for scope in self._following:
            scope.cancel()

    def _start(self, group: TaskGroup, session: AgentSession, request: PermissionRequest) -> None:
        if request.request not in self._open:
            scope = self._open[request.request] = anyio.CancelScope()
            group.start_soon(self._ask, session, request, scope)

    def _withdraw(self, request: str) -> None:
        scope = self._open.pop(request, None)
        if scope is not None:
            scope.cancel()

    async def _ask(
        self, session: AgentSession, request: PermissionRequest, scope: anyio.CancelScope
    ) -> None:
        """Ask one question. A client that fails has not answered: the question waits for others, or its time."""
        with scope:
            try:
                option, note = await self._answer(request)
                _ = session.permissions.answer(request.request, option, note=note, by=self._name)
            except (ConnectionError, TimeoutError):
                _log.info("The client left while it was asked.")
            except RpcError as error:
                _log.warning("The client cannot be asked: %s", error.message)
            except TillerError as error:
                _log.warning("The answer of the client was not taken: %s", error)
            except Exception:  # noqa: BLE001 - a question that fails must not end the sessions that share its task group
                _log.exception("A question could not be asked.")

    async def _answer(self, request: PermissionRequest) -> tuple[str, str | None]:
        if self._shows:
            try:
                params = pictures.request(request)
                answer = await self._connection.request(PERMISSION, params, timeout_s=None)
                return answered(request, answer)
            except RpcError as error:
                _log.warning("The client does not show a question it said it would: %s", error)
        async with self._turn:
            await self._quiet()
            # The user did not see the dialog yet, and its time may be nearly up: it is asked all the same.
            answer = await self._connection.request(SHOW_MESSAGE, dialog(request), timeout_s=None)
            return chosen(request, answer), None

    async def _quiet(self) -> None:
        """Wait for a pause in the user's typing, where a dialog would take the keys that they type."""
        while self._blocking:
            changes = (one.changed_at for one in self._mirror.documents())
            left_s = max(changes, default=float("-inf")) + QUIET_S - self._mirror.clock()
            if left_s <= 0:
                return
            await anyio.sleep(left_s)
