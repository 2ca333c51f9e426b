"""Sessions for tests: built from real parts, with a scripted model and a store in memory."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from agent_core.assembly.builder import build_session
from agent_core.assembly.session_parts import SessionDeps
from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.events import Budgets, Event, EventEnvelope, EventSubscription
from agent_core.events.codec import NAMES
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, SessionId
from agent_core.kernel.errors import FileMissing, ModelUnknown
from agent_core.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from agent_core.providers import Model, ModelInfo
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.catalog.catalogue import ModelScope, Named, without_level
from agent_core.session import AgentSession
from agent_core.session.context import SessionOptions, WorkspaceContext
from agent_core.session.history.branches import fork_writer_for
from agent_core.session.history.entries import INTERRUPTION
from agent_core.session.model_selection import Servers
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.runs.usage import BudgetPolicy
from agent_core.storage import OpenedSession, Recovery, SessionStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools import Tool, ToolSpec
from agent_core.transcript.entries import Header
from agent_core.workspace import NO_NEEDS, Process, Workspace
from agent_core.workspace.permissions.call_permission import Needs, PolicyMode
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import ScriptedModel
from tests.support.workspace.memory_files import MemoryFiles
from tests.support.workspace.tools import echo

WAIT_S = 10.0


class OneModel:
    """A source with the given models only; all are cycled through when nothing is scoped."""

    def __init__(self, *models: Model) -> None:
        self._models = {model.facts.ref: model for model in models}

    def resolve(self, ref: str) -> Named:
        bare, level = without_level(ref)
        if bare not in self._models:
            raise ModelUnknown(f"no model {bare!r}; there are {', '.join(self._models)}")
        return Named(model=self._models[bare].facts, thinking=level)

    def scope(self, patterns: Sequence[str]) -> ModelScope:
        return ModelScope(models=tuple(self.resolve(ref) for ref in patterns or self._models))

    def available(self) -> tuple[ModelInfo, ...]:
        return tuple(model.facts for model in self._models.values())

    def models(self) -> tuple[ModelInfo, ...]:
        return self.available()

    def states(self) -> Mapping[str, ProviderState]:
        return {}

    async def refresh(self, *, servers: Servers = "keep") -> bool:
        """Nothing opens these models, and no server has others."""
        _ = servers
        return False

    def open(self, facts: ModelInfo) -> Model:
        return self._models[facts.ref]


class NoProcesses:
    """Starts nothing: sessions under test run tools of their own."""

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        raise FileMissing(f"there is no program {argv[0]!r} here")

    async def before_start(self) -> str | None:
        return None


async def _system_prompt(specs: Sequence[ToolSpec]) -> str:
    return "You are tested. Tools: " + ", ".join(spec.name for spec in specs)


@dataclass(kw_only=True)
class Bench:
    """A session under test, with everything that a test looks at."""

    session: AgentSession
    model: ScriptedModel
    reader: EventSubscription
    clock: Clock
    deps: SessionDeps
    events: list[EventEnvelope] = field(default_factory=list)

    async def idle(self) -> list[Event]:
        """Wait until nothing goes on; gives all events so far."""
        with anyio.fail_after(WAIT_S):
            await self.session.wait_idle()
        return self.seen()

    def seen(self) -> list[Event]:
        """Give all events so far."""
        self.events.extend(self.reader.take_now())
        return [stamped.event for stamped in self.events]

    async def until(self, kind: type[Event], count: int = 1) -> Event:
        """Wait for the count-th event of a kind."""
        with anyio.fail_after(WAIT_S):
            while True:
                found = [event for event in self.seen() if isinstance(event, kind)]
                if len(found) >= count:
                    return found[count - 1]
                await self.reader.wait()

    def names(self) -> list[str]:
        """Give the wire names of all events so far."""
        return [NAMES[type(event)] for event in self.seen()]

    @property
    def slept(self) -> list[float]:
        """Give how long the session waited, each time; only on the clock that tests move."""
        assert isinstance(self.clock, FakeClock)
        return self.clock.slept

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.session.info.messages

    def results(self) -> list[str]:
        """Give the texts of all tool results in the conversation."""
        return [text_of(one.content) for one in self.messages if isinstance(one, ToolResultMessage)]


def unmarked(messages: Sequence[Message]) -> list[Message]:
    """Give the messages without what tells the model that it was interrupted."""
    return [
        one
        for one in messages
        if not (isinstance(one, CustomMessage) and one.custom_type == INTERRUPTION)
    ]


def words(message: Message) -> str:
    """Give what a message says."""
    match message:
        case (
            UserMessage(content=content)
            | ToolResultMessage(content=content)
            | CustomMessage(content=content)
        ):
            return text_of(content)
        case AssistantMessage():
            return message.text
        case _:
            raise AssertionError(f"{message!r} has no plain words")


@asynccontextmanager
async def bench(
    model: ScriptedModel,
    *,
    tools: Sequence[Tool] = (),
    hooks: HookTable | None = None,
    options: SessionOptions | None = None,
    store: SessionStore | None = None,
    opened: OpenedSession | None = None,
    clock: Clock | None = None,
    mode: PolicyMode = "yolo",
    standing: PermissionState | None = None,
    budgets: Budgets | None = None,
    env: Mapping[str, str] | None = None,
    root: Path = Path("/project"),
    files: dict[str, str] | None = None,
    usable: bool = True,
    **more: object,
) -> AsyncGenerator[Bench, None]:
    """Open a session for a test."""
    clock = clock or FakeClock()
    tools = tools or (echo("unused"),)
    store = store or MemoryStore()
    if opened is None:
        header = Header(id=SessionId("s-1"), at_ms=clock.now_ms(), cwd=str(root))
        opened = OpenedSession(log=await store.create(header), entries=(), recovery=Recovery())
    workspace = Workspace(
        roots=(root,),
        files=MemoryFiles(
            (root,),
            Path("/home/user"),
            files={root / name: text.encode() for name, text in (files or {}).items()},
        ),
        processes=NoProcesses(),
        env=env or {},
    )
    ingredients = SessionDeps(
        clock=clock,
        opened=opened,
        fork_writer=fork_writer_for(store),
        workspace=WorkspaceContext(
            workspace=workspace,
            permissions=standing or PermissionState(mode=mode),
            allowance=BudgetPolicy(ceiling=budgets or Budgets()),
        ),
        contents=MemoryBlobStore(),
        source=OneModel(model),
        model=model if usable else None,
        tools=tools,
        active_tools=[tool.spec.name for tool in tools],
        hooks=hooks or HookTable(),
        system_prompt=_system_prompt,
        options=options or SessionOptions(),
    )
    ingredients = replace(ingredients, **more)
    async with build_session(ingredients) as session:
        reader = session.subscribe()
        yield Bench(session=session, model=model, reader=reader, clock=clock, deps=ingredients)
