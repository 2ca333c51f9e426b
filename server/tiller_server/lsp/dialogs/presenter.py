"""Dialogs at one client for the questions of a session, withdrawn when another client answers first."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import anyio

from agent_core.channels import (
    UNANSWERED,
    PermissionChoice,
    QuestionReply,
    Unanswered,
    serve_channel,
)
from agent_core.events import PermissionRequest, Question
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.permission_dialog import answered, chosen, dialog
from tiller_server.lsp.dialogs.permission_mode import OBSERVER, check_role
from tiller_server.lsp.dialogs.question_dialog import (
    form_answer,
    line_answer,
    line_dialog,
    missing,
    shows,
    untold,
)
from tiller_server.lsp.documents.mirror import Mirror
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection

PERMISSION: Final = "agent/permission"
QUESTION: Final = "agent/question"
SHOW_MESSAGE: Final = "window/showMessageRequest"
TELL: Final = "window/showMessage"
QUIET_S: Final = 1.0
"""A dialog that stops everything else waits for such a pause in the user's typing."""
MENU_S: Final = 120.0
"""How long a list to choose from stays open."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class QuestionPresenter:
    """The questions before one client: at once where it shows them in its own way, else one plain dialog at a time."""

    def __init__(
        self,
        connection: LspConnection,
        mirror: Mirror,
        *,
        name: str,
        role: str | None,
        shows: frozenset[str],
        blocking: bool,
    ) -> None:
        """Start with nothing asked.

        Args:
            connection: The client.
            mirror: Its documents, to see whether the user types.
            name: Name of the client that answers, as the other clients see it.
            role: Role in which the client attached; an observer is not asked.
            shows: Methods of ours that the client declared: `agent/permission`, `agent/question`.
            blocking: Whether a dialog blocks everything else in the client.
        """
        self._connection = connection
        self._mirror = mirror
        self.name = name
        self._role = role
        self._shows = shows
        self._blocking = blocking
        self._turn = anyio.Lock()
        self._following: list[anyio.CancelScope] = []
        self._menu = anyio.CancelScope()

    @property
    def shows_forms(self) -> bool:
        """Whether every question can be answered here."""
        return self._role != OBSERVER and QUESTION in self._shows

    async def follow(
        self, session: AgentSession, *, is_shown: Callable[[], bool] = lambda: False
    ) -> None:
        """Ask what the session asks, until it is closed or the client leaves; first what waits already.

        Args:
            session: The session.
            is_shown: Whether some client of the session shows every question.
        """
        if self._role == OBSERVER:
            return
        with anyio.CancelScope() as scope:
            self._following.append(scope)
            pending = (*session.permissions.pending, *session.questions.pending)
            await serve_channel(_Dialogs(self, session, is_shown), session, pending=pending)

    async def menu(self, params: Mapping[str, object]) -> object:
        """Show a plain dialog that the user has asked for, and give what was pressed; None: nothing was.

        It gives way when the session asks something, and does not stay for ever.

        Raises:
            RpcError: The client shows no dialogs.
            ConnectionError: The client has left.
        """
        async with self._turn:
            await self._quiet()
            self._menu = anyio.CancelScope(deadline=anyio.current_time() + MENU_S)
            with self._menu:
                return await self._connection.request(SHOW_MESSAGE, dict(params), timeout_s=None)
        return None

    def check_may_decide(self) -> None:
        """Check that the client may decide.

        Raises:
            RpcError: It attached as an observer.
        """
        check_role(self._role)

    def close(self) -> None:
        """Stop asking, because the client has left. Pending requests remain pending."""
        for scope in self._following:
            scope.cancel()

    async def ask(self, dialog: Callable[[], Awaitable[T]]) -> T | Unanswered:
        """Ask one question. A client that fails has not answered: the question waits for others, or its time."""
        self._menu.cancel()
        try:
            return await dialog()
        except (ConnectionError, TimeoutError):
            _log.info("The client left while it was asked.")
        except RpcError as error:
            _log.warning("The client cannot be asked: %s", error.message)
        except Exception:  # noqa: BLE001 - a question that fails must not end the sessions that share its task group
            _log.exception("A question could not be asked.")
        return UNANSWERED

    async def permission(self, request: PermissionRequest) -> PermissionChoice:
        """Ask for a permission."""
        if PERMISSION in self._shows:
            try:
                params = serializer.request(request)
                answer = await self._connection.request(PERMISSION, params, timeout_s=None)
                return answered(request, answer)
            except RpcError as error:
                _log.warning("The client does not show a question it said it would: %s", error)
        async with self._turn:
            await self._quiet()
            # The user did not see the dialog yet, and its time may be nearly up: it is asked all the same.
            answer = await self._connection.request(SHOW_MESSAGE, dialog(request), timeout_s=None)
            return PermissionChoice(option=chosen(request, answer))

    async def question(
        self, question: Question, session: AgentSession, is_shown: Callable[[], bool]
    ) -> QuestionReply:
        """Ask a question; a client without forms is not asked for text."""
        if QUESTION in self._shows:
            try:
                params = serializer.request(question)
                return form_answer(await self._connection.request(QUESTION, params, timeout_s=None))
            except RpcError as error:
                _log.warning("The client does not show a question it said it would: %s", error)
        if missing(question):
            _ = self._connection.notify(TELL, {"type": 3, "message": untold(question)})
            if not is_shown():
                session.questions.give_up(question.request)
            return UNANSWERED
        return await self._line_by_line(question)

    async def _line_by_line(self, question: Question) -> dict[str, object] | None:
        """Ask what buttons can answer, the rest by its default; None when a dialog was dismissed."""
        found: dict[str, object] = {}
        async with self._turn:
            for line in question.questions:
                if not shows(line):
                    continue
                await self._quiet()
                given = await self._connection.request(
                    SHOW_MESSAGE, line_dialog(line), timeout_s=None
                )
                pressed = line_answer(line, given)
                if pressed is None:
                    return None
                found[line.id] = pressed
        return found

    async def _quiet(self) -> None:
        """Wait for a pause in the user's typing, where a dialog would take the keys that they type."""
        while self._blocking:
            changes = (one.changed_at for one in self._mirror.documents())
            left_s = max(changes, default=float("-inf")) + QUIET_S - self._mirror.clock()
            if left_s <= 0:
                return
            await anyio.sleep(left_s)


class _Dialogs:
    """The client as a channel of one session."""

    def __init__(
        self, presenter: QuestionPresenter, session: AgentSession, is_shown: Callable[[], bool]
    ) -> None:
        self._presenter = presenter
        self._session = session
        self._is_shown = is_shown

    @property
    def name(self) -> str:
        return self._presenter.name

    async def ask_permission(self, request: PermissionRequest) -> PermissionChoice | Unanswered:
        return await self._presenter.ask(partial(self._presenter.permission, request))

    async def ask_question(self, question: Question) -> QuestionReply:
        asked = partial(self._presenter.question, question, self._session, self._is_shown)
        return await self._presenter.ask(asked)

    def show_answered(self, by: str) -> None:
        """Do nothing: the dialog is withdrawn, and the events name the channel that answered."""
        del by
