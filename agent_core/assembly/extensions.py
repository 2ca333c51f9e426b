"""The extensions of a session: where they are looked for, and how they come to stand in it."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread
from anyio.abc import TaskGroup

from agent_core.assembly.config import WorkspaceConfig, load_workspace_config
from agent_core.assembly.models import ModelSet, load_models
from agent_core.assembly.request import SessionRequest
from agent_core.events import Notice, SessionUsage
from agent_core.extensions.client_offers import ExtensionCommands, ExtensionOffers
from agent_core.extensions.discovery import (
    DiscoveredExtension,
    DiscoveryResult,
    ExtensionSearchPaths,
    discover,
)
from agent_core.extensions.host import ExtensionHost, HostBinding, HostPlan
from agent_core.extensions.ports import LoopThread, Services
from agent_core.extensions.registry import Offers, extension_models
from agent_core.hooks import HookFailure, HookRunner, SessionBegun, SessionEnding
from agent_core.kernel import JsonObject, JsonValue, uuid7
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.providers import Model
from agent_core.providers.http.client import HttpPool
from agent_core.providers.registry import NOTHING, ExtensionModels, ModelRegistry
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import LoadedResources, LoadProblem
from agent_core.resources.paths import home_of, project_folder
from agent_core.resources.settings.layers import load_settings
from agent_core.resources.settings.values import SettingsValues
from agent_core.session import AgentSession
from agent_core.session.context import EventPublisher, WorkspaceContext, report_to
from agent_core.session.input.commands import SlashCommands
from agent_core.session.input.system_prompt import SystemPrompt
from agent_core.session.model_selection import ModelSelection
from agent_core.session.runs.usage import UsageTracker
from agent_core.session.tools.registry import ToolRegistry
from agent_core.tools import Tool

if TYPE_CHECKING:
    from agent_core.extensions.api import ExtensionApi

FOLDER = "extensions"
SOURCES = frozenset({".py", ".toml"})

log = logging.getLogger(__name__)


class SessionExtensions:
    """The extensions of one session, before, while and after it is open."""

    def __init__(
        self, request: SessionRequest, config: WorkspaceConfig, values: SettingsValues
    ) -> None:
        self._request = request
        self._config = config
        self._hooks: HookRunner | None = None
        """None: the session is not open."""
        self._problems: Sequence[LoadProblem] = ()
        self._publish_warning: Callable[[str], object] = log.warning
        self._report: Callable[[HookFailure], None] = _log_failure
        self.model_set: ModelSet | None = None
        """Where the models go; None: nowhere."""
        self._brought = NOTHING
        self._flags: Mapping[str, bool | str] = {}
        """Flag values of the user's own settings."""
        self.host = ExtensionHost(
            HostPlan(
                look=self._look,
                table=request.hooks,
                new_id=lambda: uuid7(request.clock.now_ms()),
                conflicts=values.extension_conflicts,
                flags=lambda name: self._flags.get(name),  # noqa: PLW0108 - asked anew each time
                report=lambda failure: self._report(failure),  # noqa: PLW0108 - another one, once the session is open
            )
        )

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that they bring."""
        return tuple(self.host.offers.tools.values())

    @property
    def models(self) -> ExtensionModels:
        """The models that they bring."""
        return extension_models(self.host.offers.providers.values())[0]

    async def load(self) -> None:
        """Load them before the session is there; `told` is what the user should hear of it."""
        self._problems = self._with_models(await self.host.load()).problems

    @property
    def notices(self) -> tuple[str, ...]:
        """Problems of the first load, one sentence each."""
        return tuple(map(str, self._problems))

    def check_named(self) -> None:
        """Check that those which the request names are loaded: one may be there to forbid something.

        Raises:
            ExtensionBroken: One is not there or was not loaded.
        """
        named = [self._config.root / path.expanduser() for path in self._request.extensions]
        for problem in self._problems:
            if problem.level != "error" or problem.path is None:
                continue
            if any(path in (problem.path, *problem.path.parents) for path in named):
                raise ExtensionBroken(str(problem))

    async def reload(self) -> LoadedResources:
        """Load everything anew, as somebody asked for; the old code hears of its end and the new code of its begin."""
        await self._ask(SessionEnding(reason="reload"))
        loaded = self._with_models(await self.host.reload())
        await self._ask(SessionBegun(reason="reload"))
        return loaded

    async def reload_and_publish(self) -> None:
        """Load everything again without a request of the user, and publish each problem as a warning."""
        for problem in (await self.reload()).problems:
            _ = self._publish_warning(str(problem))

    def bind(self, binding: "ExtensionBinding") -> None:
        """Activate the loaded extensions in an open session."""
        publisher, group = binding.publisher, binding.group
        self._hooks = binding.hooks
        self._publish_warning = lambda text: publisher.publish(Notice(level="warning", text=text))
        self._report = report_to(publisher)
        workspace = binding.workspace
        services = Services(
            session=binding.session,
            workspace=workspace.workspace,
            clock=self._request.clock,
            thread=LoopThread(),
            show=publisher.publish,
            is_attended=lambda: workspace.permissions.fallback == "ask",
            is_trusted=workspace.permissions.is_trusted,
            system_prompt=binding.system_prompt,
            model=binding.model,
            spent=binding.spent,
            start=lambda work: group.start_soon(partial(self._fenced, work)),
            shows=lambda what: self._request.showing.shows(what),  # noqa: PLW0108 - asked anew each time
        )
        binding.commands.sources.append(ExtensionCommands(self.host))
        binding.commands.offers = ExtensionOffers(
            self.host,
            lambda name: self._flags.get(name),  # noqa: PLW0108 - as above
            self._config.settings.values.hooks.timeout_s,
        )
        self.host.bind(HostBinding(services=services, takes=binding, changed=self._changed))
        group.start_soon(self._watch)

    def close(self) -> None:
        """Unload all extensions."""
        self._hooks = None
        self.host.close()

    async def _ask(self, moment: SessionBegun | SessionEnding) -> None:
        if self._hooks is not None:
            _ = await self._hooks.ask(moment)

    def _with_models(self, loaded: LoadedResources) -> LoadedResources:
        _, problems = extension_models(self.host.offers.providers.values())
        return loaded.plus(LoadedResources(problems=problems))

    def _changed(self, offers: Offers) -> None:
        brought, _ = extension_models(offers.providers.values())
        if self.model_set is not None and brought != self._brought:
            self._brought = brought
            self.model_set.registry.set_extension_models(brought)
            self.model_set.hold_secrets(self._request.redactor, self._request.env)

    async def _watch(self) -> None:
        """Load extensions anew when their files change, for as long as there are any."""
        shared = self._request.watches
        watch = (shared or FolderWatches()).watch
        try:
            while folders := self.host.folders:
                async with watch(folders) as news:
                    while self.host.folders == folders:
                        changed = await news.next()
                        if any(path.suffix in SOURCES for path in changed):
                            await self.reload_and_publish()
        except OSError as error:
            _ = self._publish_warning(
                f"extensions are not watched, so changes need a reload: {error}"
            )

    async def _look(self) -> DiscoveryResult:
        request, config = self._request, self._config
        own = [layer for layer in config.layers if layer.name in {"user", "request"}]
        values = (await load_settings(own)).values
        self._flags = values.extension_flags
        places = ExtensionSearchPaths(
            user=config.paths.config / FOLDER,
            project=project_folder(config.root) / FOLDER
            if config.permission_state.is_trusted()
            else None,
            project_expected=config.expected,
            settings=values.extensions,
            named=[config.root / path.expanduser() for path in request.extensions],
            home=home_of(request.env),
            locked=config.paths.config,
        )
        discovered = await to_thread.run_sync(discover, places)
        for number, factory in enumerate(request.own_extensions):
            name = getattr(factory, "__name__", "") or "given"
            found = DiscoveredExtension(
                name=f"{name}-{number}" if number else name, origin="given", entry=factory
            )
            discovered.found.append(found)
        return discovered

    async def _fenced(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
            text = f"{type(error).__name__}: {error}"
            _ = self._report(
                HookFailure(owner="extension", point="task", error=text, exception=error)
            )


class ExtensionBinding(Value, frozen=True, kw_only=True):
    """The open session, as its extensions are bound to it."""

    session: AgentSession
    group: TaskGroup
    publisher: EventPublisher
    hooks: HookRunner
    workspace: WorkspaceContext
    commands: SlashCommands
    toolbox: ToolRegistry
    models: ModelSelection
    usage: UsageTracker
    prompt: SystemPrompt

    def set_extension_tools(self, tools: Sequence[Tool]) -> None:
        """Have these tools of extensions, and no others of theirs."""
        self.toolbox.set_extension_tools(tools)

    def take_off(self, extension: str) -> None:
        """Show nothing of an extension any more."""
        for event in self.publisher.snapshot.views.taken_off(extension):
            self.publisher.publish(event)

    async def system_prompt(self) -> str:
        """Return the system prompt for the active tools."""
        return await self.prompt([tool.spec for tool in self.toolbox.active().values()])

    def model(self, ref: str | None) -> Model:
        """Return a model by its name; None: the one in force."""
        return self.models.required() if ref is None else self.models.open(ref)

    def spent(self, usage: Usage) -> None:
        """Count and publish usage of an extension's model call."""
        self.usage.spent(usage)
        self.publisher.publish(SessionUsage(usage=self.usage.of_session()))


def register_models(models: Sequence[Model], api: "ExtensionApi") -> None:
    """Register models of the program that opens the session, as an extension does."""
    by_ref = {model.facts.ref: model for model in models}
    for provider in dict.fromkeys(model.facts.provider for model in models):
        shapes: list[JsonValue] = [
            {
                "id": facts.id,
                "name": facts.name,
                "reasoning": facts.reasoning,
                "input": ["text", "image"] if facts.images else ["text"],
                "contextWindow": facts.context_window,
                "maxTokens": facts.max_tokens,
            }
            for facts in (model.facts for model in models)
            if facts.provider == provider
        ]
        # A provider without a key counts as one that cannot be asked.
        config: JsonObject = {"apiKey": "none", "models": shapes}
        api.provider(provider, config, adapter=lambda facts, _: by_ref[facts.ref])


def _log_failure(failure: HookFailure) -> None:
    log.error("extension %r failed at %s", failure.owner, failure.point, exc_info=failure.exception)


class AvailableModels(Value, frozen=True, kw_only=True):
    """Models available to a session of the request."""

    registry: ModelRegistry
    notices: tuple[str, ...]
    """Problems of the extensions, one sentence each."""


@asynccontextmanager
async def available_models(request: SessionRequest) -> AsyncGenerator[AvailableModels]:
    """Load the extensions and read what models there are; code and connections are let go with the context.

    Raises:
        WorkspaceMissing: The workspace is no folder.
    """
    config = await load_workspace_config(request)
    extensions = SessionExtensions(request, config, config.settings.values)
    pool = HttpPool(clock=request.clock)
    try:
        await extensions.load()
        models = await load_models(
            paths=config.paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            roots=(config.root,),
            redactor=request.redactor,
            brought=extensions.models,
        )
        yield AvailableModels(registry=models.registry, notices=extensions.notices)
    finally:
        extensions.close()
        await pool.aclose()
