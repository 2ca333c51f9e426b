"""Origin of a connection: the environment of its editor when it requested a server."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import SecretValue


class ClientEnvironment(SecretValue, frozen=True, kw_only=True):
    """The surroundings of one client; kept for as long as it is connected, never logged, never written down."""

    hidden: ClassVar = frozenset({"env", "mcp_servers"})

    env: Mapping[str, str]
    """Its whole environment: keys are looked up in it, and programs that it prompts for see it without them."""
    cwd: Path
    """Where it was started."""
    pid: int | None = None
    """The process that passes its messages on; None: this process serves it directly."""
    mcp_servers: JsonObject = msgspec.field(default_factory=dict[str, JsonValue])
    """MCP servers that it brings to the sessions that it opens, as in `mcp.json`."""
