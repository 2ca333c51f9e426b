"""A scripted editor wired to the server's mirror without a pipe: what goes out arrives later, in order."""

import asyncio
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol import types

from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.lsp.lsp_answers import Saves
from tests.support.lsp.lsp_behaviours import EditBehaviour, PanelEdits
from tests.support.lsp.lsp_connection import METHOD_NOT_FOUND, Handler, Reply
from tests.support.lsp.lsp_editor import Editor as Desk, Json
from tests.support.lsp.lsp_profiles import VSCODE, Profile, declares
from tiller_server.lsp.documents.mirror import Mirror
from tiller_server.lsp.documents.positions import PositionEncoding
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.editors.requests import Timing
from tiller_server.lsp.jsonrpc.document_params import changed_params, opened_params
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.typed_params import make_converter
from tiller_server.lsp.overlay.workspace_files import OverlayFiles

_CONVERTER = make_converter()
EDITS = frozenset({"workspace/applyEdit", "agent/edit/apply"})

FAST = Timing(
    answer_s=0.3,
    verify_s=0.15,
    refused_s=0.03,
    pause_s=0.0,
    patience_s=0.0,
    undo_step_s=0.0,
    save_s=0.3,
)
"""Short enough for a test to wait for, long enough for what comes at once."""


def tell(mirror: Mirror, method: str, params: Json) -> None:
    """Pass a notification on as the server does, through lsprotocol's types."""
    match method:
        case "textDocument/didOpen":
            told, version = opened_params(params)
            opened = _CONVERTER.structure(told, types.DidOpenTextDocumentParams)
            mirror.did_open(opened, version=version)
        case "textDocument/didChange":
            told, version = changed_params(params)
            changed = _CONVERTER.structure(told, types.DidChangeTextDocumentParams)
            mirror.did_change(changed, version=version)
        case "textDocument/didSave":
            mirror.did_save(_CONVERTER.structure(params, types.DidSaveTextDocumentParams))
        case _:
            mirror.did_close(_CONVERTER.structure(params, types.DidCloseTextDocumentParams))


class Window:
    """One editor with its documents (`desk`), and the server's view of it (`mirror`, `editor`)."""

    def __init__(
        self,
        profile: Profile = VSCODE,
        *,
        edits: EditBehaviour | None = None,
        options: Json | None = None,
        timing: Timing = FAST,
        encoding: PositionEncoding | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.asked: list[tuple[str, Json]] = []
        """Every request of the server."""
        self.when_asked: Callable[[], None] | None = None
        """Done before each request of the server is served."""
        self.withdrawn: list[str] = []
        """Requests that the server gave up waiting for."""
        self.edits: EditBehaviour = edits or profile.edits()
        self.mirror = Mirror(clock=clock)
        self.desk = Desk(self._later_notify)
        self.handlers: dict[str, Handler] = {
            "agent/documents/save": Saves(self.desk),
            "agent/edit/apply": self._panel if edits is None else self._behaving,
        }
        self._profile = profile
        self.client_params: Json = {
            "clientInfo": {"name": profile.name, "version": profile.version},
            "capabilities": profile.capabilities,
            "initializationOptions": {"agent": options or {}},
        }
        offered = profile.capabilities.get("general", {}).get("positionEncodings", ["utf-16"])
        chosen: PositionEncoding = encoding or ("utf-8" if "utf-8" in offered else offered[0])
        self.desk.encoding = chosen
        self.mirror.use_encoding(chosen)
        self.editor = Editor.of(self, self.mirror, timing=timing)

    async def request(self, method: str, params: Any = None, *, timeout_s: float | None) -> Any:
        """Do what the server's connection does with a request."""
        self.asked.append((method, params))
        if self.when_asked is not None:
            self._to_editor(self.when_asked)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._to_editor(lambda: self._serve(method, params, answer))
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
        """Give every edit that was asked for, as the params of `workspace/applyEdit` have it."""
        return [_as_apply_edit(method, params) for method, params in self.asked if method in EDITS]

    def tell_server(self, method: str, params: Json) -> None:
        """Send a notification that the desk would not."""
        self._later_notify(method, params)

    def _serve(self, method: str, params: Json, answer: asyncio.Future[Json]) -> None:
        reply = Reply({"id": 1}, lambda message: self._to_server(lambda: _settle(answer, message)))
        if method == "workspace/applyEdit":
            self.edits(self.desk, params, reply)
        elif method in self.handlers and declares(self._profile.capabilities, method):
            self.handlers[method](params, reply)
        else:
            reply.error(METHOD_NOT_FOUND, f"unknown method {method}")

    def _panel(self, params: Json, reply: Reply) -> None:
        PanelEdits()(self.desk, params, reply)

    def _behaving(self, params: Json, reply: Reply) -> None:
        """Answer `agent/edit/apply` as the behaviour does that was given."""
        asked = _as_apply_edit("agent/edit/apply", params)
        self.edits(self.desk, asked, _as_result(params, reply))

    def _later_notify(self, method: str, params: Json) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            tell(self.mirror, method, params)
        else:
            self._to_server(lambda: tell(self.mirror, method, params))

    # One queue for both directions: the loop keeps the order of these calls.

    def _to_editor(self, step: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(step)

    def _to_server(self, step: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(step)


async def settled(window: Window) -> None:
    """Wait until the mirror has what the editor told."""
    with anyio.fail_after(5):
        while any(
            (seen := window.mirror.get(uri)) is None or seen.text != document.text
            for uri, document in window.desk.documents.items()
        ):
            await anyio.lowlevel.checkpoint()


def _as_apply_edit(method: str, params: Json) -> Json:
    if method == "workspace/applyEdit":
        return params
    return {"label": params["edit"]["label"], "edit": params["workspaceEdit"]}


def _as_result(params: Json, reply: Reply) -> Reply:
    """Turn what a behaviour answers to `workspace/applyEdit` into the result of `agent/edit/apply`."""

    def answer(message: Json) -> None:
        told = message.get("result")
        if told is None:
            reply.error(message["error"]["code"], message["error"]["message"])
            return
        status = "applied" if told["applied"] else "refused"
        one = {"uri": params["pre"][0]["uri"], "status": status}
        if "failureReason" in told:
            one["why"] = told["failureReason"]
        reply({"documents": [one]})

    return Reply({"id": 1}, answer)


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
        self.files = OverlayFiles(DiskFiles((root,), root.parent))
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

    async def write(self, text: str = NEW_TEXT, *, base: FileText | None = None) -> WriteResult:
        return await self.files.write(self.path, text, base=base or await self.read())

    async def refusal(self, kind: type[Exception], text: str = NEW_TEXT) -> str:
        """Write what must not succeed, and give what is told."""
        with pytest.raises(kind) as caught:
            _ = await self.write(text)
        return str(caught.value)
