"""Asks the user of a client: permissions and questions of the agent become requests to the client."""

from typing import Final

import msgspec

from agent_core.events import PermissionRequest, Question, QuestionLine
from agent_core.kernel import Clock, JsonObject, JsonValue
from tiller_server.acp.capabilities import NEWEST, ClientCapabilities
from tiller_server.acp.errors import AcpError, PeerGone
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.sessions.dialogs import (
    DECLINED,
    choice_answer,
    choice_params,
    form_answer,
    form_params,
    permission_answer,
    permission_params,
)
from tiller_server.acp.sessions.session import AcpSession
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.events import asked_of

IN_ORDER_S: Final = 1.0
"""How long a dialog waits for the updates before it."""
LONGEST_S: Final = 3600.0
GRACE_S: Final = 5.0
"""The session gives up by itself before the request does."""
PERMISSION: Final = "session/request_permission"
FORM: Final = "elicitation/create"


class UserDialogs:
    """Dialogs of one session. A client that does not answer, or answers with anything else, has refused."""

    def __init__(
        self, peer: JsonRpcPeer, client: ClientCapabilities, session: AcpSession, *, clock: Clock
    ) -> None:
        self._peer = peer
        self._client = client
        self._session = session
        self._clock = clock

    async def ask_permission(self, params: JsonObject) -> JsonValue:
        """Answer `agent/permission`."""
        request = _read(params)
        if not isinstance(request, PermissionRequest):
            return None
        await self._in_order(request.request)
        asked = self._form(permission_params(self._session.stream.session, request), request)
        return permission_answer(
            request, await self._ask(PERMISSION, asked, expires_ms=request.expires_ms)
        )

    async def ask_question(self, params: JsonObject) -> JsonValue:
        """Answer `agent/question`: with a form, or one dialog after the other where the client has no forms."""
        question = _read(params)
        if not isinstance(question, Question):
            return None
        await self._in_order(question.request)
        if self._client.has_forms:
            asked = form_params(self._session.stream.session, question)
            result = await self._ask(FORM, asked, expires_ms=question.expires_ms)
            return form_answer(question, result)
        return await self._ask_lines(question)

    async def _ask_lines(self, question: Question) -> JsonObject:
        answers: dict[str, JsonValue] = {}
        for line in question.questions:
            if not _has_choice(line):
                if line.default is None:
                    message = "the client shows no forms, and a text has no other dialog"
                    raise AgentRefused(message)
                continue
            asked = self._form(choice_params(self._session.stream.session, question, line), None)
            result = await self._ask(PERMISSION, asked, expires_ms=question.expires_ms)
            answer = choice_answer(line, result)
            if answer is None:
                return DECLINED
            answers[line.id] = answer
        return {"answers": answers}

    def _form(self, asked: JsonObject, request: PermissionRequest | None) -> JsonObject:
        """Return the params of `session/request_permission` as the client knows them."""
        if self._client.protocol == NEWEST:
            return asked
        from tiller_server.acp.version2 import permission_params as form_of  # noqa: PLC0415 - a draft that few clients speak

        return form_of(asked, request)

    async def _in_order(self, request: str) -> None:
        session = self._session
        await session.begun()
        await session.stream.until(lambda: request in session.announced, within_s=IN_ORDER_S)

    async def _ask(self, method: str, params: JsonObject, *, expires_ms: int | None) -> JsonValue:
        within_s = LONGEST_S
        if expires_ms is not None:
            within_s = min(within_s, max(0.0, expires_ms - self._clock.now_ms()) / 1000 + GRACE_S)
        try:
            return await self._peer.request(method, params, within_s=within_s)
        except PeerGone as error:
            # Not a refusal: another client of the session may still answer.
            raise AgentRefused(str(error)) from error
        except AcpError:
            return None  # whatever is not understood is a no


def _read(params: JsonObject) -> PermissionRequest | Question | None:
    try:
        return asked_of(params)
    except (msgspec.ValidationError, ValueError):
        return None


def _has_choice(line: QuestionLine) -> bool:
    return line.kind == "confirm" or bool(line.options)
