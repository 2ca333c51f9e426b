"""`agent/command/list`: the commands that can be written after a slash."""

from agent_core.kernel import JsonObject, JsonValue
from agent_core.resources.offers import SlashCommand
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.catalogue import COMMAND_LIST, CommandListParams


@session_feature(COMMAND_LIST)
async def command_list(
    _client: ConnectedClient, open_session: OpenSession, _params: CommandListParams
) -> JsonObject:
    """Return the commands of extensions, the skills and the prompt templates as they are now."""
    return {"commands": [_entry(one) for one in await open_session.session.resources.refresh()]}


def _entry(command: SlashCommand) -> JsonObject:
    out: dict[str, JsonValue] = {"name": command.name, "source": command.source}
    if command.description:
        out["description"] = command.description
    if command.argument_hint:
        out["argumentHint"] = command.argument_hint
    return out
