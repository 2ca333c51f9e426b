"""Capabilities that client and server declare to each other in `initialize`. Pure."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.values import Value
from tiller_server import VERSION
from tiller_server.acp.errors import INVALID_PARAMS, AcpError
from tiller_server.acp.updates.projector import ShownParts

NEWEST: Final = 1
"""Newest protocol version that is served to every client."""
LONGEST_NAME: Final = 100


class ClientCapabilities(Value, frozen=True, kw_only=True):
    """The client, as it describes itself."""

    protocol: int = NEWEST
    """Version of the protocol that is spoken with it."""
    name: str = "ACP client"
    version: str = ""
    parts: ShownParts = ShownParts()
    has_forms: bool = False
    """It shows forms (`elicitation/create`)."""
    has_boolean_options: bool = False
    has_terminal_auth: bool = False
    reads_files: bool = False
    """It answers `fs/read_text_file`."""
    writes_files: bool = False
    """It answers `fs/write_text_file`."""

    @property
    def files(self) -> JsonObject:
        """The capability `files` for the agent."""
        read: JsonObject = {"read": {}} if self.reads_files else {}
        return {**read, "write": {}} if self.writes_files else read


def offered_version(params: JsonObject) -> int:
    """Return the newest protocol version that a client speaks.

    Raises:
        AcpError: It names none.
    """
    version = params.get("protocolVersion")
    if not isinstance(version, int) or isinstance(version, bool):
        raise AcpError(INVALID_PARAMS, "initialize: protocolVersion is a number, such as 1")
    return version


def client_capabilities(params: JsonObject, *, protocol: int = NEWEST) -> ClientCapabilities:
    """Return what a client declares; a part that cannot be read counts as left out.

    Args:
        params: Params of `initialize`, in the form of version 1.
        protocol: Version that is spoken with the client.
    """
    given = as_object(params.get("clientCapabilities"))
    info = as_object(params.get("clientInfo"))
    session, files = as_object(given.get("session")), as_object(given.get("fs"))
    name = as_text(info.get("title")) or as_text(info.get("name"))
    return ClientCapabilities(
        protocol=protocol,
        name=name[:LONGEST_NAME] or "ACP client",
        version=as_text(info.get("version"))[:LONGEST_NAME],
        parts=ShownParts(
            notices=is_object(session.get("notices")),
            compaction=is_object(session.get("compaction")),
        ),
        has_forms=is_object(as_object(given.get("elicitation")).get("form")),
        has_boolean_options=is_object(as_object(session.get("configOptions")).get("boolean")),
        has_terminal_auth=as_object(given.get("auth")).get("terminal") is True
        # The registry of agents and clients of the time before `auth.terminal`.
        or as_object(given.get("_meta")).get("terminal-auth") is True,
        reads_files=files.get("readTextFile") is True,
        writes_files=files.get("writeTextFile") is True,
    )


def server_capabilities(auth_methods: Sequence[JsonValue]) -> JsonObject:
    """Return the result of `initialize`."""
    session: JsonObject = {
        "list": {},
        "resume": {},
        "close": {},
        "delete": {},
        "additionalDirectories": {},
    }
    capabilities: JsonObject = {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": False},
        "sessionCapabilities": session,
        "auth": {"logout": {}},
        "_meta": {"tiller.dev": {"delivery": ["auto", "followUp"]}},
    }
    return {
        "protocolVersion": NEWEST,
        "agentCapabilities": capabilities,
        "authMethods": list(auth_methods),
        "agentInfo": {"name": "tiller", "title": "Tiller", "version": VERSION},
    }
