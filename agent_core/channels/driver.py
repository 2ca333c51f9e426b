"""The driver of channels: asks what a session asks, withdraws what was answered elsewhere, and returns the answers."""

import logging
from collections.abc import Iterable
from typing import Final

import anyio

from agent_core.channels.channel import Channel, ChannelSession, Unanswered
from agent_core.events import (
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
)
from agent_core.kernel.errors import TillerError

log = logging.getLogger(__name__)
ANSWERED_BY_USERS: Final = (
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
)


async def serve_channel(
    channel: Channel,
    session: ChannelSession,
    *,
    pending: Iterable[PermissionRequest | Question] = (),
) -> None:
    """Ask the user of a channel whatever a session asks, until the session is closed; cancel it to detach the channel.

    Requests are asked at once and beside each other: a channel that shows one at a time orders them itself. Those that
    wait when the channel is detached keep waiting for others.

    Args:
        channel: The front end.
        session: The session.
        pending: Requests that wait already.

    Raises:
        Exception: Whatever the channel raises; it is detached then.
    """
    reader = session.subscribe(only=ANSWERED_BY_USERS)
    asked: dict[str, anyio.CancelScope] = {}

    async def ask(request: PermissionRequest | Question, scope: anyio.CancelScope) -> None:
        with scope:
            await _ask(channel, session, request)

    try:
        async with anyio.create_task_group() as group:

            def start(request: PermissionRequest | Question) -> None:
                if request.request not in asked:
                    scope = asked[request.request] = anyio.CancelScope()
                    group.start_soon(ask, request, scope)

            for request in pending:
                start(request)
            async for stamped in reader:
                match stamped.event:
                    case PermissionRequested(request=request) | QuestionRequested(request=request):
                        start(request)
                    case QuestionResolved(request=settled):
                        asked.pop(settled, anyio.CancelScope()).cancel()
                    case PermissionResolved(request=settled, by=by):
                        asked.pop(settled, anyio.CancelScope()).cancel()
                        if by != channel.name:
                            channel.show_answered(by)
                    case _:
                        pass
            group.cancel_scope.cancel()
    finally:
        reader.close()


async def _ask(
    channel: Channel, session: ChannelSession, request: PermissionRequest | Question
) -> None:
    if isinstance(request, PermissionRequest):
        choice = await channel.ask_permission(request)
        if isinstance(choice, Unanswered):
            return
        try:
            _ = session.permissions.answer(
                request.request, choice.option, note=choice.note, by=channel.name
            )
        except TillerError as error:
            log.warning("the answer of %s was not accepted: %s", channel.name, error)
        return
    answers = await channel.ask_question(request)
    if isinstance(answers, Unanswered):
        return
    try:
        _ = session.questions.answer(request.request, answers, by=channel.name)
    except TillerError as error:
        # It is not asked again: answers that do not fit decline.
        log.warning("the answers of %s do not fit: %s", channel.name, error)
        _ = session.questions.answer(request.request, None, by=channel.name)
