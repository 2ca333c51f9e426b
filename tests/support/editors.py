"""A scripted editor wired to the server's mirror without a pipe: what goes out arrives later, in order."""

import asyncio
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol import types

from agent_core.workspace import FileText, Written
from agent_core.workspace.adapters.disk import DiskFiles
from server.lsp.documents import Mirror
from server.lsp.editor import Editor, Timing
from server.lsp.edits import EditorFiles
from server.lsp.positions import Encoding
from server.lsp.rpc import RpcError
from server.lsp.typed_params import make_converter
from tests.support.lsp_answers import Saves
from tests.support.lsp_behaviours import EditBehaviour
from tests.support.lsp_connection import METHOD_NOT_FOUND, Handler, Reply
from tests.support.lsp_editor import Editor as Desk, Json
from tests.support.lsp_profiles import VSCODE, Profile, declares

_CONVERTER = make_converter()

FAST = Timing(answer_s=0.3, verify_s=0.15, refused_s=0.03, pause_s=0.0, patience_s=0.0, save_s=0.3)
"""Short enough for a test to wait for, long enough for what comes at once."""


def tell(mirror: Mirror, method: str, params: Json) -> None:
    """Pass a notification on as the server does, through lsprotocol's types."""
    kinds: dict[str, tuple[Any, Callable[[Any], None]]] = {
        "textDocument/didOpen": (types.DidOpenTextDocumentParams, mirror.did_open),
        "textDocument/didChange": (types.DidChangeTextDocumentParams, mirror.did_change),
        "textDocument/didSave": (types.DidSaveTextDocumentParams, mirror.did_save),
        "textDocument/didClose": (types.DidCloseTextDocumentParams, mirror.did_close),
    }
    kind, take = kinds[method]
    take(_CONVERTER.structure(params, kind))


class Window:
    """One editor with its documents (`desk`), and the server's view of it (`mirror`, `editor`)."""

    def __init__(
        self,
        profile: Profile = VSCODE,
        *,
        edits: EditBehaviour | None = None,
        options: Json | None = None,
        timing: Timing = FAST,
        encoding: Encoding | None = None,
    ) -> None:
        self.asked: list[tuple[str, Json]] = []
        """Every request of the server."""
        self.withdrawn: list[str] = []
        """Requests that the server gave up waiting for."""
        self.edits: EditBehaviour = edits or profile.edits()
        self.mirror = Mirror()
        self.desk = Desk(self._later_notify)
        self.handlers: dict[str, Handler] = {"agent/documents/save": Saves(self.desk)}
        self._profile = profile
        self.client_params: Json = {
            "clientInfo": {"name": profile.name, "version": profile.version},
            "capabilities": profile.capabilities,
            "initializationOptions": {"agent": options or {}},
        }
        offered = profile.capabilities.get("general", {}).get("positionEncodings", ["utf-16"])
        chosen: Encoding = encoding or ("utf-8" if "utf-8" in offered else offered[0])
        self.desk.encoding = chosen
        self.mirror.use_encoding(chosen)
        self.editor = Editor.of(self, self.mirror, timing=timing)

    async def request(self, method: str, params: Any = None, *, timeout_s: float | None) -> Any:
        """Do what the server's connection does with a request."""
        self.asked.append((method, params))
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._later(lambda: self._serve(method, params, answer))
        try:
            async with asyncio.timeout(timeout_s):
                message = await answer
        finally:
            if not answer.done() or answer.cancelled():
                self.withdrawn.append(method)
        if "error" in message:
            raise RpcError(message["error"]["code"], message["error"]["message"])
        return message["result"]

    def edits_asked(self) -> list[Json]:
        """Give the params of every `workspace/applyEdit`."""
        return [params for method, params in self.asked if method == "workspace/applyEdit"]

    def _serve(self, method: str, params: Json, answer: asyncio.Future[Json]) -> None:
        reply = Reply({"id": 1}, lambda message: self._later(lambda: _settle(answer, message)))
        if method == "workspace/applyEdit":
            self.edits(self.desk, params, reply)
        elif method in self.handlers and declares(self._profile.capabilities, method):
            self.handlers[method](params, reply)
        else:
            reply.error(METHOD_NOT_FOUND, f"unknown method {method}")

    def _later_notify(self, method: str, params: Json) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            tell(self.mirror, method, params)
        else:
            self._later(lambda: tell(self.mirror, method, params))

    def _later(self, step: Callable[[], None]) -> None:
        # One queue for both directions: the loop keeps the order of these calls.
        asyncio.get_running_loop().call_soon(step)


async def settled(window: Window) -> None:
    """Wait until the mirror has what the editor told."""
    with anyio.fail_after(5):
        while any(
            (seen := window.mirror.get(uri)) is None or seen.text != document.text
            for uri, document in window.desk.documents.items()
        ):
            await anyio.lowlevel.checkpoint()


def _settle(answer: asyncio.Future[Json], message: Json) -> None:
    if not answer.done():
        answer.set_result(message)


OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW_TEXT = "one\n2\nthree\nfour\n5\n"


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


class Place:
    """A workspace on the disk with one editor, and a document of it."""

    def __init__(self, root: Path, window: Window) -> None:
        self.root = root
        self.path = root / "a.py"
        self.uri = self.path.as_uri()
        self.window = window
        self.files = EditorFiles(DiskFiles((root,), root.parent))
        self.files.attach(window.editor)

    @classmethod
    def make(cls, tmp_path: Path, window: Window, *, text: str = OLD, typed: str = "") -> "Place":
        """Make one with the document open; what is typed is not saved."""
        root = Path(os.path.realpath(tmp_path)) / "ws"
        root.mkdir()
        place = cls(root, window)
        place.path.write_bytes(text.encode())
        window.desk.open_file(place.path)
        if typed:
            window.desk.change(place.uri, typed)
        return place

    @property
    def text(self) -> str:
        """What the user sees."""
        return self.window.desk.documents[self.uri].text

    @property
    def disk(self) -> str:
        return self.path.read_bytes().decode()

    async def read(self) -> FileText:
        await settled(self.window)
        read = await self.files.read(self.path)
        assert isinstance(read, FileText)
        return read

    async def write(self, text: str = NEW_TEXT, *, base: FileText | None = None) -> Written:
        return await self.files.write(self.path, text, base=base or await self.read())

    async def refusal(self, kind: type[Exception], text: str = NEW_TEXT) -> str:
        """Write what must not succeed, and give what is told."""
        with pytest.raises(kind) as caught:
            _ = await self.write(text)
        return str(caught.value)
