"""An external agent in the place of the model of a session."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from os import defpath
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from agent_core.acp.adapters.stdio import connected
from agent_core.acp.model import AgentOrder, ExternalAgent
from agent_core.acp.peer import AgentPeer
from agent_core.acp.port import AgentLaunch
from agent_core.acp.task import ExternalTask
from agent_core.acp.terminals import AgentTerminals
from agent_core.assembly.mcp import VERSION, from_outside
from agent_core.assembly.session_parts import SessionDeps
from agent_core.kernel.errors import ModelUnknown
from agent_core.providers import Model, ModelInfo
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.catalog.catalogue import ModelScope, Named
from agent_core.session.model_selection import Servers
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.processes.interactive import InteractiveProcess
from agent_core.workspace.sandbox import Sandbox, Uncontained

PASSED: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("TERM", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC"),
)
"""Variables that every program gets."""


@asynccontextmanager
async def with_external_agent(
    task: ExternalTask, deps: SessionDeps, sandbox: Sandbox, *, instructions: str
) -> AsyncGenerator[SessionDeps]:
    """Return the parts of a session whose model is an external agent; leaving the context ends it with all that it started."""
    launch, workspace = task.launch, deps.workspace.workspace
    starts = _Starter(sandbox=sandbox, env=workspace.env, roots=lambda: tuple(workspace.roots))
    deps.redactor.hold_environment(launch.env)
    order = AgentOrder(
        launch=launch,
        cwd=workspace.root,
        tools=task.tool_names,
        instructions=instructions,
        on_activity=task.on_activity,
        changes=task.changes,
    )
    async with connected(starts.start, redact=deps.redactor.text) as link:
        peer = AgentPeer(launch, link, version=VERSION)
        terminals = AgentTerminals(link.begin, redact=deps.redactor.text)
        agent = ExternalAgent(order, peer, terminals, clock=deps.clock)
        task.agent = agent
        # What it asks for is answered, also when the user speaks: it hears of that with its next prompt.
        deps.options.skip_on_steer, deps.options.steer_grace_s = False, None
        deps.options.max_turns = None
        try:
            yield replace(
                deps,
                source=OnlyModel(agent),
                model=agent,
                thinking="off",
                asked_for=frozenset({"model"}),
                look_again=lambda: None,
            )
        finally:
            with anyio.CancelScope(shield=True):
                await agent.stop()


class _Starter(Struct, kw_only=True, frozen=True):
    """Starts external agents."""

    sandbox: Sandbox
    env: Mapping[str, str]
    roots: Callable[[], tuple[Path, ...]]

    async def start(self, launch: AgentLaunch, cwd: Path) -> InteractiveProcess:
        """Start one, contained like commands unless the user's settings say otherwise."""
        env = {name: value for name in PASSED if (value := self.env.get(name)) is not None}
        argv, sandbox = launch.argv, self.sandbox
        if not launch.contained or sandbox.containing.level == "none":
            sandbox = sandbox if launch.contained else Uncontained()
            path = env.get("PATH", defpath)
            argv, env["PATH"] = await to_thread.run_sync(from_outside, argv, path, self.roots())
        processes = DiskProcesses(sandbox=sandbox, ahead="none")
        return await processes.talk(argv, cwd=cwd, env=env, given=launch.env, needs=launch.needs)


class OnlyModel:
    """The source of the model of a session that has no other."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def resolve(self, ref: str) -> Named:
        """Find the model by its full name."""
        if ref != self._model.facts.ref:
            message = f"an external agent works here, which has no model {ref!r}"
            raise ModelUnknown(message)
        return Named(model=self._model.facts)

    def scope(self, patterns: Sequence[str]) -> ModelScope:
        """Return the one model."""
        del patterns
        return ModelScope(models=(Named(model=self._model.facts),))

    def models(self) -> tuple[ModelInfo, ...]:
        """List the one model."""
        return (self._model.facts,)

    def states(self) -> Mapping[str, ProviderState]:
        """Return nothing: there are no providers."""
        return {}

    def available(self) -> tuple[ModelInfo, ...]:
        """List the one model."""
        return (self._model.facts,)

    async def refresh(self, *, servers: Servers = "keep") -> bool:
        """Do nothing: the model stays."""
        del servers
        return False

    def open(self, facts: ModelInfo) -> Model:
        """Return the model."""
        del facts
        return self._model
