"""The switches of the fake platform."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(kw_only=True)
class CallFault:
    """A fault of the calls whose path begins with a text, `times` often."""

    path: str
    method: str = ""
    kind: Literal["refuse", "hang", "apply_and_fail", "apply_and_hang", "garbage"] = "refuse"
    code: int = 99991400
    status: int = 429
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1

    def matches(self, method: str, path: str) -> bool:
        return self.times > 0 and path.startswith(self.path) and self.method in {"", method}


@dataclass(kw_only=True)
class SocketFaults:
    """Faults of the long connection."""

    endpoint_code: int = 0
    """Code in the body of the endpoint."""
    endpoint_hangs: bool = False
    url: str | None = None
    """Another address of the connection."""
    handshake: tuple[int, int] | None = None
    """Status and error code in the headers of a refused handshake."""
    handshake_hangs: int = 0
    """How many handshakes are not answered."""
    is_silent: bool = False
    """Whether pings are not answered and nothing is sent."""
    closes_at_once: bool = False
    config: Mapping[str, object] = field(
        default_factory=lambda: {
            "ReconnectCount": -1,
            "ReconnectInterval": 120,
            "ReconnectNonce": 0,
            "PingInterval": 120,
        }
    )
    pong_config: Mapping[str, object] | None = None
