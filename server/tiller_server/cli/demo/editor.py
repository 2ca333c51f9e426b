"""The smallest editor that can show what Tiller does: open buffers, edits that it applies itself, saving on request."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct

from tiller_server.lsp.documents.positions import LineIndex
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.transport.framing import FrameReader, frame

TOKEN: Final = "demo"  # noqa: S105 - a progress token
READ_BYTES: Final = 1 << 16
CLOSE_S: Final = 10.0
CAPABILITIES: Final[Mapping[str, Any]] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "textDocument": {"synchronization": {"didSave": True}},
    "experimental": {
        "agent": {"v": 1, "events": {"channel": "progress"}, "documents": {"save": {}}}
    },
}


class DemoBuffer(Struct):
    """An open document."""

    path: Path
    text: str
    version: int = 1


class DemoEditor:
    """Starts the server as its child and speaks LSP with it."""

    def __init__(self, project: Path, variables: Mapping[str, str], *, debug: bool) -> None:
        self._project = project
        self._variables = variables
        self._debug = debug
        self._buffers: dict[str, DemoBuffer] = {}
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._ended: asyncio.Future[dict[str, Any]] | None = None
        self._on_event: Callable[[dict[str, Any]], None] = lambda _: None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "tiller_server.cli.entry",
            "lsp",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if self._debug else asyncio.subprocess.DEVNULL,
            cwd=self._project,
            env=dict(self._variables),
        )
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *why: object) -> None:
        process = self._started()
        try:
            async with asyncio.timeout(CLOSE_S):
                if process.returncode is None:
                    _ = await self._request("shutdown", None)
                    self._send({"jsonrpc": "2.0", "method": "exit"})
                _ = await process.wait()
        except (TimeoutError, ConnectionError):
            process.kill()
            _ = await process.wait()
        if self._reading is not None:
            _ = self._reading.cancel()

    async def begin(self, model: str) -> str:
        """Shake hands, open the project's files and a session; gives the session's id."""
        uri = self._project.as_uri()
        _ = await self._request(
            "initialize",
            {
                "processId": None,
                "clientInfo": {"name": "tiller demo"},
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": self._project.name}],
                "capabilities": CAPABILITIES,
            },
        )
        self._send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        for path in sorted(self._project.rglob("*.py")):
            self._open(path)
        snapshot = await self._request("agent/session/open", {"session": "new"})
        _ = await self._request("agent/session/configure", {"set": {"model": model}})
        subscription = self._post("agent/subscribe", {"partialResultToken": TOKEN})
        # It is answered when everything is over, and nobody waits for that.
        subscription.add_done_callback(lambda done: done.cancelled() or done.exception())
        return str(snapshot["session"])

    async def ask(self, prompt: str, on_event: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Send a prompt and pass on its events; gives the run's last one."""
        self._on_event = on_event
        self._ended = asyncio.get_running_loop().create_future()
        _ = await self._request(
            "agent/prompt", {"messageId": "demo-1", "content": [{"type": "text", "text": prompt}]}
        )
        return await self._ended

    def _open(self, path: Path) -> None:
        buffer = DemoBuffer(path, path.read_text(encoding="utf-8"))
        self._buffers[path.as_uri()] = buffer
        self._notify(
            "textDocument/didOpen",
            {
                "textDocument": {
                    "uri": path.as_uri(),
                    "languageId": "python",
                    "version": buffer.version,
                    "text": buffer.text,
                }
            },
        )

    async def _read(self) -> None:
        process = self._started()
        frames = FrameReader()
        while process.stdout and (data := await process.stdout.read(READ_BYTES)):
            frames.feed(data)
            while (body := frames.take()) is not None:
                self._take(json.loads(body))
        gone = ConnectionError("the server ended; run tiller demo --debug to see its log")
        for waiting in (*self._answers.values(), self._ended):
            if waiting is not None and not waiting.done():
                waiting.set_exception(gone)

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._serve(message)
        elif message["method"] == "$/progress":
            self._progress(message["params"]["value"])

    def _answered(self, message: dict[str, Any]) -> None:
        waiting = self._answers.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        if "error" in message:
            waiting.set_exception(ConnectionError(message["error"]["message"]))
        else:
            waiting.set_result(message["result"])

    def _progress(self, value: dict[str, Any]) -> None:
        for event in value.get("events", ()):
            self._on_event(event)
            if event["type"] == "run.ended" and self._ended is not None:
                self._ended.set_result(event)

    def _serve(self, message: dict[str, Any]) -> None:
        """Answer a request of the server."""
        match message["method"]:
            case "workspace/applyEdit":
                result: Any = self._apply(message["params"]["edit"])
            case "agent/documents/save":
                result = {"results": [self._save(one["uri"]) for one in message["params"]["items"]]}
            case method:
                error = {"code": -32601, "message": f"{method} is not supported"}
                self._send({"jsonrpc": "2.0", "id": message["id"], "error": error})
                return
        self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _apply(self, edit: dict[str, Any]) -> dict[str, Any]:
        for change in edit.get("documentChanges", ()):
            document = change["textDocument"]
            buffer = self._buffers.get(document["uri"])
            if buffer is None or document.get("version") != buffer.version:
                return {"applied": False, "failureReason": "the document is not at that version"}
            index = LineIndex(buffer.text, "utf-16")
            for one in sorted(change["edits"], key=_start, reverse=True):
                start, end = (index.offset(**one["range"][key]) for key in ("start", "end"))
                buffer.text = buffer.text[:start] + one["newText"] + buffer.text[end:]
            buffer.version += 1
            self._notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": document["uri"], "version": buffer.version},
                    "contentChanges": [{"text": buffer.text}],
                },
            )
        return {"applied": True}

    def _save(self, uri: str) -> dict[str, Any]:
        buffer, path = self._buffers.get(uri), path_of(uri)
        if buffer is None or path is None:
            return {"uri": uri, "saved": False, "why": "it is not open"}
        _ = path.write_text(buffer.text, encoding="utf-8")
        self._notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        return {"uri": uri, "saved": True, "version": buffer.version}

    async def _request(self, method: str, params: Any) -> Any:
        return await self._post(method, params)

    def _post(self, method: str, params: Any) -> "asyncio.Future[Any]":
        number = next(self._numbers)
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = waiting
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return waiting

    def _notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        process = self._started()
        if process.stdin is not None:
            process.stdin.write(frame(json.dumps(message).encode()))

    def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            message = "the editor has not started its server"
            raise ConnectionError(message)
        return self._process


def _start(edit: dict[str, Any]) -> tuple[int, int]:
    start = edit["range"]["start"]
    return start["line"], start["character"]
