"""Where a connection comes from: what its editor had around it when it asked for a server."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agent_core.kernel.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The surroundings of one client; kept for as long as it is connected, never logged, never written down."""

    env: Mapping[str, str] = field(repr=False)
    """Its whole environment: keys are looked up in it, and programs that it prompts for see it without them."""
    cwd: Path
    """Where it was started."""
    pid: int | None = None
    """The process that passes its messages on; None: this process serves it directly."""
