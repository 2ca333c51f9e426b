"""A memory folder of one user, and projects to use it in."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.memory.access import FolderMemory, open_memory
from agent_core.memory.values import MemoryDraft, MemoryEntry
from agent_core.session import AgentSession
from tests.support.harness.clock import FakeClock
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder
from tests.support.workspace.worktrees import ENV


class MemoryGround:
    """Opens the memory of folders for one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.redactor = Redactor()

    async def open(self, workspace: Path, *, on: bool = True) -> FolderMemory:
        await anyio.Path(workspace).mkdir(parents=True, exist_ok=True)
        memory = await open_memory(
            self.folder, workspace, env=ENV, clock=self.clock, redactor=self.redactor
        )
        if on:
            await memory.switch(on=True)
        return memory


@pytest.fixture
def ground(tmp_path: Path) -> MemoryGround:
    return MemoryGround(tmp_path / "memory")


class RememberingFolder:
    """A workspace with memory, whose sessions ask a scripted model."""

    def __init__(self, folder: Folder, lab: LoopbackProvider, memory: FolderMemory) -> None:
        self.folder = folder
        self.lab = lab
        self.memory = memory

    @asynccontextmanager
    async def session(
        self, *, trusted: bool = True, **options: Any
    ) -> AsyncGenerator[AgentSession]:
        request = SessionRequest(
            workspace=self.folder.root, env=self.folder.env, trusted=trusted, **options
        )
        async with open_session(request) as session:
            yield session

    async def prompt(self, session: AgentSession, text: str, *answers: Any) -> str:
        """Send a prompt; return the body of the last request to the provider."""
        self.lab.script([*answers, {"text": "done"}])
        await session.prompt(text)
        _ = await session.wait_idle()
        return json.dumps(self.lab.requests[-1]["body"])

    async def remember(self, text: str, **fields: Any) -> MemoryEntry:
        """Store an entry of the project."""
        return await self.memory.remember(
            MemoryDraft(text=text, **fields), self.memory.project.scope
        )


@pytest.fixture
async def remembering(folder: Folder, lab: LoopbackProvider) -> RememberingFolder:
    write_config(folder.dirs.config, lab, settings={"sandbox": "off"})
    memory = await MemoryGround(folder.dirs.data / "memory").open(folder.root)
    return RememberingFolder(folder, lab, memory)
