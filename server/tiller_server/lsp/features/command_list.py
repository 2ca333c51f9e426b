"""`agent/command/list`: the commands that can be written after a slash."""

from typing import Any

from agent_core.resources.slash_commands import Command
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.wire import CommandListParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Return the commands of extensions, the skills and the prompt templates as they are now."""
    asked = parse(CommandListParams, params, method="agent/command/list")
    hosted = await front.hosted(asked.session)
    return {"commands": [_entry(one) for one in await hosted.session.resources.refresh()]}


def _entry(command: Command) -> dict[str, Any]:
    out: dict[str, Any] = {"name": command.name, "source": command.source}
    if command.description:
        out["description"] = command.description
    if command.argument_hint:
        out["argumentHint"] = command.argument_hint
    return out
