"""The adapter of the memory platform keeps the rules of adapters, so that tests of the bridge stand on them."""

import pytest

from agent_core.channels.messaging.port import (
    ChatAttachment,
    InboundRecall,
    MessagingChannel,
    Target,
)
from agent_core.kernel import SystemClock
from tests.channels.messaging.conformance import ChannelConformance, FaultKind
from tests.support.channels.memory_platform import Fault, MemoryChannel, MemoryPlatform


class MemoryWorld:
    """The memory platform as the suite uses it."""

    def __init__(self) -> None:
        self._platform = MemoryPlatform(SystemClock())
        self.channel: MessagingChannel = MemoryChannel(self._platform)
        self.target = Target(chat="dm")

    def write(self, text: str, *, file: bytes | None = None) -> str:
        files = []
        if file is not None:
            self._platform.files["f"] = file
            files.append(ChatAttachment(ref="f", name="file.bin", size_bytes=len(file)))
        return self._platform.write(text, attachments=files).key

    def repeat(self, message: str) -> None:
        self._platform.push(self._platform.inbound[message])

    def recall(self, message: str) -> None:
        recall = InboundRecall(key="r", target=self.target, message=message, at_ms=1)
        self._platform.push(recall)

    async def click(self, message: str, option: str) -> str:
        return (await self._platform.click(self._platform.messages[message], option)).text

    def fail(self, kind: FaultKind) -> None:
        self._platform.faults.append(Fault(method="*", kind=kind))

    def texts(self) -> list[str]:
        return self._platform.texts()

    def reactions(self, message: str) -> int:
        return len(self._platform.messages[message].reactions[-1:])

    def has_buttons(self, message: str) -> bool:
        return self._platform.messages[message].settlement is None


@pytest.fixture
def world() -> MemoryWorld:
    return MemoryWorld()


class TestMemoryChannel(ChannelConformance):
    """The rules of adapters."""
