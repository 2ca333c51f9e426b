"""Replay of a recorded editor session against a fresh server, with a comparison of the answers."""

import asyncio
import re
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

import msgspec
from msgspec import Struct

from agent_core.kernel import JsonValue
from agent_core.kernel.json import decode, encode
from tiller_server.cli.trace.file import TraceMessage
from tiller_server.lsp.transport.framing import FrameError, FrameReader, frame

PATIENCE_S: Final = 20.0
"""How long an answer may take that the recording has."""
LEAVE_S: Final = 5.0
READ_BYTES: Final = 64 * 1024
COSTLY: Final = frozenset(
    {
        "agent/prompt", "agent/steer", "agent/followUp", "agent/run/retry", "agent/compact", "agent/bash",
        "agent/queue/update", "agent/session/delete", "workspace/executeCommand",
    }
)  # fmt: skip
"""Methods that ask a model, run commands or discard data."""
TraceRequestId = str | int

MOST_DEPTH: Final = 64
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def differences(recorded: JsonValue, now: JsonValue, *, place: str = "") -> Iterator[str]:
    """Return the differences in shape of an answer: members that are new or missing, values of another kind.

    The first element of a list stands for all of them. Values of one kind are not compared.
    """
    if place.count(".") > MOST_DEPTH:
        return
    before, after = _kind(recorded), _kind(now)
    if before != after:
        yield f"{place or 'the answer'}: was {before}, is {after}"
    elif isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in sorted({*recorded, *now}):
            at = f"{place}.{name}" if place else name
            if name not in now:
                yield f"{at}: is missing"
            elif name not in recorded:
                yield f"{at}: is new"
            else:
                yield from differences(recorded[name], now[name], place=at)
    else:
        for one, other in list(zip(_list(recorded), _list(now), strict=False))[:1]:
            yield from differences(one, other, place=f"{place}[0]")


def learn(ids: dict[str, str], recorded: JsonValue, now: JsonValue) -> None:
    """Record which id of the recording corresponds to which id now: both are at the same place."""
    if isinstance(recorded, str) and isinstance(now, str):
        if _ID.fullmatch(recorded) and _ID.fullmatch(now):
            _ = ids.setdefault(recorded, now)
    elif isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in recorded.keys() & now.keys():
            learn(ids, recorded[name], now[name])
    else:
        for one, other in zip(_list(recorded), _list(now), strict=False):
            learn(ids, one, other)


def translated(value: JsonValue, ids: Mapping[str, str]) -> JsonValue:
    """Return a value with the ids of now in the place of those of the recording."""
    if isinstance(value, str):
        return _ID.sub(lambda found: ids.get(found[0], found[0]), value)
    if isinstance(value, Mapping):
        return {name: translated(one, ids) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [translated(one, ids) for one in value]
    return value


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "a list"


class ReplayResult(Struct, kw_only=True):
    """Result of a replay."""

    compared: int = 0
    left_out: int = 0
    differences: list[str] = msgspec.field(default_factory=list)


async def replay(
    trace: tuple[TraceMessage, ...],
    server: tuple[str, ...],
    *,
    env: Mapping[str, str],
    prompts: Literal["sent", "leftOut"],
    pace: Literal["fast", "real"],
) -> ReplayResult:
    """Replay a trace. The server keeps its sessions in a folder of its own, which is gone afterwards.

    Raises:
        OSError: The server cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="tiller-trace-") as folder:
        child = await asyncio.create_subprocess_exec(
            *server,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**env, "TILLER_DATA_DIR": f"{folder}/data", "TILLER_RUNTIME_DIR": f"{folder}/run"},
        )
        line = _Line(child)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(line.read())
            try:
                return await _Replay(trace, line, prompts=prompts, pace=pace).run()
            finally:
                await line.leave()
                _ = reading.cancel()


class _Line:
    """The connection to the server under replay."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self._child = child
        self._news = asyncio.Condition()
        self._over = False
        self.answers: dict[TraceRequestId, Mapping[str, JsonValue]] = {}
        self.requests: defaultdict[str, deque[Mapping[str, JsonValue]]] = defaultdict(deque)
        """Requests of the server that wait, by method."""

    async def send(self, message: JsonValue) -> None:
        assert self._child.stdin is not None  # noqa: S101 - a pipe
        with suppress(ConnectionError):
            self._child.stdin.write(frame(encode(message)))
            await self._child.stdin.drain()

    async def answer_to(self, request: TraceRequestId) -> Mapping[str, JsonValue] | None:
        """Wait for an answer; None when none comes."""
        await self._until(lambda: request in self.answers)
        return self.answers.get(request)

    async def asks(self, method: str, *, times: int) -> None:
        """Wait until so many requests of a method wait for an answer, or none comes any more."""
        await self._until(lambda: len(self.requests[method]) >= times)

    async def request_of(self, method: str) -> Mapping[str, JsonValue] | None:
        """Wait for a request of the server; None when none comes."""
        await self._until(lambda: bool(self.requests[method]))
        waiting = self.requests[method]
        return waiting.popleft() if waiting else None

    async def _until(self, condition: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S), self._news:
                _ = await self._news.wait_for(lambda: condition() or self._over)

    async def read(self) -> None:
        """Read the server's messages until its output ends."""
        frames = FrameReader()
        assert self._child.stdout is not None  # noqa: S101 - a pipe
        with suppress(FrameError, ConnectionError):
            while data := await self._child.stdout.read(READ_BYTES):
                frames.feed(data)
                while (body := frames.take()) is not None:
                    await self._take(decode(bytes(body).decode()))
        async with self._news:
            self._over = True
            self._news.notify_all()

    async def _take(self, message: JsonValue) -> None:
        if not isinstance(message, Mapping):
            return
        key, method = message.get("id"), message.get("method")
        async with self._news:
            if isinstance(method, str) and key is not None:
                self.requests[method].append(message)
            elif isinstance(key, str | int):
                self.answers[key] = message
            self._news.notify_all()

    async def leave(self) -> None:
        """End the server as an editor that closes does."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        try:
            async with asyncio.timeout(LEAVE_S):
                _ = await self._child.wait()
        except TimeoutError:
            self._child.kill()
            _ = await self._child.wait()


class _Replay:
    """Replay of a trace in its order: sends the client's messages, and waits for those that the client had received."""

    def __init__(
        self,
        trace: tuple[TraceMessage, ...],
        line: _Line,
        *,
        prompts: Literal["sent", "leftOut"],
        pace: Literal["fast", "real"],
    ) -> None:
        self._trace = trace
        self._line = line
        self._prompts = prompts
        self._pace = pace
        self._ids: dict[str, str] = {}
        self._sent: dict[TraceRequestId, str] = {}
        """Requests that were sent and not answered yet, with their methods."""
        self._asked: dict[TraceRequestId, str] = {}
        """Requests of the recorded server, with their methods."""
        self._result = ReplayResult()

    async def run(self) -> ReplayResult:
        began_s = asyncio.get_running_loop().time()
        for said in self._trace:
            if self._pace == "real":
                due_s = began_s + said.at_ms / 1000
                await asyncio.sleep(max(0.0, due_s - asyncio.get_running_loop().time()))
            if said.side == "client":
                await self._send_client_message(said)
            else:
                await self._hear(said)
        return self._result

    async def _send_client_message(self, said: TraceMessage) -> None:
        method, key = said.method, said.id
        if method is None:
            await self._answer(said)
            return
        if method in COSTLY and self._prompts == "leftOut":
            self._result.left_out += 1
            return
        if key is not None:
            self._sent[key] = method
        await self._line.send(translated(said.message, self._ids))

    async def _answer(self, said: TraceMessage) -> None:
        """Send the recorded client's answer to the same request of the server."""
        method = self._asked.pop(said.id, None) if said.id is not None else None
        if method is None or (self._result.left_out and method.startswith("agent/")):
            return
        request = await self._line.request_of(method)
        if request is None:
            self._result.differences.append(f"{method}: the server did not ask this time")
            return
        answer = translated(said.message, self._ids)
        await self._line.send(
            {**answer, "id": request["id"]} if isinstance(answer, Mapping) else answer
        )

    async def _line_asks(self, method: str) -> None:
        """Wait for a request that the recorded client had received: its next message may depend on that request."""
        if self._pace == "fast" and not self._result.left_out:
            waiting = sum(one == method for one in self._asked.values())
            await self._line.asks(method, times=waiting)

    async def _hear(self, said: TraceMessage) -> None:
        key = said.id
        if said.method is not None:
            if key is not None:
                self._asked[key] = said.method
                await self._line_asks(said.method)
            return
        method = self._sent.pop(key, None) if key is not None else None
        if key is None or method is None:
            return
        answer = await self._line.answer_to(key)
        self._result.compared += 1
        if answer is None:
            self._result.differences.append(f"{method} (id {key}): no answer this time")
            return
        for part in ("result", "error"):
            if part in said.message and part in answer:
                learn(self._ids, said.message[part], answer[part])
        ours = {name: answer[name] for name in ("result", "error") if name in answer}
        theirs = {name: said.message[name] for name in ("result", "error") if name in said.message}
        self._result.differences += [
            f"{method} (id {key}): {one}" for one in differences(theirs, ours)
        ]
