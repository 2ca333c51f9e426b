"""MCP servers that a client brings to a session, in the form of `mcp.json`. Pure."""

import re
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, is_object
from tiller_server.acp.errors import INVALID_PARAMS, AcpError

NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9.-]+")
NAME_CHARS: Final = 40


def mcp_servers(given: JsonValue) -> JsonObject:
    """Return the servers by name. No message has a value of them, since it may be a key.

    Raises:
        AcpError: One is not described as ACP says, or its way of transport is not supported.
    """
    if given is None:
        return {}
    if not isinstance(given, list):
        raise AcpError(INVALID_PARAMS, "mcpServers is a list")
    servers: dict[str, JsonValue] = {}
    for number, one in enumerate(given):
        server = as_object(one)
        name = server.get("name")
        if not isinstance(name, str) or not name:
            raise AcpError(INVALID_PARAMS, f"mcpServers[{number}].name is a text")
        key = NOT_IN_NAMES.sub("-", name).strip("-.")[:NAME_CHARS] or f"server-{number}"
        if key in servers:
            key = f"{key[: NAME_CHARS - 4]}-{number}"
        servers[key] = _server(server, f"mcpServers[{number}]")
    return servers


def _server(server: JsonObject, where: str) -> JsonObject:
    match server:
        case {"type": "sse"}:
            raise AcpError(INVALID_PARAMS, f"{where}: the transport sse is not supported; use http")
        case {"type": "http", "url": str(url)}:
            headers = _pairs(server.get("headers"), f"{where}.headers")
            return {"type": "http", "url": url, "headers": headers}
        case {"command": str(command)} if server.get("type") in {None, "stdio"}:
            arguments = server.get("args")
            if not isinstance(arguments, list | None) or not all(
                isinstance(one, str) for one in arguments or ()
            ):
                raise AcpError(INVALID_PARAMS, f"{where}.args is a list of texts")
            env = _pairs(server.get("env"), f"{where}.env")
            return {"command": command, "args": arguments or [], "env": env}
        case _:
            raise AcpError(INVALID_PARAMS, f"{where} has a command, or the type http and a url")


def _pairs(given: JsonValue, where: str) -> JsonObject:
    """Return a list of names and values as an object."""
    pairs: dict[str, JsonValue] = {}
    for one in given if isinstance(given, list) else []:
        match one:
            case {"name": str(name), "value": str(value)} if is_object(one):
                pairs[name] = value
            case _:
                raise AcpError(INVALID_PARAMS, f"{where} is a list of names and values")
    return pairs
