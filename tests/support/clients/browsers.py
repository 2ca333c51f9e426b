"""The web front end on a real port, and what a browser does with it: logs in, asks, follows a stream."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from agent_core.kernel import Clock, SystemClock
from agent_core.resources.paths import app_paths
from tests.support.clients.server import Ground
from tiller_server.agent_client.connection import AgentClient, RequestHandler
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig
from tiller_server.web.listen_address import ListenAddress, listen
from tiller_server.web.methods import Role
from tiller_server.web.options import WebLimits, WebOptions
from tiller_server.web.server import WebServer

Json = dict[str, Any]
WITHIN_S = 15.0


@dataclass(slots=True, kw_only=True)
class Site:
    """A served front end."""

    server: WebServer
    token_file: Path
    listen_address: ListenAddress
    codes: list[str]
    """Codes that the terminal has shown."""

    @property
    def address(self) -> str:
        """Where its port is."""
        scheme = "http" if self.listen_address.certificate is None else "https"
        return f"{scheme}://127.0.0.1:{self.server.port}"

    @property
    def origin(self) -> str:
        """Where its page comes from."""
        return self.server.origin

    @property
    def host(self) -> str:
        """The header Host of its page."""
        return urlsplit(self.origin).netloc

    @property
    def one_off(self) -> str:
        """The token of the URL that is printed."""
        return parse_qs(urlsplit(self.server.url).query)["token"][0]

    @property
    def login(self) -> Json:
        """The body of a login that is accepted once."""
        return (
            {"code": self.codes[-1]} if self.listen_address.needs_code else {"token": self.one_off}
        )

    @property
    def cookie(self) -> str:
        """The name of the cookie of a login."""
        prefix = "__Host-" if self.listen_address.is_secure else ""
        return f"{prefix}tiller-{self.server.port}"

    @property
    def trust(self) -> ssl.SSLContext | bool:
        """What its clients trust."""
        shown = self.listen_address.certificate
        return True if shown is None else ssl.create_default_context(cafile=str(shown.file))

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection without a client library."""
        trust = self.trust if isinstance(self.trust, ssl.SSLContext) else None
        return await asyncio.open_connection("127.0.0.1", self.server.port, ssl=trust)

    @property
    def bearer(self) -> str:
        """The token of scripts."""
        return self.token_file.read_text("utf-8").strip()

    def script(self) -> httpx.AsyncClient:
        """Return a client of a script."""
        return self._client({"authorization": f"Bearer {self.bearer}"})

    def page(self) -> httpx.AsyncClient:
        """Return a client that sends what a browser sends for the page; not logged in."""
        return self._client({"origin": self.origin, "sec-fetch-site": "same-origin"})

    def _client(self, headers: Mapping[str, str]) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.address,
            headers={"host": self.host, **headers},
            timeout=WITHIN_S,
            verify=self.trust,
        )


@asynccontextmanager
async def served(
    ground: Ground,
    *,
    role: Role = "operator",
    clock: Clock | None = None,
    limits: WebLimits | None = None,
    page: Path | None = None,
    runtime: Runtime | None = None,
    listen_address: ListenAddress | None = None,
) -> AsyncGenerator[Site]:
    """Serve the front end for an agent in this process; without a folder of a page there is none.

    With a runtime it is before the sessions of that one.
    """
    listen_on = listen_address or ListenAddress(port=0)
    codes: list[str] = []
    listener = listen(listen_on)
    place = ground.root.parent
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)

    @asynccontextmanager
    async def connect(handlers: Mapping[str, RequestHandler]) -> AsyncGenerator[AgentClient]:
        async with attached(App(of), handlers=handlers) as client:
            yield client

    options = WebOptions(
        role=role,
        root=ground.root,
        paths=app_paths(ground.env),
        env=ground.env,
        token_file=lambda port: place / f"web-{port}.token",
        page=page or place / "none",
        limits=limits or WebLimits(),
    )
    async with nullcontext(runtime) if runtime else Runtime(config) as of:
        server = WebServer(
            listener,
            connect,
            options,
            listen_address=listen_on,
            show_code=codes.append,
            clock=clock or SystemClock(),
        )
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.run_web())
            try:
                await server.is_serving.wait()
                file = options.token_file(server.port)
                yield Site(server=server, token_file=file, listen_address=listen_on, codes=codes)
            finally:
                server.should_exit = True
                await asyncio.wait([serving])


async def ask(client: httpx.AsyncClient, method: str, **params: Any) -> Json:
    """Send a request of the agent and return its answer, `result` or `error`."""
    answer = await client.post("/v1/rpc", json={"method": method, "params": params})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def opened(client: httpx.AsyncClient) -> Json:
    """Open a new session and return its snapshot."""
    return (await ask(client, "agent/session/open", session="new"))["result"]


@dataclass(slots=True, kw_only=True)
class Heard:
    """An event of a stream."""

    id: str = ""
    event: str = "message"
    session: str = ""
    frame: Json = field(default_factory=dict)


@dataclass(slots=True)
class Following:
    """A stream that is being read as an EventSource does."""

    answer: httpx.Response
    lines: Any

    async def next(self) -> Heard | None:
        """Return the next event; None: the stream has ended."""
        heard = Heard()
        async for line in self.lines:
            name, _, value = line.partition(": ")
            if name == "id":
                heard.id = value
            elif name == "event":
                heard.event = value
            elif name == "data":
                given = json.loads(value)
                heard.session, heard.frame = given["session"], given["frame"]
            elif line == "" and heard.frame:
                return heard
        return None


@asynccontextmanager
async def following(
    client: httpx.AsyncClient, sessions: Sequence[str], *, last: str | None = None
) -> AsyncGenerator[Following]:
    """Open a stream."""
    headers = {} if last is None else {"last-event-id": last}
    path = f"/v1/events?sessions={','.join(sessions)}"
    async with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, answer.status_code
        yield Following(answer, answer.aiter_lines())


def events_of(frames: Sequence[Heard]) -> list[Json]:
    """Return the events of frames."""
    return [one for heard in frames for one in heard.frame.get("events", [])]
