"""What reading a long answer costs in each adapter alone, beside httpx, lines and JSON in the same process."""

import json
import socketserver
import struct
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import pairwise

import httpx
from typing_extensions import override

from agent_core.kernel import SystemClock
from agent_core.providers import Model, ModelInfo, ModelRequest, StreamFinished, WireApi
from agent_core.providers.adapters.anthropic_messages import AnthropicMessages
from agent_core.providers.adapters.azure_openai_responses import AzureOpenAIResponses
from agent_core.providers.adapters.bedrock_converse import BedrockConverse
from agent_core.providers.adapters.google_generative_ai import GoogleGenerativeAI
from agent_core.providers.adapters.google_vertex import GoogleVertex
from agent_core.providers.adapters.mistral_conversations import MistralConversations
from agent_core.providers.adapters.ollama_chat import OllamaChat
from agent_core.providers.adapters.openai_completions import OpenAICompletions
from agent_core.providers.adapters.openai_responses import OpenAIResponses
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.client import HttpPool
from agent_core.providers.messages.partial_json import GrowingArguments
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate
from bench.lab import MeasurementFailedError, Workshop
from bench.provider_streams import FLOODS, WORD, Flood

MAX_CPU_RATIO = 3.0
MAX_ARGUMENTS_MS = 100.0
ARGUMENTS_CHARS = 450_000
PIECE_CHARS = 20
PEER = "httpx, lines, JSON"
FRAME_PEER = "httpx, frames, JSON"
PRELUDE_BYTES = 8
SEND_BYTES = 16 * 1024
REQUEST = ModelRequest(system="", messages=())


class _Open:
    async def credentials(self) -> RequestCredentials:
        return RequestCredentials(key="key", bearer=True)


async def measure(plan: Plan, _: Workshop) -> list[Row]:
    """Read the longest answer of the plan with each adapter, and parse streamed arguments."""
    deltas = max(plan.deltas)
    rows: list[Row] = []
    for flood in FLOODS:
        body = flood.body(deltas)
        with _served(body, flood.content_type) as url:
            async with _adapter(flood.api, url) as model, _bare() as client:
                read = partial(_read, model, deltas)
                bare = partial(_frames if flood.frames else _lines, client, url, deltas)
                await read()
                await bare()
                ours, floor = await alternate(plan.rounds, read, bare)
        rows.append(_row(flood, deltas, ours, floor))
    return [*rows, await _arguments(plan)]


def _row(flood: Flood, deltas: int, ours: list[float], floor: list[float]) -> Row:
    return Row(
        what=f"{flood.api}, {deltas:,} deltas: CPU",
        unit="ms",
        ours=tuple(one * 1000 for one in ours),
        peer=Peer(
            name=FRAME_PEER if flood.frames else PEER, samples=tuple(one * 1000 for one in floor)
        ),
        bar=Bar(of="ratio", at_most=MAX_CPU_RATIO),
    )


async def _arguments(plan: Plan) -> Row:
    value = {"path": "a.py", "content": 'def f(x):\n    return {"é": x}\n' * 20_000}
    text = json.dumps(value)[:ARGUMENTS_CHARS]
    pieces = [text[start:end] for start, end in pairwise((*range(0, len(text), PIECE_CHARS), None))]
    whole = json.dumps({"content": text})

    async def grown() -> float:
        started = time.thread_time()
        arguments = GrowingArguments(SystemClock())
        for piece in pieces:
            arguments.add(piece)
            if arguments.is_due:
                _ = arguments.parse()
        _ = arguments.parse()
        return time.thread_time() - started

    async def once() -> float:
        started = time.thread_time()
        json.loads(whole)
        return time.thread_time() - started

    ours, floor = await alternate(plan.rounds, grown, once)
    return Row(
        what=f"{ARGUMENTS_CHARS // 1000} kB of arguments in {len(pieces):,} pieces, shown as they grow: CPU",
        unit="ms",
        ours=tuple(one * 1000 for one in ours),
        peer=Peer(name="one json.loads at the end", samples=tuple(one * 1000 for one in floor)),
        bar=Bar(of="median", at_most=MAX_ARGUMENTS_MS),
    )


async def _read(model: Model, deltas: int) -> float:
    started = time.thread_time()
    text = ""
    async with model.stream(REQUEST) as parts:
        async for part in parts:
            if isinstance(part, StreamFinished):
                text = part.message.text
    spent = time.thread_time() - started
    if text != WORD * deltas:
        message = f"{model.facts.api} lost words"
        raise MeasurementFailedError(message)
    return spent


async def _lines(client: httpx.AsyncClient, url: str, deltas: int) -> float:
    started = time.thread_time()
    events = 0
    async with client.stream("POST", url, content=b"{}") as response:
        async for line in response.aiter_lines():
            text = line.removeprefix("data: ")
            if text.startswith("{"):
                json.loads(text)
                events += 1
    return _counted(events, deltas, time.thread_time() - started)


async def _frames(client: httpx.AsyncClient, url: str, deltas: int) -> float:
    started = time.thread_time()
    events = 0
    rest = b""
    async with client.stream("POST", url, content=b"{}") as response:
        async for chunk in response.aiter_bytes():
            rest += chunk
            start = 0
            while len(rest) - start > PRELUDE_BYTES:
                size, headers = struct.unpack_from(">II", rest, start)
                if len(rest) - start < size:
                    break
                json.loads(rest[start + PRELUDE_BYTES + 4 + headers : start + size - 4])
                events += 1
                start += size
            rest = rest[start:]
    return _counted(events, deltas, time.thread_time() - started)


def _counted(events: int, deltas: int, spent: float) -> float:
    if events < deltas:
        message = f"the bare reader saw {events} of {deltas} events"
        raise MeasurementFailedError(message)
    return spent


@asynccontextmanager
async def _bare() -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@asynccontextmanager
async def _adapter(api: WireApi, url: str) -> AsyncGenerator[Model]:
    pool = HttpPool(clock=SystemClock())
    facts = ModelInfo(
        provider="lab",
        id="m",
        api=api,
        name="M",
        context_window=200_000,
        max_tokens=8_192,
        base_url=url,
        compat={"project": "p"},
    )
    openers = {
        "openai-completions": OpenAICompletions,
        "mistral-conversations": MistralConversations,
        "openai-responses": OpenAIResponses,
        "azure-openai-responses": AzureOpenAIResponses,
        "anthropic-messages": AnthropicMessages,
        "google-generative-ai": GoogleGenerativeAI,
        "google-vertex": GoogleVertex,
        "bedrock-converse-stream": BedrockConverse,
        "ollama-chat": OllamaChat,
    }
    try:
        yield openers[api](facts, access=_Open(), pool=pool)
    finally:
        await pool.aclose()


@contextmanager
def _served(body: bytes, content_type: str) -> Generator[str]:
    """Answer every request with the same bytes, from a thread whose time nobody counts."""

    class Answering(socketserver.StreamRequestHandler):
        @override
        def handle(self) -> None:
            while self._asked():
                head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n"
                self.wfile.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
                for start in range(0, len(body), SEND_BYTES):
                    piece = body[start : start + SEND_BYTES]
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

        def _asked(self) -> bool:
            length = 0
            while line := self.rfile.readline():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                if line == b"\r\n":
                    self.rfile.read(length)
                    return True
            return False

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


BENCHMARK = Benchmark(name="providers", title="A long answer, adapter by adapter", run=measure)
