"""Slack's Web API and Socket Mode on loopback, with channels in memory, the limits of the documentation, and faults on request.

Rules are those of docs.slack.dev: chat.postMessage, chat.update, Block Kit, Socket Mode, conversations.history.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import WSMsgType, web

from agent_core.kernel import SystemClock

BOT: Final = "UBOT"
TEAM: Final = "T1"
APP_TOKEN: Final = "xapp-test"
BOT_TOKEN: Final = "xoxb-test"
MARKDOWN_CHARS: Final = 12_000
TEXT_CHARS: Final = 40_000
BLOCKS: Final = 50
SECTION_CHARS: Final = 3_000
HEADER_CHARS: Final = 150
BUTTON_CHARS: Final = 75
VALUE_CHARS: Final = 2_000
BLOCK_TYPES: Final = frozenset({"section", "header", "context", "actions", "markdown", "divider"})
Json = dict[str, Any]


class Refusal(Exception):
    """An error of the Web API."""


class SlackWorkspace:  # noqa: PLR0904 - a method for each of the Web API
    """Channels, files and people in memory, and the methods of the Web API on them."""

    def __init__(self) -> None:
        self.channels: dict[str, list[Json]] = defaultdict(list)
        self.ephemeral: list[Json] = []
        self.reactions: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.files: dict[str, tuple[Json, bytes]] = {}
        self.uploads: dict[str, bytes] = {}
        self.page = 100
        self.base_url = ""
        self._clock = SystemClock()
        self._ts = 0

    def texts(self, channel: str) -> list[str]:
        """Return the texts of the bot in a channel, oldest first."""
        own = [one for one in self.channels[channel] if one.get("user") == BOT]
        return [one.get("markdown_text") or one.get("text", "") for one in own]

    def auth_test(self, _: Json) -> Json:
        return {"user_id": BOT, "team_id": TEAM, "user": "tiller", "team": "Team"}

    def apps_connections_open(self, _: Json) -> Json:
        return {"url": self.base_url.replace("http", "ws", 1).replace("/api/", "/socket")}

    def chat_postmessage(self, params: Json) -> Json:
        _check_content(params)
        names = ("text", "markdown_text", "blocks", "metadata", "thread_ts")
        kept = {name: params[name] for name in names if params.get(name) is not None}
        if (root := kept.get("thread_ts")) and not self._find(params["channel"], root):
            raise Refusal("thread_not_found")
        message = self.put(params["channel"], {"user": BOT, "bot_id": "B1", **kept})
        return {"ts": message["ts"], "channel": params["channel"]}

    def chat_update(self, params: Json) -> Json:
        _check_content(params)
        message = self._find(params["channel"], params["ts"])
        if message is None or message.get("user") != BOT:
            raise Refusal("message_not_found")
        for name in ("text", "markdown_text", "blocks"):
            message.pop(name, None)
            if params.get(name) is not None:
                message[name] = params[name]
        return {"ts": params["ts"]}

    def chat_postephemeral(self, params: Json) -> Json:
        self.ephemeral.append(params)
        return {"message_ts": self.stamp()}

    def reactions_add(self, params: Json) -> Json:
        names = self.reactions[params["channel"], params["timestamp"]]
        if params["name"] in names:
            raise Refusal("already_reacted")
        names.append(params["name"])
        return {}

    def reactions_remove(self, params: Json) -> Json:
        names = self.reactions[params["channel"], params["timestamp"]]
        if params["name"] not in names:
            raise Refusal("no_reaction")
        names.remove(params["name"])
        return {}

    def conversations_history(self, params: Json) -> Json:
        main = [
            one
            for one in self.channels[params["channel"]]
            if one.get("thread_ts", one["ts"]) == one["ts"]
        ]
        return self._listed(main[::-1], params)

    def conversations_replies(self, params: Json) -> Json:
        replies = [
            one
            for one in self.channels[params["channel"]]
            if params["ts"] in {one["ts"], one.get("thread_ts")}
        ]
        return self._listed(replies, params)

    def files_info(self, params: Json) -> Json:
        if params["file"] not in self.files:
            raise Refusal("file_not_found")
        return {"file": self.files[params["file"]][0]}

    def files_getuploadurlexternal(self, params: Json) -> Json:
        id_ = f"F{len(self.files) + 1}"
        self.files[id_] = ({"id": id_, "name": params["filename"]}, b"")
        return {"file_id": id_, "upload_url": self.base_url.replace("/api/", f"/upload/{id_}")}

    def files_completeuploadexternal(self, params: Json) -> Json:
        listed = params["files"]
        for one in json.loads(listed) if isinstance(listed, str) else listed:
            facts, _ = self.files[one["id"]]
            self.files[one["id"]] = (facts, self.uploads[one["id"]])
            self.put(
                params["channel_id"],
                {"user": BOT, "bot_id": "B1", "text": "", "files": [facts], **_thread_of(params)},
            )
        return {"files": [{"id": one} for one in self.files]}

    def add_file(self, name: str, content: bytes, *, mime: str = "text/plain") -> Json:
        """Store a file of a person; return its facts for a message."""
        id_ = f"F{len(self.files) + 1}"
        facts = {
            "id": id_,
            "name": name,
            "mimetype": mime,
            "size": len(content),
            "url_private_download": self.base_url.replace("/api/", f"/files/{id_}"),
        }
        self.files[id_] = (facts, content)
        return facts

    # ------------------------------------------------------------------ the model

    def _listed(self, messages: list[Json], params: Json) -> Json:
        oldest = float(params.get("oldest", 0))
        kept = [one for one in messages if float(one["ts"]) >= oldest]
        start = int(params.get("cursor") or 0)
        end = start + min(self.page, int(params.get("limit", 100)))
        shown = kept[start:end]
        if str(params.get("include_all_metadata", "")).lower() not in {"true", "1"}:
            shown = [{k: v for k, v in one.items() if k != "metadata"} for one in shown]
        more = {"next_cursor": str(end)} if end < len(kept) else {}
        return {"messages": shown, "response_metadata": more}

    def _find(self, channel: str, ts: str) -> Json | None:
        return next((one for one in self.channels[channel] if one["ts"] == ts), None)

    def put(self, channel: str, message: Json) -> Json:
        stored = {"type": "message", "ts": self.stamp(), **message}
        self.channels[channel].append(stored)
        return stored

    def stamp(self) -> str:
        self._ts = max(self._clock.now_ms() * 1000, self._ts + 1000)
        return f"{self._ts // 1_000_000}.{self._ts % 1_000_000:06d}"


class SlackPlatform:
    """One workspace with one app.

    `faults` holds, by method, how its next calls end: an error code, `ratelimited`, `lost` (applied, then HTTP 500),
    `unavailable` (HTTP 503, not applied) or `cut` (the connection ends after it was applied).
    """

    def __init__(self) -> None:
        self.workspace = SlackWorkspace()
        self.calls: list[tuple[str, Json]] = []
        self.faults: dict[str, deque[str]] = defaultdict(deque)
        self.acks: list[str] = []
        self.connections = 0
        self.is_silent = False
        """Whether pings are not answered."""
        self._envelopes = 0
        self._sockets: set[web.WebSocketResponse] = set()
        self._moved = asyncio.Condition()

    # ------------------------------------------------------------------ what tests do

    async def say(self, channel: str, text: str, *, user: str = "U1", **more: Any) -> Json:
        """Write a message as a person, and deliver it."""
        message = self.workspace.put(channel, {"user": user, "text": text, **more})
        await self.deliver(self.event(channel, message))
        return message

    def event(self, channel: str, message: Json) -> Json:
        """Return the event of a message."""
        kind = "im" if channel.startswith("D") else "channel"
        return {**message, "channel": channel, "channel_type": kind}

    async def deliver(self, event: Json, *, times: int = 1) -> None:
        """Deliver an event to one connection, as often as is asked."""
        for attempt in range(times):
            await self.send("events_api", {"event": event}, retry_attempt=attempt)

    async def click(
        self, message: Json, channel: str, *, button: int = 0, user: str = "U1"
    ) -> None:
        """Click on a button of a message."""
        (actions,) = [one for one in message["blocks"] if one["type"] == "actions"]
        element = actions["elements"][button]
        stamp = self.workspace.stamp()
        await self.send(
            "interactive",
            {
                "type": "block_actions",
                "trigger_id": f"trigger-{stamp}",
                "user": {"id": user, "name": user.lower()},
                "container": {
                    "channel_id": channel,
                    "message_ts": message["ts"],
                    "thread_ts": message.get("thread_ts"),
                },
                "actions": [{**element, "action_ts": stamp}],
            },
        )

    async def send(self, kind: str, payload: Json, **more: Any) -> str:
        """Send an envelope to one connection; return its id."""
        await self.until(lambda: bool(self._sockets))
        self._envelopes += 1
        id_ = f"envelope-{self._envelopes}"
        envelope = {"envelope_id": id_, "type": kind, "payload": payload, **more}
        await next(iter(self._sockets)).send_str(json.dumps(envelope))
        return id_

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the connections to leave, as Slack does before it closes one."""
        for socket in [*self._sockets]:
            await socket.send_str(json.dumps({"type": "disconnect", "reason": reason}))

    async def cut(self) -> None:
        """Close the connections without a word."""
        for socket in [*self._sockets]:
            await socket.close()

    async def until(self, holds: Any, *, within_s: float = 10) -> None:
        """Wait until something holds; it is looked at after each call and acknowledgement."""
        async with asyncio.timeout(within_s), self._moved:
            await self._moved.wait_for(holds)

    # ------------------------------------------------------------------ the server

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator["SlackPlatform"]:
        """Serve on a free port of loopback."""
        app = web.Application(client_max_size=200 * 1024 * 1024)
        app.router.add_get("/socket", self._socket)
        app.router.add_get("/files/{file}", self._file)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_route("*", "/api/{method}", self._call)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.workspace.base_url = f"http://{host}:{port}/api/"
        try:
            yield self
        finally:
            await self.cut()
            await runner.cleanup()

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self.connections += 1
        await socket.send_str(json.dumps({"type": "hello", "num_connections": 1}))
        self._sockets.add(socket)
        await self._notify()
        try:
            async for message in socket:
                if message.type == WSMsgType.PING and not self.is_silent:
                    await socket.pong(message.data)
                elif message.type == WSMsgType.TEXT:
                    self.acks.append(json.loads(message.data)["envelope_id"])
                    await self._notify()
        finally:
            self._sockets.discard(socket)
        return socket

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if request.content_type == "application/json":
            params = await request.json()
        else:
            params = {**request.query, **await request.post()}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        expected = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        fault = self.faults[method].popleft() if self.faults[method] else ""
        if token != expected:
            fault = "invalid_auth"
        self.calls.append((method, params))
        await self._notify()
        if (refused := _refused(fault)) is not None:
            return refused
        try:
            answer = getattr(self.workspace, f"{method.replace('.', '_').lower()}")(params)
        except Refusal as refusal:
            return web.json_response({"ok": False, "error": str(refusal)})
        finally:
            await self._notify()
        if fault == "lost":
            return web.json_response({"ok": False, "error": "internal_error"}, status=500)
        if fault == "cut" and request.transport is not None:
            request.transport.abort()
        return web.json_response({"ok": True, **answer})

    async def _file(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(status=403)
        return web.Response(body=self.workspace.files[request.match_info["file"]][1])

    async def _upload(self, request: web.Request) -> web.Response:
        content = await request.read()
        if request.content_type == "multipart/form-data":
            content = b""
        self.workspace.uploads[request.match_info["file"]] = content
        return web.Response(text="OK")

    async def _notify(self) -> None:
        async with self._moved:
            self._moved.notify_all()


def _refused(fault: str) -> web.Response | None:
    """Return the answer of a call that is not applied; None: it is."""
    status, headers = 200, {}
    match fault:
        case "" | "lost" | "cut":
            return None
        case "ratelimited":
            status, headers = 429, {"Retry-After": "1"}
        case "unavailable":
            status = 503
        case _:
            pass
    return web.json_response({"ok": False, "error": fault}, status=status, headers=headers)


def _thread_of(params: Json) -> Json:
    return {"thread_ts": params["thread_ts"]} if params.get("thread_ts") else {}


def _check_content(params: Json) -> None:
    """Check the limits of a message; `Refusal` names the one that it breaks."""
    markdown, text, blocks = (params.get(one) for one in ("markdown_text", "text", "blocks"))
    if markdown is not None and (text is not None or blocks is not None):
        raise Refusal("markdown_text_conflict")
    if not (markdown or text or blocks):
        raise Refusal("no_text")
    if len(markdown or "") > MARKDOWN_CHARS or len(text or "") > TEXT_CHARS:
        raise Refusal("msg_too_long")
    listed = json.loads(blocks) if isinstance(blocks, str) else blocks or []
    if len(listed) > BLOCKS or any(not _is_block(one) for one in listed):
        raise Refusal("invalid_blocks")


def _is_block(block: Json) -> bool:
    kind = block.get("type")
    match kind:
        case "header":
            return 0 < len(block["text"]["text"]) <= HEADER_CHARS
        case "section":
            return 0 < len(block["text"]["text"]) <= SECTION_CHARS
        case "actions":
            ids = [one["action_id"] for one in block["elements"]]
            return len(ids) == len(set(ids)) <= 25 and all(
                0 < len(one["text"]["text"]) <= BUTTON_CHARS
                and len(one.get("value", "")) <= VALUE_CHARS
                and one.get("style", "primary") in {"primary", "danger"}
                for one in block["elements"]
            )
        case _:
            return kind in BLOCK_TYPES
