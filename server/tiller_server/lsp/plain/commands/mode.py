"""Commands about the permission mode, and about the plan that is made in the mode `plan`."""

from typing import Final, get_args

from agent_core.events import PermissionMode
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import CommandArguments, text_argument
from tiller_server.lsp.plain.commands.model import ask
from tiller_server.lsp.plain.paged_menu import MenuChoice
from tiller_server.lsp.sessions.client import invalid_params
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.session import ConfigChange

MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)


async def mode(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Set the mode that is named, or show those there are; the answer does not wait for the user's."""
    named = text_argument("tiller.mode", arguments, key="mode")
    open_session = await plain_client.client.resolve_session()
    current = open_session.session.info.config.mode
    if named:
        return {"mode": await _set(plain_client, open_session, named)}

    async def choose() -> None:
        choices = [MenuChoice(id=one, title=one) for one in MODES]
        chosen = await ask(plain_client, "tiller.mode", f"which mode (now {current})?", choices)
        if chosen is not None:
            try:
                _ = await _set(plain_client, open_session, chosen)
            except RpcError as error:
                plain_client.show_message(error.message, kind=1)

    plain_client.client.host.start(choose, what="the choice of a mode")
    return {"mode": current}


async def _set(plain_client: PlainClient, open_session: OpenSession, name: str) -> str:
    if name not in MODES:
        message = f"tiller.mode: {name!r:.80} is no mode; there are {', '.join(MODES)}"
        raise invalid_params(message)
    config = await apply_config(open_session.session, ConfigChange(mode=name))
    await plain_client.client.flush()
    plain_client.show_message(f"the permission mode is {config.mode} now.")
    return config.mode


async def plan(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Answer the plan that waits: with `approve`, `approveAuto` or `reject`, with other text for a change, or by a menu."""
    from agent_core.session.history.plans import OFFERED, open_plan  # noqa: PLC0415 - at first use

    wanted = text_argument("tiller.plan", arguments, key="answer")
    open_session = await plain_client.client.resolve_session()
    waiting = open_plan(open_session.session.info.messages)
    if waiting is None:
        plain_client.show_message(
            "no plan waits for an answer; tiller.mode plan makes the next prompt one that is only planned."
        )
        return {"plan": None}
    if wanted:
        await _answer(plain_client, open_session, waiting.sha256, wanted)
        return {"plan": waiting.sha256}

    async def choose() -> None:
        choices = [MenuChoice(id=id_, title=title) for id_, title in OFFERED.items()]
        question = f"carry out revision {waiting.revision} of the plan?"
        chosen = await ask(plain_client, "tiller.plan", question, choices)
        if chosen is not None:
            try:
                await _answer(plain_client, open_session, waiting.sha256, chosen)
            except RpcError as error:
                plain_client.show_message(error.message, kind=1)

    plain_client.client.host.start(choose, what="the answer to a plan")
    return {"plan": waiting.sha256}


async def _answer(
    plain_client: PlainClient, open_session: OpenSession, sha256: str, wanted: str
) -> None:
    from agent_core.session.history.plans import answer_plan  # noqa: PLC0415 - at first use

    match wanted:
        case "approve" | "approveAuto" | "reject":
            answer, text = wanted, None
        case _:
            answer, text = "change", wanted
    try:
        with open_session.environment.use_for_submission(plain_client.client.origin.env):
            _ = await answer_plan(open_session.session, answer, sha256=sha256, text=text)
    except TillerError as error:
        raise to_rpc_error(error, session=open_session.session.id) from error
    await plain_client.client.flush()
    if answer == "reject":
        plain_client.show_message("the plan is rejected; the mode stays plan.")
