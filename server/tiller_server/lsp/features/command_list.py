"""`agent/command/list`: the commands that can be written after a slash."""

from typing import Any

from agent_core.resources.slash_commands import SlashCommand
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire import CommandListParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Return the commands of extensions, the skills and the prompt templates as they are now."""
    asked = parse(CommandListParams, params, method="agent/command/list")
    open_session = await client.resolve_session(asked.session)
    return {"commands": [_entry(one) for one in await open_session.session.resources.refresh()]}


def _entry(command: SlashCommand) -> dict[str, Any]:
    out: dict[str, Any] = {"name": command.name, "source": command.source}
    if command.description:
        out["description"] = command.description
    if command.argument_hint:
        out["argumentHint"] = command.argument_hint
    return out
