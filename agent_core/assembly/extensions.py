"""The extensions of a session: where they are looked for, and how they come to stand in it."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from anyio import to_thread
from anyio.abc import TaskGroup

from agent_core.assembly.config.workspace_config import Ground, home_of
from agent_core.assembly.failure_reports import report_to
from agent_core.assembly.models.loader import ModelSet
from agent_core.assembly.request import SessionRequest
from agent_core.events import Notice, SessionUsage
from agent_core.extensions.calls.threads import LoopThread
from agent_core.extensions.commands import ExtensionCommands
from agent_core.extensions.host import ExtensionHost, HostPlan, Stage
from agent_core.extensions.loader.discovery import Discovered, Found, Places, discover
from agent_core.extensions.ports import Services
from agent_core.extensions.registry.offers import Offers
from agent_core.extensions.registry.provider_models import brought_by
from agent_core.extensions.ui.client_offers import Showcase
from agent_core.hooks import HookFailure, HookRunner, SessionBegun, SessionEnding
from agent_core.kernel import uuid7
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.providers import Model
from agent_core.providers.extension_models import NOTHING, Brought
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import Loaded, Problem
from agent_core.resources.paths import project_folder
from agent_core.resources.settings.layers import load_settings
from agent_core.resources.settings.values import SettingsValues
from agent_core.session import AgentSession
from agent_core.session.context import Parts
from agent_core.session.model_selection import ModelSource
from agent_core.tools import Tool

FOLDER = "extensions"
SOURCES = frozenset({".py", ".toml"})

log = logging.getLogger(__name__)


class Extending:
    """The extensions of one session, before, while and after it is open."""

    def __init__(self, request: SessionRequest, ground: Ground, values: SettingsValues) -> None:
        self._request = request
        self._ground = ground
        self._hooks: HookRunner | None = None
        """None: the session is not open."""
        self._problems: Sequence[Problem] = ()
        self._tell: Callable[[str], object] = log.warning
        self._report: Callable[[HookFailure], None] = _log_failure
        self.known: ModelSet | None = None
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
    def models(self) -> Brought:
        """The models that they bring."""
        return brought_by(self.host.offers.providers.values())[0]

    async def load(self) -> None:
        """Load them before the session is there; `told` is what the user should hear of it."""
        self._problems = self._with_models(await self.host.load()).problems

    @property
    def told(self) -> tuple[str, ...]:
        """Problems of the first load, one sentence each."""
        return tuple(map(str, self._problems))

    def check_named(self) -> None:
        """Check that those which the request names are loaded: one may be there to forbid something.

        Raises:
            ExtensionBroken: One is not there or was not loaded.
        """
        named = [self._ground.root / path.expanduser() for path in self._request.extensions]
        for problem in self._problems:
            if problem.level != "error" or problem.path is None:
                continue
            if any(path in (problem.path, *problem.path.parents) for path in named):
                raise ExtensionBroken(str(problem))

    async def reload(self) -> Loaded:
        """Load everything anew, as somebody asked for; the old code hears of its end and the new code of its begin."""
        await self._ask(SessionEnding(reason="reload"))
        loaded = self._with_models(await self.host.reload())
        await self._ask(SessionBegun(reason="reload"))
        return loaded

    async def reload_and_tell(self) -> None:
        """Load everything again without a request of the user, and publish each problem as a warning."""
        for problem in (await self.reload()).problems:
            _ = self._tell(str(problem))

    def bind(
        self, session: AgentSession, parts: Parts, group: TaskGroup, source: ModelSource
    ) -> None:
        """Activate the loaded extensions in an open session."""
        say = parts.voice.say
        self._hooks = parts.hooks
        self._tell = lambda text: say(Notice(level="warning", text=text))
        self._report = report_to(parts.voice)
        services = Services(
            session=session,
            workspace=parts.place.workspace,
            clock=parts.clock,
            thread=LoopThread(),
            show=say,
            is_attended=lambda: parts.place.standing.fallback == "ask",
            is_trusted=parts.place.standing.is_trusted,
            system_prompt=partial(_system_prompt, parts),
            model=partial(_model, parts, source),
            spent=partial(_spent, parts),
            start=lambda work: group.start_soon(partial(self._fenced, work)),
            shows=lambda what: self._request.showing.shows(what),  # noqa: PLW0108 - asked anew each time
        )
        parts.commands.sources.append(ExtensionCommands(self.host))
        parts.commands.offers = Showcase(
            self.host,
            lambda name: self._flags.get(name),  # noqa: PLW0108 - as above
            self._ground.settings.values.hooks.timeout_s,
        )
        parts.reloads.insert(0, self)
        self.host.bind(Stage(services=services, takes=_Taker(parts), changed=self._changed))
        group.start_soon(self._watch)

    def close(self) -> None:
        """Unload all extensions."""
        self._hooks = None
        self.host.close()

    async def _ask(self, moment: SessionBegun | SessionEnding) -> None:
        if self._hooks is not None:
            _ = await self._hooks.ask(moment)

    def _with_models(self, loaded: Loaded) -> Loaded:
        _, problems = brought_by(self.host.offers.providers.values())
        return loaded.plus(Loaded(problems=problems))

    def _changed(self, offers: Offers) -> None:
        brought, _ = brought_by(offers.providers.values())
        if self.known is not None and brought != self._brought:
            self._brought = brought
            self.known.registry.bring(brought)
            self.known.hold_secrets(self._request.redactor, self._request.env)

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
                            await self.reload_and_tell()
        except OSError as error:
            _ = self._tell(f"extensions are not watched, so changes need a reload: {error}")

    async def _look(self) -> Discovered:
        request, ground = self._request, self._ground
        own = [layer for layer in ground.layers if layer.name in {"user", "request"}]
        values = (await load_settings(own)).values
        self._flags = values.extension_flags
        places = Places(
            user=ground.paths.config / FOLDER,
            project=project_folder(ground.root) / FOLDER if ground.standing.is_trusted() else None,
            project_expected=ground.expected,
            settings=values.extensions,
            named=[ground.root / path.expanduser() for path in request.extensions],
            home=home_of(request.env),
        )
        discovered = await to_thread.run_sync(discover, places)
        for number, factory in enumerate(request.own_extensions):
            name = getattr(factory, "__name__", "") or "given"
            found = Found(
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


class _Taker(Value, frozen=True):
    _parts: Parts

    def bring_tools(self, tools: Sequence[Tool]) -> None:
        """Have these tools of extensions, and no others of theirs."""
        self._parts.toolbox.bring(tools)

    def take_off(self, extension: str) -> None:
        """Show nothing of an extension any more."""
        voice = self._parts.voice
        for event in voice.picture.views.taken_off(extension):
            _ = voice.say(event)


async def _system_prompt(parts: Parts) -> str:
    return await parts.system_prompt([tool.spec for tool in parts.toolbox.active().values()])


def _model(parts: Parts, source: ModelSource, ref: str | None) -> Model:
    return parts.models.required() if ref is None else source.open(source.resolve(ref).model)


def _spent(parts: Parts, usage: Usage) -> None:
    parts.tally.spent(usage)
    _ = parts.voice.say(SessionUsage(usage=parts.tally.of_session(parts.models.context_window)))


def _log_failure(failure: HookFailure) -> None:
    log.error("extension %r failed at %s", failure.owner, failure.point, exc_info=failure.exception)
