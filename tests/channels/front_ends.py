"""The front ends as their users see them, behind one interface: each is a client before a session of one runtime."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import anyio

from agent_core.assembly import SessionRequest
from agent_core.channels import serve_channel
from agent_core.events import Event, MessageDelta, RunEnded, ToolEnded
from agent_core.messages import Image, Text
from tests.support.acp.client import AcpClient, opener, served as acp_served
from tests.support.clients.browsers import Heard, ask, events_of, following, served as web_served
from tests.support.clients.office import soon
from tests.support.clients.rpc import RpcPeer, rpc_client
from tests.support.clients.server import prompt
from tests.support.clients.windows import Windows, opened
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_subscription import Subscription
from tiller_server.agent_client.in_process import attached
from tiller_server.cli.shared_session.chat import SharedChatSession
from tiller_server.cli.terminal.permission_prompt import TerminalChannel
from tiller_server.lsp.app import App

Json = dict[str, Any]


class FrontEnd(Protocol):
    """A client of one session, with its user."""

    async def prompt(self, text: str) -> None:
        """Send a prompt; return when it was accepted."""
        ...

    async def said(self, text: str) -> None:
        """Wait until the answers that are shown are this text."""
        ...

    async def asked(self) -> None:
        """Wait until a permission is asked for."""
        ...

    async def allow(self) -> None:
        """Answer it: once."""
        ...

    async def withdrawn(self) -> None:
        """Wait until nothing is asked any more."""
        ...

    async def cancel(self) -> None:
        """Stop the run."""
        ...

    async def ended(self) -> str:
        """Wait until the run has ended; return the reason of its failure as the user reads it, or an empty text."""
        ...

    async def pictures(self) -> int:
        """Return the number of pictures in results of tools, after a run."""
        ...


class Lsp:
    """An editor with a panel."""

    def __init__(self, client: RawClient, stream: Subscription, dialog: LeavesOpen) -> None:
        self._client = client
        self._stream = stream
        self._dialog = dialog

    async def prompt(self, text: str) -> None:
        _ = await self._client.request("agent/prompt", prompt(text))

    async def said(self, text: str) -> None:
        await soon(lambda: text_of_events(self._stream.events) == text)

    async def asked(self) -> None:
        await soon(lambda: self._dialog.asked)

    async def allow(self) -> None:
        self._dialog.replies[0]({"option": "allowOnce"})

    async def withdrawn(self) -> None:
        await soon(
            lambda: "$/cancelRequest" in [one.get("method") for one in self._client.received]
        )

    async def cancel(self) -> None:
        _ = await self._client.request("agent/run/cancel", {})

    async def ended(self) -> str:
        return why(await self._stream.wait(type="run.ended"))

    async def pictures(self) -> int:
        return pictures_in(self._stream.events)


class Acp:
    """A client of ACP."""

    def __init__(self, client: AcpClient, session: str) -> None:
        self._client = client
        self._session = session
        self._answer: asyncio.Future[Json] | None = None

    async def prompt(self, text: str) -> None:
        self._answer = self._client.prompt(self._session, text)

    async def said(self, text: str) -> None:
        await self._client.until(lambda: self._client.said() == text)

    async def asked(self) -> None:
        await self._client.until(lambda: self._client.asked("session/request_permission"))

    async def allow(self) -> None:
        (one,) = (
            one
            for way, one in self._client.record
            if way == "<" and "id" in one and "method" in one
        )
        options = one["params"]["options"]
        option = next(each["optionId"] for each in options if each["kind"] == "allow_once")
        outcome = {"outcome": "selected", "optionId": option}
        self._client.send({"jsonrpc": "2.0", "id": one["id"], "result": {"outcome": outcome}})

    async def withdrawn(self) -> None:
        await self._client.until(lambda: self._client.asked("$/cancel_request"))

    async def cancel(self) -> None:
        self._client.notify("session/cancel", {"sessionId": self._session})

    async def ended(self) -> str:
        assert self._answer is not None, "no prompt was sent"
        message = await self._answer
        return message.get("error", {}).get("message", "")

    async def pictures(self) -> int:
        return json.dumps(self._client.updates).count('"type": "image"')


class Rpc:
    """A program that was written for pi's RPC mode."""

    def __init__(self, peer: RpcPeer) -> None:
        self._peer = peer
        self._dialog: Json = {}

    async def prompt(self, text: str) -> None:
        _ = await self._peer.data("prompt", message=text)

    async def said(self, text: str) -> None:
        messages = (await self._peer.data("get_messages"))["messages"]
        while rpc_text(messages) != text:
            _ = await self._peer.next()
            messages = (await self._peer.data("get_messages"))["messages"]

    async def asked(self) -> None:
        self._dialog = await self._peer.event("extension_ui_request")

    async def allow(self) -> None:
        answer = {
            "type": "extension_ui_response",
            "id": self._dialog["id"],
            "value": self._dialog["options"][0],
        }
        self._peer.write(json.dumps(answer).encode() + b"\n")

    async def withdrawn(self) -> None:
        """Answer too late, which is ignored: the protocol has no withdrawal."""
        await self.allow()

    async def cancel(self) -> None:
        _ = await self._peer.data("abort")

    async def ended(self) -> str:
        if not self._peer.of("agent_end"):
            _ = await self._peer.event("agent_end")
        last = self._peer.of("agent_end")[-1]["messages"][-1]
        return last.get("errorMessage", "") if last.get("stopReason") == "error" else ""

    async def pictures(self) -> int:
        return json.dumps(self._peer.of("tool_execution_end")).count('"type": "image"')


class Web:
    """A browser."""

    def __init__(self, page: Any, stream: Any, session: str) -> None:
        self._page = page
        self._stream = stream
        self._session = session
        self._heard: list[Heard] = []

    @property
    def _events(self) -> list[Json]:
        return events_of(self._heard)

    async def prompt(self, text: str) -> None:
        assert "result" in await ask(
            self._page, "agent/prompt", session=self._session, **prompt(text)
        )

    async def said(self, text: str) -> None:
        await self._until(lambda: text_of_events(self._events) == text)

    async def asked(self) -> None:
        await self._until(lambda: self._of("permission.requested"))

    async def allow(self) -> None:
        request = self._of("permission.requested")[0]["request"]["request"]
        given = {"request": request, "option": "allowOnce"}
        assert "result" in await ask(self._page, "agent/permission/respond", **given)

    async def withdrawn(self) -> None:
        await self._until(lambda: self._of("permission.resolved"))

    async def cancel(self) -> None:
        _ = await ask(self._page, "agent/run/cancel", session=self._session)

    async def ended(self) -> str:
        await self._until(lambda: self._of("run.ended"))
        return why(self._of("run.ended")[-1])

    async def pictures(self) -> int:
        return pictures_in(self._events)

    def _of(self, kind: str) -> list[Json]:
        return [one for one in self._events if one["type"] == kind]

    async def _until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(15):
            while not condition():
                one = await self._stream.next()
                assert one is not None
                self._heard.append(one)


class Terminal:
    """`tiller chat` in a session of the daemon."""

    def __init__(self, session: SharedChatSession) -> None:
        self._session = session
        self.events: list[Event] = []
        self.questions: list[str] = []
        self.notes: list[str] = []
        self._typed: asyncio.Queue[str] = asyncio.Queue()

    async def serve(self) -> None:
        channel = TerminalChannel(
            read_line=self._typed.get,
            write_question=self.questions.append,
            write_note=self.notes.append,
        )
        await serve_channel(channel, self._session)

    async def read(self) -> None:
        async for one in self._session.subscribe():
            self.events.append(one.event)

    async def prompt(self, text: str) -> None:
        await self._session.prompt((Text(text=text),))

    async def said(self, text: str) -> None:
        await soon(lambda: "".join(one.text for one in self._of(MessageDelta)) == text)

    async def asked(self) -> None:
        await soon(lambda: self.questions)

    async def allow(self) -> None:
        self._typed.put_nowait("y\n")

    async def withdrawn(self) -> None:
        await soon(lambda: self.notes)

    async def cancel(self) -> None:
        await self._session.stop()

    async def ended(self) -> str:
        await soon(lambda: self._of(RunEnded))
        error = self._of(RunEnded)[-1].error
        return "" if error is None else error.message

    async def pictures(self) -> int:
        results = [one for one in self._of(ToolEnded) if one.content]
        return sum(isinstance(part, Image) for one in results for part in one.content)

    def _of(self, kind: type[Event]) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]


def text_of_events(events: list[Json]) -> str:
    """Return the text of all answers."""
    return "".join(one["text"] for one in events if one["type"] == "message.delta")


def pictures_in(events: list[Json]) -> int:
    """Return the number of pictures in results of tools."""
    parts = [
        part for one in events if one["type"] == "tool.ended" for part in one.get("content", [])
    ]
    return sum(part["type"] == "image" for part in parts)


def why(ended: Json) -> str:
    """Return why a run failed."""
    return ended.get("error", {}).get("message", "")


def rpc_text(messages: list[Json]) -> str:
    """Return the text of all answers."""
    answers = [one for one in messages if one["role"] == "assistant"]
    return "".join(
        part["text"] for one in answers for part in one["content"] if part["type"] == "text"
    )


@asynccontextmanager
async def lsp(windows: Windows, session: str) -> AsyncGenerator[FrontEnd]:
    async with windows.window(clientId="front") as client:
        dialog = client.handlers["agent/permission"] = LeavesOpen()
        _ = await opened(client, session)
        stream = client.subscribe()
        await stream.ready()
        yield Lsp(client, stream, dialog)


@asynccontextmanager
async def acp(windows: Windows, session: str) -> AsyncGenerator[FrontEnd]:
    ground = windows.ground
    async with acp_served(opener(windows.runtime), env=ground.env) as client:
        client.answers["session/request_permission"] = lambda _: None
        _ = await client.initialize()
        folder = {"cwd": str(ground.root), "mcpServers": []}
        _ = await client.request("session/load", {"sessionId": session, **folder})
        yield Acp(client, session)


@asynccontextmanager
async def rpc(windows: Windows, session: str) -> AsyncGenerator[FrontEnd]:
    async with rpc_client(windows.ground, runtime=windows.runtime, session=session) as peer:
        _ = await peer.data("get_state")
        yield Rpc(peer)


@asynccontextmanager
async def web(windows: Windows, session: str) -> AsyncGenerator[FrontEnd]:
    async with web_served(windows.ground, runtime=windows.runtime) as site, site.page() as page:
        _ = await page.post("/v1/login", json={"token": site.one_off})
        _ = await ask(page, "agent/session/open", session=session)
        async with following(page, [session]) as stream:
            yield Web(page, stream, session)


@asynccontextmanager
async def terminal(windows: Windows, session: str) -> AsyncGenerator[FrontEnd]:
    ground = windows.ground
    async with attached(App(windows.runtime)) as connection:
        request = SessionRequest(workspace=ground.root, env=ground.env)
        shared = SharedChatSession(connection, request)
        await shared.open(session, ground.root)
        front = Terminal(shared)
        async with asyncio.TaskGroup() as tasks:
            works = [tasks.create_task(one()) for one in (front.serve, front.read, shared.follow)]
            await asyncio.sleep(0)
            yield front
            for work in works:
                _ = work.cancel()


FRONT_ENDS: Mapping[str, Callable[[Windows, str], AbstractAsyncContextManager[FrontEnd]]] = {
    "lsp": lsp,
    "acp": acp,
    "rpc": rpc,
    "web": web,
    "terminal": terminal,
}
"""`tiller run` has no entry: it shows permissions by the `TerminalChannel` and `serve_channel` of the terminal, and its session is
in its own process, which no watcher of these tests can open. tests/cli checks its answers, failures and ends."""
