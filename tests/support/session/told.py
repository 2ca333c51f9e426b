"""A session that tells what a test lets it tell, with the keeper of its events and clients that drop and come back."""

import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from agent_core.events import (
    Event,
    EventFeed,
    EventSubscription,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    SessionStateChanged,
    ToolEnded,
    ToolOutputDelta,
    ToolStarted,
    UsageReport,
)
from agent_core.events.values import ChangeCounts
from agent_core.kernel import ItemId, RunId, ToolCallId, TurnId, rfc3339
from agent_core.kernel.json import decode
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.messages import Text, Usage
from agent_core.session.snapshot import SnapshotBuilder
from tests.support.harness.clock import FakeClock
from tests.support.lsp.reducer import Json, Reduced
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.events.cache_file import CacheContents, ReplayFile, find
from tiller_server.lsp.events.flow_control import SendWindow
from tiller_server.lsp.events.replay_log import EventLog
from tiller_server.lsp.events.subscription import Subscription
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.framing import FrameReader

SESSION = "s1"


class Sink:
    """Takes what a connection writes, while it reads."""

    def __init__(self) -> None:
        self.frames = FrameReader()
        self.values: list[Json] = []
        self.reads = anyio.Event()
        self.reads.set()
        self.came = anyio.Event()
        self.taken_bytes = 0

    def write(self, data: bytes, /) -> None:
        self.taken_bytes += len(data)
        self.frames.feed(data)
        while (body := self.frames.take()) is not None:
            message: Json = decode(body)  # pyright: ignore[reportAssignmentType] - an object
            self.values.append(message["params"]["value"])
        came, self.came = self.came, anyio.Event()
        came.set()

    async def drain(self) -> None:
        await self.reads.wait()

    def close(self) -> None:
        return None

    async def wait_closed(self) -> None:
        return None


class ToldSession:
    """The part of a session that subscriptions use."""

    def __init__(self, feed: EventFeed) -> None:
        self.id = SESSION
        self.feed = feed
        self.picture = SnapshotBuilder()
        self.state = "idle"

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False
    ) -> EventSubscription:
        return self.feed.subscribe(only=only, partials=partials)

    def say(self, event: Event) -> None:
        stamped = self.feed.publish(event)
        self.picture.apply(event, stamped.at_ms)
        if isinstance(event, SessionStateChanged):
            self.state = event.state

    def snapshot(self, events: EventLog) -> Json:
        """Give as much of the wire's snapshot as the reference client looks at."""
        out: Json = {
            "session": SESSION,
            "epoch": events.epoch,
            "seq": self.feed.seq,
            "state": self.state,
            "queue": [],
            "pending": [],
        }
        run = self.picture.run
        if run is not None:
            items = [serializer.item(view) for view in run.items]
            out["run"] = {"id": run.run, "startedAt": rfc3339(run.started_ms), "items": items}
        return out


@dataclass(kw_only=True)
class Told:
    """A session, the keeper of its events, and its file."""

    session: ToldSession
    events: EventLog
    path: Path | None
    entry: list[str] = field(default_factory=lambda: ["e0"])
    """The newest entry of the session's own file."""
    epochs: list[str] = field(default_factory=lambda: [f"epoch-{n}" for n in range(99, 0, -1)])

    def tell(self, *events: Event) -> None:
        """Let the session tell something; what is no delta was written into its own file before."""
        for event in events:
            if not isinstance(event, MessageDelta | ToolOutputDelta):
                self.entry[0] = f"e{int(self.entry[0][1:]) + 1}"
            self.session.say(event)

    def subscription(
        self,
        connection: LspConnection,
        *,
        detail: str = "full",
        credit: SendWindow | None = None,
        flush_ms: int = 16,
    ) -> Subscription:
        return Subscription(
            connection,
            self,  # pyright: ignore[reportArgumentType] - as much of a session as is used
            token="t",
            detail=detail,
            flush_ms=flush_ms,
            send_window=credit,
            snapshot=lambda: self.session.snapshot(self.events),
        )


def told(
    path: Path | None, *, before: Told | None = None, redactor: Redactor | None = None
) -> Told:
    """Make a session; `before` is the one whose file this one opens."""
    entry = before.entry if before is not None else ["e0"]
    epochs = before.epochs if before is not None else [f"epoch-{n}" for n in range(99, 0, -1)]
    found: CacheContents | None = None
    if before is not None and path is not None:
        found = find(path, SESSION)
        found = found if found is not None and found.mark.entry == entry[0] else None
    feed = EventFeed(FakeClock())
    hides = redactor or Redactor()
    if found is not None and path is not None:
        file, epoch = (
            ReplayFile.going_on(path, session=SESSION, found=found, redactor=hides),
            found.epoch,
        )
        seq = max(found.mark.to, found.newest)
    else:
        epoch, seq = epochs.pop(), 0
        file = (
            None
            if path is None
            else ReplayFile(path, session=SESSION, epoch=epoch, after=0, redactor=hides)
        )
    events = EventLog(
        epoch=epoch,
        seq=seq,
        file=file,
        newest_entry=lambda: entry[0],
        is_stored=lambda: True,
        new_epoch=epochs.pop,
    )
    feed.go_on_from(seq, events.see)
    return Told(session=ToldSession(feed), events=events, path=path, entry=entry, epochs=epochs)


class Client:
    """A client that remembers what it has made of the session, and may leave at any time."""

    def __init__(self, *, detail: str = "full") -> None:
        self.reduced = Reduced()
        self.detail = detail
        self.replays = 0
        self.reasons: list[str] = []
        self.left = anyio.Event()
        """Set when a subscription has ended by itself."""

    @asynccontextmanager
    async def following(
        self, source: Told, *, credit: SendWindow | None = None, flush_ms: int = 16
    ) -> AsyncGenerator[Sink]:
        """Be connected inside the block; what was written until its end was received, nothing else."""
        connection, sink = LspConnection("tiller", "0"), Sink()
        async with anyio.create_task_group() as group:
            group.start_soon(connection.outbox.drain_to, sink)
            group.start_soon(self._follow, source, connection, credit, flush_ms)
            try:
                yield sink
            finally:
                group.cancel_scope.cancel()
        self.take(sink)

    def take(self, sink: Sink) -> None:
        """Take in what has come."""
        values, sink.values = sink.values, []
        if values and values[0]["kind"] == "agent/events" and self.reduced.last is not None:
            self.replays += 1
        for value in values:
            self.reduced.take(value)

    async def reach(self, sink: Sink, seq: int) -> None:
        """Wait until everything up to a number has come."""
        with anyio.fail_after(10):
            while True:
                came = sink.came
                self.take(sink)
                if self.reduced.last is not None and self.reduced.last >= seq:
                    return
                await came.wait()

    async def _follow(
        self, source: Told, connection: LspConnection, credit: SendWindow | None, flush_ms: int
    ) -> None:
        subscription = source.subscription(
            connection, detail=self.detail, credit=credit, flush_ms=flush_ms
        )
        if await subscription.begin(self.reduced.epoch, self.reduced.last):
            self.reasons.append(await subscription.run())
        else:
            self.reasons.append("lagging")
        self.left.set()


@asynccontextmanager
async def keeping(source: Told) -> AsyncGenerator[TaskGroup]:
    """Write the events of a session inside the block; afterwards it has ended well."""
    async with anyio.create_task_group() as group:
        group.start_soon(source.events.run)
        yield group
        await source.events.close()


USAGE = UsageReport(tokens=Usage(), context_used=0, context_size=0)


def chance_of(seed: int) -> random.Random:
    """Give the same luck for the same seed."""
    return random.Random(seed)  # noqa: S311 - what happens must happen again


def course(chance: random.Random, runs: int) -> Iterator[Event]:
    """Make up what a session tells: runs of messages and tool calls that stream side by side."""
    for number in range(runs):
        run, turn = RunId(f"r{number}"), TurnId(f"t{number}")
        yield RunStarted(run=run, message_id=None, model="p/m")
        yield SessionStateChanged(state="running")
        for turns in range(chance.randint(1, 3)):
            yield from _message(chance, run, turn, ItemId(f"m{number}.{turns}"))
            yield from _tools(chance, run, turn, f"c{number}.{turns}")
        yield RunEnded(run=run, status="completed", usage=USAGE, changes=ChangeCounts())
        yield SessionStateChanged(state="idle")


def _message(chance: random.Random, run: RunId, turn: TurnId, item: ItemId) -> Iterator[Event]:
    yield MessageStarted(run=run, turn=turn, item=item, role="assistant", model="p/m")
    texts = [f"w{n} " for n in range(chance.randint(0, 12))]
    for text in texts:
        yield MessageDelta(run=run, turn=turn, item=item, text=text)
    content = (Text(text="".join(texts)),)
    yield MessageEnded(run=run, turn=turn, item=item, role="assistant", content=content)


def _tools(chance: random.Random, run: RunId, turn: TurnId, name: str) -> Iterator[Event]:
    open_ = {ItemId(f"{name}.{n}"): "" for n in range(chance.randint(0, 2))}
    for item in open_:
        yield ToolStarted(
            run=run, turn=turn, item=item, call=ToolCallId(item), name="bash", title="ls"
        )
    while open_:
        item = chance.choice([*open_])
        if chance.random() < 0.8:
            text = f"{item}-{len(open_[item])}\n"
            open_[item] += text
            yield ToolOutputDelta(run=run, turn=turn, item=item, text=text)
            continue
        yield ToolEnded(
            run=run, turn=turn, item=item, call=ToolCallId(item), name="bash", status="ok",
            content=(Text(text=open_.pop(item)),), details=None, duration_ms=1,
        )  # fmt: skip
