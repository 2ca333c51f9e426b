"""When a daemon that nobody uses leaves. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

IDLE_S: Final = 1800.0
MOST_BETWEEN_LOOKS_S: Final = 30.0


@dataclass(slots=True, kw_only=True)
class IdleTimer:
    """How long nothing has gone on."""

    limit_s: float
    since_s: float
    """When something was seen last."""

    def look(self, now_s: float, *, is_used: bool) -> float | None:
        """Record whether the daemon is in use; return the seconds until the next look, None: time to leave."""
        if is_used:
            self.since_s = now_s
        left_s = self.limit_s - (now_s - self.since_s)
        return None if left_s <= 0 else min(left_s, MOST_BETWEEN_LOOKS_S)


def idle_limit_s(env: Mapping[str, str]) -> float:
    """Return how long nobody may use the daemon: `TILLER_DAEMON_IDLE_S`, else half an hour."""
    try:
        given = float(env.get("TILLER_DAEMON_IDLE_S", ""))
    except ValueError:
        return IDLE_S
    return given if given > 0 else IDLE_S
