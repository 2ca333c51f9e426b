"""The port of external agents: their start, and messages in both directions."""

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from agent_core.kernel import JsonObject, RunId, ToolCallId
from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs


class AgentLaunch(Value, frozen=True, kw_only=True):
    """An external agent as it is started."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables that the settings name, besides those that every program needs."""
    needs: frozenset[Needs] = frozenset()
    contained: bool = True
    options: Mapping[str, str | bool] = msgspec.field(default_factory=dict[str, "str | bool"])
    """Values of the agent's own options, by id or category."""
    start_timeout_s: float = 60.0
    """Limit of each answer until the session is open."""
    idle_timeout_s: float = 1800.0
    """Limit of the time without a message while the agent works."""


class AgentFailed(TillerError):
    """An external agent cannot be used any more; the text completes a sentence about it: "it sent …"."""


class AgentLink(Protocol):
    """A connection to an agent. Only one task receives; sending never waits for the agent."""

    async def start(self, launch: AgentLaunch, *, cwd: Path) -> None:
        """Start the program.

        Raises:
            AgentFailed: It cannot be started.
        """
        ...

    def begin(self, job: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run a job beside others; it is cancelled when the connection ends."""
        ...

    def send(self, message: JsonObject) -> None:
        """Send a message; it is written while others are received.

        Raises:
            AgentFailed: The agent does not read its input.
        """
        ...

    async def receive(self) -> JsonObject:
        """Wait for the next message.

        Raises:
            AgentFailed: None will come: the program has ended, or sent what is no message.
        """
        ...


class AgentChanges(Protocol):
    """Recorder of the changes of files that an agent makes without asking for them."""

    async def snapshot(self) -> None:
        """Record the files before the agent works. Never raises."""
        ...

    async def record(self, *, run: RunId | None, call: ToolCallId) -> None:
        """Record what is different since the snapshot. Never raises."""
        ...
