"""A workspace on disk with the built-in tools, driven through the runner as the loop drives them."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.hooks import HookRunner, HookTable
from agent_core.kernel import JsonObject, JsonValue, SystemClock, ToolCallId
from agent_core.messages import Text, ToolCall
from agent_core.tools import Tool, ToolContext
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.port import ProgramVersions, ReadCache
from agent_core.tools.runner import ToolOutcome, ToolRunner
from agent_core.workspace import PermissionPolicy, Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.permissions.call_permission import SecretAccess
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.workspace.contained import contained
from tests.support.workspace.tools import AllowsAll

NOBODY = 65534
WITH_AND_WITHOUT = pytest.mark.parametrize("bench", ["open", "contained"], indirect=True)
"""Runs the tests of a module also with contained commands."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """Tools at work in a folder."""

    root: Path
    workspace: Workspace
    tools: dict[str, Tool]
    options: dict[str, JsonValue] = field(default_factory=dict)
    hooks: HookTable = field(default_factory=HookTable)
    policy: PermissionPolicy = field(default_factory=AllowsAll)
    shown: list[str] = field(default_factory=list)
    """Live output."""
    begun: list[JsonObject] = field(default_factory=list)
    """The arguments of the calls that ran."""

    seen: ReadCache = field(default_factory=ReadCache)
    secrets: SecretAccess = field(default_factory=SecretAccess)
    versions: ProgramVersions = field(default_factory=ProgramVersions)

    @property
    def scratch(self) -> Path:
        return self.root.parent / "outputs"

    def runner(self) -> ToolRunner:
        return ToolRunner(
            tools=lambda: self.tools,
            hooks=HookRunner(self.hooks, report=lambda failure: None),
            policy=self.policy,
            clock=SystemClock(),
            context=self.context,
        )

    def context(self, call: ToolCall, output: Callable[[str], None]) -> ToolContext:
        return ToolContext(
            call=call.id,
            workspace=self.workspace,
            clock=SystemClock(),
            output=output,
            scratch=str(self.scratch),
            options=self.options,
            seen=self.seen,
            secrets=self.secrets,
            versions=self.versions,
        )

    async def call(self, name: str, arguments: JsonObject, error: str | None = None) -> ToolOutcome:
        call = ToolCall(
            id=ToolCallId("call-1"), name=name, arguments=arguments, arguments_error=error
        )
        return await self.runner().run(
            call, running=lambda given, _: self.begun.append(given), output=self.shown.append
        )

    async def run(self, name: str, **arguments: JsonValue) -> ToolOutcome:
        return await self.call(name, arguments)

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def words(outcome: ToolOutcome) -> str:
    """Give what the model reads."""
    return "".join(part.text for part in outcome.result.content if isinstance(part, Text))


def details(outcome: ToolOutcome) -> Mapping[str, Any]:
    """Give what front ends read."""
    assert isinstance(outcome.result.details, Mapping)
    return outcome.result.details


def make_bench(root: Path, *, home: Path, env: Mapping[str, str]) -> Bench:
    """Make a bench in a folder that is there."""
    files = DiskFiles((root,), home)
    workspace = Workspace(roots=(root,), files=files, processes=DiskProcesses(), env=env)
    return Bench(
        root=root, workspace=workspace, tools={tool.spec.name: tool for tool in builtin_tools()}
    )


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, child_env: dict[str, str]
) -> Iterator[Bench]:
    """Make a bench; with `WITH_AND_WITHOUT` each test has one whose commands are contained as well."""
    root = Path(os.path.realpath(tmp_path)) / "ws"
    root.mkdir()
    made = make_bench(root, home=root.parent / "home", env=child_env)
    if getattr(request, "param", "open") == "open":
        yield made
        return
    with contained(root, env=child_env, readable=(made.scratch, Path(sys.prefix))) as sandbox:
        processes = DiskProcesses(sandbox=sandbox)
        yield replace(made, workspace=replace(made.workspace, processes=processes))


@pytest.fixture
def home_bench(tmp_path: Path, child_env: dict[str, str]) -> Bench:
    """A workspace that is somebody's home folder."""
    root = Path(os.path.realpath(tmp_path)) / "home"
    root.mkdir()
    return make_bench(root, home=root, env=child_env)


@pytest.fixture
def plain_bench(child_env: dict[str, str]) -> Iterator[Bench]:
    """The same for a user without special rights, whom the system refuses things."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="tl-nobody-")))
    special = os.geteuid() == 0
    if special:
        os.chown(root, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        yield make_bench(root, home=root, env=child_env)
    finally:
        if special:
            os.seteuid(0)
            os.setegid(0)
        shutil.rmtree(root, ignore_errors=True)


def makes_a_file(flags: int) -> bool:
    """Return whether these flags of `os.open` make a file, be it one without a name."""
    unnamed: int = getattr(os, "O_TMPFILE", os.O_CREAT)
    return bool(flags & os.O_CREAT) or flags & unnamed == unnamed
