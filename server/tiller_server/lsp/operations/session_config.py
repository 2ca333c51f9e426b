"""Applies the choices that a client sends for a session: model, thinking level, tools, mode, budgets, switches."""

from collections.abc import Sequence
from typing import Final, TypeVar, get_args

from agent_core.events import PermissionMode, QueueMode, SessionConfig
from agent_core.kernel.errors import TillerError
from agent_core.providers.messages.request_options import LEVELS
from agent_core.session import AgentSession
from tiller_server.lsp.dialogs.permission_mode import asked_budgets, check_mode
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, RpcError
from tiller_server.lsp.wire.session import ConfigChange

MODES: Final[Sequence[PermissionMode]] = get_args(PermissionMode)
QUEUE_MODES: Final[Sequence[QueueMode]] = get_args(QueueMode)

ChoiceT = TypeVar("ChoiceT", bound=str)


async def apply_config(session: AgentSession, change: ConfigChange) -> SessionConfig:
    """Apply a change and return what is in force; it counts from the next request to the model.

    Raises:
        RpcError: A choice is refused. The mode and the budgets are checked before anything changes.
    """
    mode = _parse_choice("mode", change.mode, MODES)
    if mode is not None:
        check_mode(mode, allowed=session.info.allowed_mode)
    thinking = _parse_choice("thinking", change.thinking, LEVELS)
    steering = _parse_choice("steering", change.steering, QUEUE_MODES)
    follow_up = _parse_choice("followUp", change.follow_up, QUEUE_MODES)
    budgets = asked_budgets(change)
    try:
        if budgets is not None:
            _ = session.info.configure(budgets=budgets)  # first: what it refuses, changes nothing
        if change.model is not None:
            _ = await session.models.choose(change.model)
        if thinking is not None:
            await session.models.think(thinking)
        if change.tools is not None:
            await session.tools.activate(change.tools)
        return session.info.configure(
            mode=mode, auto_compact=change.auto_compact, steering=steering, follow_up=follow_up
        )
    except TillerError as error:
        raise to_rpc_error(error, session=session.id) from error


def _parse_choice(name: str, value: str | None, choices: Sequence[ChoiceT]) -> ChoiceT | None:
    """Return a word as one of those that mean something here: the schema lets words of vendors pass.

    Raises:
        RpcError: It is none of them.
    """
    if value is None:
        return None
    for one in choices:
        if one == value:
            return one
    message = (
        f"{name} is {value!r}, which this server does not know; use one of {', '.join(choices)}"
    )
    raise RpcError(INVALID_PARAMS, message)
