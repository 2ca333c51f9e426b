"""A place where sessions in files live, end well, are killed, and come back; for tests that are not async themselves."""

import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_core.events import CompactionEnded
from agent_core.kernel import SessionId
from agent_core.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Message,
    UserMessage,
)
from agent_core.providers import ModelRequest
from agent_core.session import AgentSession
from agent_core.session.context import SessionOptions
from agent_core.storage import OpenedSession
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    MessageEntry,
)
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import Gate, ScriptedModel, Turn, say
from tests.support.session.session_files import Json, read_entries
from tests.support.session.sessions import Bench, bench, words
from tests.support.session.tree_model import Told
from tests.support.workspace.fast_folder import fast_folder

LIMIT_S = 10.0
MANUAL = SessionOptions(auto_compact=False)

T = TypeVar("T")


class Life:
    """A session from one opening to its end, with a model that always has something to say."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.gate: Gate | None = None
        """Holds the next answer."""
        self.model = ScriptedModel([self._turn])

    @property
    def asked(self) -> int:
        """How often the model was asked."""
        return len(self.model.requests)

    def answer(self, number: int) -> str:
        """Say what the answer to the so-and-so-many-th request is."""
        return f"answer {self.number}.{number}"

    def _turn(self, request: ModelRequest) -> Turn:
        self.model.add(self._turn)
        gate, self.gate = self.gate, None
        said = say(self.answer(self.asked))
        return said if gate is None else (gate, *said)


class SessionWorld:
    """Holds one open session at a time, on a loop of its own."""

    def __init__(self) -> None:
        self._things = ExitStack()
        self._portal: BlockingPortal = self._things.enter_context(start_blocking_portal("asyncio"))
        self._base: Path = self._things.enter_context(fast_folder())
        self._folder = self._base / "0"
        self._open = ExitStack()
        self._lives = 0
        self._clock = FakeClock()
        self._bench: Bench | None = None
        self._written: dict[Path, bytes] = {}
        self.life = Life(0)

    @property
    def bench(self) -> Bench:
        assert self._bench is not None
        return self._bench

    @property
    def session(self) -> AgentSession:
        return self.bench.session

    def close(self) -> None:
        """End everything."""
        self._open.close()
        self._things.close()

    def run(self, work: Callable[..., Awaitable[T]], *arguments: object, **more: object) -> T:
        """Do something on the sessions' loop, within a bound."""

        async def bounded() -> T:
            with anyio.fail_after(LIMIT_S):
                return await work(*arguments, **more)

        return self._portal.call(bounded)

    def enter(self, session: SessionId | None) -> bool:
        """End the session that is open and open another; False: it is not kept, and a new one began."""
        self._open.close()
        self._open = ExitStack()
        self._lives += 1
        self._clock.advance(1)
        self.life = Life(self._lives)
        store = JsonlStore(self._folder / "sessions", self._clock)
        opened = self.run(_found, store, session)
        given: dict[str, Any] = {"clock": self._clock, "options": MANUAL}
        begun = bench(self.life.model, store=store, opened=opened, **given)
        self._bench = self._open.enter_context(self._portal.wrap_async_context_manager(begun))
        return opened is not None

    def die(self) -> bool:
        """Go on with the files as they are at this moment, as after a kill; False as with `enter`."""
        session, left = self.session.id, self._base / str(self._lives)
        sessions = self._folder / "sessions"
        if sessions.exists():
            # The lock would name this very process, which lives on.
            shutil.copytree(sessions, left / "sessions", ignore=shutil.ignore_patterns("*.lock"))
        self._open.close()
        self._written = {
            left / path.relative_to(self._folder): content
            for path, content in self._written.items()
        }
        self._folder = left
        return self.enter(session)

    async def prompted(self, text: str) -> None:
        """Say something and wait for the end."""
        await self.session.prompt(text)
        await self._ended()

    async def begun(self, text: str, steered: Sequence[str]) -> Gate:
        """Say something, and more while its answer is held back."""
        self.life.gate = gate = Gate()
        await self.session.prompt(text)
        await gate.reached.wait()
        for more in steered:
            await self.session.steer(more)
        return gate

    async def talked_over(self, text: str, steered: Sequence[str], followed: Sequence[str]) -> None:
        """Say something, more inside the run and after it, and wait for the end."""
        gate = await self.begun(text, steered)
        for more in followed:
            await self.session.follow_up(more)
        gate.release()
        await self._ended()

    async def compacted(self, keep: int) -> str | None:
        """Compact; gives the summary, None when there is nothing to summarise."""
        before = len(self.bench.seen())
        receipt = await self.session.compact(keep_recent_tokens=keep)
        if receipt.compaction is None:
            return None
        await self.session.wait_idle()
        (ended,) = [one for one in self.bench.seen()[before:] if isinstance(one, CompactionEnded)]
        assert ended.error is None
        return ended.summary

    def branch(self) -> list[Told]:
        """Give what the present branch says; bodies that are in the file alone are read there."""
        lines = self._lines()
        told = [
            _told(entry) or _line_told(lines.get(entry.id)) for entry in self.session.info.entries
        ]
        return [one for one in told if one is not None]

    def context(self) -> list[Told]:
        """Give what the model is shown."""
        return [_seen(message) for message in self.bench.messages]

    def waiting(self) -> list[str]:
        """Give the words that wait."""
        queue = self.session.info.snapshot().queue
        return [getattr(part, "text", "") for one in queue for part in one.content]

    def check_files(self) -> None:
        """Hold every session file against what was in it before, and its entries against each other."""
        for path in self._folder.glob("sessions/*/*.jsonl"):
            content = path.read_bytes()
            assert content.startswith(self._written.get(path, b""))
            self._written[path] = content
            _, *entries = read_entries(path)
            ids = [entry["id"] for entry in entries]
            assert len(set(ids)) == len(ids)
            assert {entry["parentId"] for entry in entries} <= {None, *ids}

    async def _ended(self) -> None:
        result = await self.session.wait_idle()
        assert result is not None
        assert result.status == "completed", result.error

    def _lines(self) -> dict[str, Json]:
        location = self.session.info.location
        if location is None or not Path(location).exists():
            return {}
        return {line["id"]: line for line in read_entries(Path(location))}


async def _found(store: JsonlStore, session: SessionId | None) -> OpenedSession | None:
    """Open a session; one in which nothing was ever said has no file."""
    if session is None or not any(one.session == session for one in await store.list()):
        return None
    return await store.open(session)


def _told(entry: AnyEntry) -> Told | None:
    match entry:
        case MessageEntry(message=UserMessage() as message):
            return "user", words(message)
        case MessageEntry(message=AssistantMessage() as message):
            return "assistant", words(message)
        case CompactionEntry():
            return "compaction", entry.summary
        case BranchSummaryEntry():
            return "branch_summary", entry.summary
        case _:
            return None


def _line_told(line: Json | None) -> Told | None:
    match line:
        case {"type": "message", "message": {"role": role, "content": content}}:
            return role, "".join(part["text"] for part in content)
        case {"type": "compaction" | "branch_summary" as kind, "summary": summary}:
            return kind, summary
        case _:
            return None


def _seen(message: Message) -> Told:
    match message:
        case CompactionSummaryMessage():
            return "compaction", message.summary
        case BranchSummaryMessage():
            return "branch_summary", message.summary
        case UserMessage():
            return "user", words(message)
        case _:
            return "assistant", words(message)
