"""The adapter of Slack keeps the rules of adapters."""

from collections.abc import AsyncGenerator, Coroutine, Mapping
from typing import Any, Final

import anyio
import pytest
from anyio.abc import TaskGroup

from agent_core.channels.messaging.port import MessagingChannel, Target
from agent_core.kernel import SystemClock
from tests.channels.messaging.conformance import SETTLED, ChannelConformance, FaultKind, until
from tests.slack.conftest import account
from tests.support.slack.platform import Json, SlackPlatform
from tiller_server.channels.slack.channel import SlackChannel

FAULTS: Final[Mapping[FaultKind, str]] = {
    "delayed": "ratelimited",
    "uncertain": "unavailable",
    "applied": "lost",
    "impossible": "channel_not_found",
}


class SlackWorld:
    """Slack on loopback as the suite uses it."""

    def __init__(self, platform: SlackPlatform, tasks: TaskGroup) -> None:
        self._platform = platform
        self._tasks = tasks
        self.channel: MessagingChannel = SlackChannel(account(platform), clock=SystemClock())
        self.target = Target(chat="D1")

    def write(self, text: str, *, file: bytes | None = None) -> str:
        workspace = self._platform.workspace
        files = {} if file is None else {"files": [workspace.add_file("file.bin", file)]}
        stored = workspace.put("D1", {"user": "U1", "text": text, **files})
        self._start(self._platform.deliver(self._platform.event("D1", stored)))
        return f"D1:{stored['ts']}"

    def repeat(self, message: str) -> None:
        self._start(self._platform.deliver(self._platform.event("D1", self._stored(message))))

    def recall(self, message: str) -> None:
        deleted = {"subtype": "message_deleted", "deleted_ts": message.partition(":")[2]}
        event = {"type": "message", "channel": "D1", "ts": "1.0", **deleted}
        self._start(self._platform.deliver(event))

    async def click(self, message: str, option: str) -> str:
        stored = self._stored(message)
        (actions,) = [one for one in stored["blocks"] if one["type"] == "actions"]
        ids = [one["action_id"] for one in actions["elements"]]
        await self._platform.click(stored, "D1", button=ids.index(f"tiller-{option}"))
        await until(lambda: not self.has_buttons(message))
        assert SETTLED.label in str(stored["blocks"])
        return SETTLED.label

    def fail(self, kind: FaultKind) -> None:
        self._platform.faults["chat.postMessage"].append(FAULTS[kind])

    def texts(self) -> list[str]:
        return self._platform.workspace.texts("D1")

    def reactions(self, message: str) -> int:
        return len(self._platform.workspace.reactions["D1", message.partition(":")[2]])

    def has_buttons(self, message: str) -> bool:
        return any(one["type"] == "actions" for one in self._stored(message)["blocks"])

    def _stored(self, message: str) -> Json:
        ts = message.partition(":")[2]
        return next(one for one in self._platform.workspace.channels["D1"] if one["ts"] == ts)

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        self._tasks.start_soon(lambda: work)


@pytest.fixture
async def world(platform: SlackPlatform) -> AsyncGenerator[SlackWorld]:
    async with anyio.create_task_group() as tasks:
        yield SlackWorld(platform, tasks)
        tasks.cancel_scope.cancel()  # what is delivered while no adapter is connected


class TestSlackChannel(ChannelConformance):
    """The rules of adapters."""
