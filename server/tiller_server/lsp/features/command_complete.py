"""`agent/command/complete`: how the arguments of a command may go on."""

from typing import Any

from agent_core.resources.slash_commands import Completion
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import CommandCompleteParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return what the command itself says; nothing for one that has no say."""
    asked = parse(CommandCompleteParams, params, method="agent/command/complete")
    open_session = await client.resolve_session(asked.session)
    found = await open_session.session.resources.complete(asked.name, asked.prefix)
    return {"completions": [_entry(one) for one in found]}


def _entry(completion: Completion) -> dict[str, Any]:
    out: dict[str, Any] = {"value": completion.value}
    if completion.label:
        out["label"] = completion.label
    if completion.description:
        out["description"] = completion.description
    return out
