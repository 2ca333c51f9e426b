"""Sessions with extensions for tests: a scripted model, and real files of extensions in folders of the test."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio

from agent_core.assembly.config import load_workspace_config
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.request import SessionRequest
from agent_core.events import Event, ExtensionError, QuestionRequested
from agent_core.extensions.host import ExtensionHost
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import Tool
from tests.support.harness.isolation import TillerDirs
from tests.support.session.scripted_model import ScriptedModel
from tests.support.session.sessions import WAIT_S, Bench, bench
from tests.support.workspace.tools import echo

GO_ON = "from agent_core.hooks import GoOn, ToolBlocked, ToolCalled\n"


class Home:
    """The folders in which extensions of a test lie."""

    def __init__(self, dirs: TillerDirs, root: Path) -> None:
        self.dirs = dirs
        self.root = root
        self.env = {"PATH": "/usr/bin:/bin", **dirs.variables()}

    @property
    def user(self) -> Path:
        return self.dirs.config / "extensions"

    @property
    def project(self) -> Path:
        return self.root / ".tiller" / "extensions"

    def write(self, name: str, source: str, *, into: Path | None = None) -> Path:
        """Write a file of an extension; gives its path."""
        path = (into or self.user) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")
        return path


@dataclass(kw_only=True)
class Extended:
    """A session with extensions."""

    bench: Bench
    extending: SessionExtensions
    problems: tuple[str, ...]

    @property
    def host(self) -> ExtensionHost:
        return self.extending.host

    @property
    def names(self) -> list[str]:
        return [one.found.name for one in self.host.extensions]

    def errors(self) -> list[tuple[str, str, str]]:
        """Give what failed so far: extension, event, error."""
        return [
            (one.extension, one.event, one.error)
            for one in self.bench.seen()
            if isinstance(one, ExtensionError)
        ]

    async def say(self, words: str) -> list[Event]:
        """Say something and wait for the end."""
        await self.bench.session.prompt(words)
        return await self.bench.idle()

    async def command(self, words: str, until: Callable[[], bool]) -> None:
        """Call a command and wait until something holds."""
        receipt = await self.bench.session.prompt(words)
        assert receipt.accepted == "handled"
        await self.holds(until)

    async def holds(self, until: Callable[[], bool]) -> None:
        """Wait until something holds."""
        with anyio.fail_after(WAIT_S):
            while not until():  # noqa: ASYNC110 - what is waited for may be anything
                await anyio.sleep(0.005)

    async def answer(self, value: object, count: int = 1) -> str:
        """Answer the count-th question; gives its text."""
        event = await self.bench.until(QuestionRequested, count)
        assert isinstance(event, QuestionRequested)
        line = event.request.questions[0]
        given = None if value is None else {line.id: value}
        self.bench.session.questions.answer(event.request.request, given)
        return line.text


@asynccontextmanager
async def extended(
    home: Home,
    model: ScriptedModel | None = None,
    *,
    named: Sequence[Path] = (),
    given: Sequence[Callable[..., object]] = (),
    settings: Mapping[str, Any] | None = None,
    trusted: bool | None = True,
    **options: Any,
) -> AsyncGenerator[Extended]:
    """Open a session with the extensions that are there."""
    request = SessionRequest(
        workspace=home.root,
        env=home.env,
        settings={"request": dict(settings)} if settings else {},
        trusted=trusted,
        extensions=named,
        own_extensions=given,
    )
    ground = await load_workspace_config(request)
    wanted: PermissionState = options.pop("standing", None) or PermissionState(mode="yolo")
    standing = ground.permission_state
    standing.mode, standing.fallback = wanted.mode, wanted.fallback
    extending = SessionExtensions(request, ground, ground.settings.values)
    await extending.load()
    tools: Sequence[Tool] = options.pop("tools", ()) or (echo(),)
    names = dict.fromkeys(tool.spec.name for tool in (*tools, *extending.tools))
    async with bench(
        model or ScriptedModel(),
        tools=tools,
        active_tools=tuple(names),
        hooks=request.hooks,
        extensions=extending,
        root=home.root,
        trust=ground.trust,
        standing=standing,
        **options,
    ) as it:
        yield Extended(bench=it, extending=extending, problems=extending.notices)
