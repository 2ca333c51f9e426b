"""A scripted editor that speaks raw LSP: real documents, chosen capabilities, chosen behaviour."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Any, Self

from tests.support.lsp.lsp_answers import Chooses, Reads, Saves, Scripted
from tests.support.lsp.lsp_behaviours import EditBehaviour, Honest, PanelEdits
from tests.support.lsp.lsp_connection import (
    METHOD_NOT_FOUND,
    Call,
    ClientError,
    Connection,
    Handler,
    Reply,
)
from tests.support.lsp.lsp_editor import Document, Editor
from tests.support.lsp.lsp_links import ProcessLink, SocketLink, StreamLink, pumping
from tests.support.lsp.lsp_profiles import MINIMAL, Profile, declares
from tests.support.lsp.lsp_record import USUAL_S, ConnectionLostError, Json
from tests.support.lsp.lsp_subscription import Subscription

__all__ = ["Call", "ClientError", "ConnectionLostError", "Profile", "RawClient", "Subscription"]

USUAL_ENCODING = "utf-16"


class RawClient(Connection):
    """One editor and its connection. Use it as a context manager, or end it with `kill`."""

    def __init__(self) -> None:
        super().__init__(on_request=self._answer, on_notification=self._take)
        self.editor = Editor(self.notify)
        self.edits: EditBehaviour = Honest()
        """Answers `workspace/applyEdit`; replace it at any time."""
        self.handlers: dict[str, Handler] = self._usual_handlers()
        """Answers every other request of the server; replace one with `handlers[method] = …`."""
        self.capabilities: Json = {}
        self.progress: dict[str | int, list[Json]] = {}
        """Every progress value, by its token."""
        self.undeclared: list[Json] = []
        """Requests that the server sent although this editor declares no support for them."""
        self.profile = MINIMAL
        self.result: Json = {}
        """What the server answered to `initialize`."""
        self._subscriptions: dict[str | int, Subscription] = {}

    @classmethod
    async def spawn(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Self:
        """Start a server process and speak with it over its stdin and stdout."""
        client = cls()
        client.attach(await ProcessLink.start(client, argv, env=env, cwd=cwd))
        return client

    @classmethod
    async def over_socket(cls, sock: socket) -> Self:
        """Speak over a connected socket, such as one end of a socketpair."""
        client = cls()
        client.attach(await SocketLink.over(client, sock))
        return client

    @classmethod
    async def connect(cls, path: Path, *, hello: bytes = b"") -> Self:
        """Connect to a unix socket and send the hello line first."""
        client = cls()
        client.attach(await SocketLink.connect(client, path))
        client.send_raw(hello)
        return client

    @classmethod
    @asynccontextmanager
    async def over(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> AsyncGenerator[Self]:
        """Speak over a pair of streams inside the block."""
        client = cls()
        link = StreamLink(client, reader, writer)
        client.attach(link)
        async with pumping(link), client:
            yield client

    async def initialize(
        self,
        caps: Profile | Json = MINIMAL,
        *,
        options: Any = None,
        root: Path | None = None,
        folders: Sequence[Path] = (),
        timeout_s: float = USUAL_S,
    ) -> Json:
        """Introduce this editor and give the server's answer; `initialized` follows.

        Args:
            caps: A profile, or bare capabilities.
            options: The `initializationOptions`; left out when None.
            root: The workspace; further `folders` make it a workspace with several roots.
        """
        if isinstance(caps, Profile):
            self.profile = caps
            self.edits = caps.edits()
            self.patience_s = caps.timeout_s
            self.capabilities = caps.capabilities
        else:
            self.capabilities = caps
        roots = [*([root] if root is not None else []), *folders]
        listed = [{"uri": one.as_uri(), "name": one.name} for one in roots]
        self.handlers["workspace/workspaceFolders"] = lambda _, reply: reply(listed)
        params: Json = {
            "processId": os.getpid(),
            "clientInfo": {"name": self.profile.name, "version": self.profile.version},
            "rootUri": root.as_uri() if root is not None else None,
            "workspaceFolders": listed or None,
            "capabilities": self.capabilities,
        }
        if options is not None:
            params["initializationOptions"] = options
        self.result = await self.request("initialize", params, timeout_s=timeout_s)
        self._adopt(self.result.get("capabilities", {}))
        self.notify("initialized", {})
        return self.result

    def open(self, uri: str, text: str, *, version: int = 1, language: str = "python") -> Document:
        """Open a document with this text, which may differ from the disk."""
        return self.editor.open(uri, text, version=version, language=language)

    def change(self, uri: str, change: str | Sequence[Json]) -> Document:
        """Type: replace the whole text, or apply text edits that all refer to the text as it is now."""
        return self.editor.change(uri, change)

    def close_document(self, uri: str) -> None:
        """Close a document; unsaved text is gone."""
        self.editor.close(uri)

    def subscribe(
        self, session: str | None = None, *, since: int | None = None, **params: Any
    ) -> Subscription:
        """Subscribe to a session, by default the connection's.

        Args:
            since: The last event that is known, what the wire calls `from`.
            params: Further params, such as `epoch` and `detail`.
        """
        named = {"session": session, "from": since}
        params |= {name: value for name, value in named.items() if value is not None}
        token = f"subscription-{len(self._subscriptions) + 1}"
        call = self.call("agent/subscribe", {"partialResultToken": token, **params})
        stream = Subscription(call, last=since)
        self._subscriptions[token] = stream
        call.answer.add_done_callback(lambda _: stream.ended())
        return stream

    async def shutdown(self, *, timeout_s: float = USUAL_S) -> None:
        """Ask the server to prepare for its end."""
        await self.request("shutdown", timeout_s=timeout_s)

    async def exit(self, *, timeout_s: float = USUAL_S) -> int | None:
        """Tell the server to end; give the exit code of a process, None for another link."""
        self.notify("exit")
        return await self.exit_code(timeout_s=timeout_s)

    async def exit_code(self, *, timeout_s: float = USUAL_S) -> int | None:
        """Wait for the end of the process and give its exit code; None for another link.

        Raises:
            TimeoutError: The process still runs.
        """
        if not isinstance(self.link, ProcessLink):
            return None
        exited = self.link.exited
        await asyncio.wait({exited}, timeout=timeout_s)
        if not exited.done():
            message = f"the server still runs after {timeout_s} s"
            raise TimeoutError(message)
        return exited.result()

    @property
    def pid(self) -> int:
        """The process that was spawned."""
        assert isinstance(self.link, ProcessLink)
        return self.link.pid

    @property
    def stderr(self) -> str:
        """What the process wrote to its stderr so far."""
        assert isinstance(self.link, ProcessLink)
        return self.link.stderr.decode("utf-8", "replace")

    def _answer(self, message: Json, reply: Reply) -> None:
        method = message["method"]
        handler = self.handlers.get(method)
        served = declares(self.capabilities, method) or method in self.profile.answers_anyway
        if not served:
            self.undeclared.append(message)
        if handler is None or not served:
            reply.error(METHOD_NOT_FOUND, f"unknown method {method}")
            return
        handler(message.get("params"), reply)

    def _take(self, message: Json) -> None:
        if message["method"] != "$/progress":
            return
        token, value = message["params"]["token"], message["params"]["value"]
        self.progress.setdefault(token, []).append(value)
        stream = self._subscriptions.get(token)
        if stream is not None:
            stream.take(value)

    def _usual_handlers(self) -> dict[str, Handler]:
        panel = PanelEdits()
        return {
            "workspace/applyEdit": lambda params, reply: self.edits(self.editor, params, reply),
            "agent/edit/apply": lambda params, reply: panel(self.editor, params, reply),
            "agent/documents/save": Saves(self.editor),
            "agent/documents/read": Reads(self.editor),
            "agent/permission": Scripted(),
            "agent/question": Scripted(),
            "window/showMessageRequest": Chooses(),
            "window/showDocument": lambda _, reply: reply({"success": True}),
            "window/workDoneProgress/create": lambda _, reply: reply(),
            "workspace/configuration": lambda params, reply: reply([None for _ in params["items"]]),
            "workspace/codeLens/refresh": lambda _, reply: reply(),
            "workspace/diagnostic/refresh": lambda _, reply: reply(),
            "client/registerCapability": lambda _, reply: reply(),
            "client/unregisterCapability": lambda _, reply: reply(),
        }

    def _adopt(self, capabilities: Json) -> None:
        """Take the position encoding and the kind of synchronisation that the server has chosen."""
        offered = self.capabilities.get("general", {}).get("positionEncodings", [USUAL_ENCODING])
        chosen = capabilities.get("positionEncoding", USUAL_ENCODING)
        if chosen not in offered:
            self.complaints.append(f"{chosen!r} was chosen, but only {offered} offered")
        self.editor.encoding = chosen
        self.editor.complaints = self.complaints
        sync = capabilities.get("textDocumentSync", 1)
        self.editor.sync_kind = sync if isinstance(sync, int) else sync.get("change", 0)
