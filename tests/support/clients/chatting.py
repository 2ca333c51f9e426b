"""Somebody in an editor without a plugin, with the chat file open."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.server import Ground
from tests.support.clients.windows import Windows
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_editor import Document
from tests.support.lsp.lsp_profiles import Profile

CHAT = ".tiller/chat.md"


class Chatting:
    """Somebody with the chat file open."""

    def __init__(self, client: RawClient, root: Path, *, path: Path | None = None) -> None:
        self.client = client
        self.path = path or root / CHAT
        self.uri = self.path.as_uri()

    async def open(self) -> None:
        """Have the file made, and open it."""
        await self.client.request(
            "workspace/executeCommand", {"command": "tiller.chat", "arguments": []}
        )
        self.look()

    def look(self) -> None:
        """Open the file as it is on the disk."""
        self.client.editor.open_file(self.path, language="markdown")

    @property
    def document(self) -> Document:
        return self.client.editor.documents[self.uri]

    @property
    def text(self) -> str:
        return self.document.text

    def write(self, words: str) -> None:
        """Put words at the end, and save."""
        end = self.text.replace("\r\n", "\n").count("\n")
        last = len(self.text.splitlines(keepends=True)[-1]) if not self.text.endswith("\n") else 0
        at = {"line": end, "character": last}
        self.client.change(self.uri, [{"range": {"start": at, "end": at}, "newText": words}])
        self.client.editor.save(self.uri)

    async def has(self, words: str) -> None:
        """Wait until something stands in the buffer."""
        try:
            await soon(lambda: words in self.text)
        except TimeoutError:
            pytest.fail(f"{words!r} did not come; there is:\n{self.text}")


@asynccontextmanager
async def chatting(windows: Windows, profile: Profile, **agent: Any) -> AsyncGenerator[Chatting]:
    async with windows.window(profile, **agent) as client:
        yield Chatting(client, windows.ground.root)


def change(chat: Chatting, old: str, new: str) -> None:
    """Change some words as somebody does who reads them."""
    before, found, _ = chat.text.partition(old)
    assert found
    line0, column = before.count("\n"), len(before.rsplit("\n", 1)[-1])
    at = {"start": {"line": line0, "character": column}}
    at["end"] = {"line": line0, "character": column + len(old)}
    chat.client.change(chat.uri, [{"range": at, "newText": new}])


async def idle(windows: Windows) -> None:
    """Wait until nothing goes on."""
    (hosted,) = (await windows.sessions()).values()
    _ = await hosted.session.wait_idle()


def turns(ground: Ground) -> list[str]:
    """Give what the user said, as the session has it."""
    said = [one["message"] for one in ground.entries() if one.get("type") == "message"]
    return [one["content"][0]["text"] for one in said if one["role"] == "user"]


def assert_once(text: str, count: int) -> None:
    """Check that an answer stands there whole and once."""
    there = re.findall(r"\bword\d+", text)
    assert there == [f"word{number}" for number in range(count)], text


def line(text: str, start: str) -> str:
    return next(row for row in text.splitlines() if row.startswith(start))
