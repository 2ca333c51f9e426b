"""The extensions of one session: loaded, put in force, loaded anew, let go."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from agent_core.extensions.api import EventBus
from agent_core.extensions.discovery import DiscoveredExtension, DiscoveryResult
from agent_core.extensions.loader import LoadedExtension, load
from agent_core.extensions.ports import Services
from agent_core.extensions.registry import Conflicts, FlagValue, Offers, Registrations, offers_of
from agent_core.extensions.scope import ExtensionScope
from agent_core.hooks import HookFailure, HookTable
from agent_core.hooks.runner import AnyHook
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.tools import Tool

if TYPE_CHECKING:
    from agent_core.extensions.api import ExtensionApi


RELOADED: Final = "the extension was loaded anew"
CLOSED: Final = "its session is over"
GONE: Final = "the extension is not there, or not trusted, any more"


class ContributionSink(Protocol):
    """Those who use what extensions bring."""

    def set_extension_tools(self, tools: Sequence[Tool]) -> None:
        """Have these tools of extensions from the next request on, and no others of theirs."""
        ...

    def take_off(self, extension: str) -> None:
        """Show nothing of an extension any more: its code is gone."""
        ...


class HostPlan(Value, frozen=True, kw_only=True):
    """Dependencies and settings of a host."""

    look: Callable[[], Awaitable[DiscoveryResult]]
    """Finds the extensions that are to be loaded now."""
    table: HookTable
    new_id: Callable[[], str]
    conflicts: Conflicts = "last"
    flags: Callable[[str], FlagValue | None] = lambda _: None
    """Returns the user's value of a flag."""
    report: Callable[[HookFailure], None] = lambda _: None
    load_limit_s: float = 10.0


class HostBinding(Value, frozen=True, kw_only=True):
    """Where extensions are in force."""

    services: Services
    takes: ContributionSink
    changed: Callable[[Offers], None] = lambda _: None
    """Told when something was registered, or is gone."""


class ExtensionHost:
    """Holds the extensions of one session. Until `bind` they are loaded and in force nowhere."""

    def __init__(self, plan: HostPlan) -> None:
        self._plan = plan
        self._loaded: list[LoadedExtension] = []
        self._hooks: list[AnyHook] = []
        """Those in the table."""
        self._bus = EventBus(failed=self._listener_failed, later=self._later)
        self._stage: HostBinding | None = None
        self._lock = anyio.Lock()
        self._is_loading = False
        self.offers = Offers()
        self.discovered = DiscoveryResult()

    @property
    def extensions(self) -> tuple[LoadedExtension, ...]:
        """The extensions that are loaded, in order."""
        return tuple(self._loaded)

    @property
    def folders(self) -> frozenset[Path]:
        """The folders in which the sources of what is loaded lie; empty: nothing was loaded from files."""
        paths = [one.found.path for one in self._loaded]
        return frozenset(path.parent for path in paths if path is not None)

    def scope(self, extension: str) -> ExtensionScope:
        """Return what an extension stands on.

        Raises:
            ExtensionBroken: It is not there any more.
        """
        for one in self._loaded:
            if one.found.name == extension:
                return one.scope
        message = f"the extension {extension!r} is not loaded any more"
        raise ExtensionBroken(message)

    async def load(self) -> LoadedResources:
        """Load all extensions for the first time; a failure becomes a problem and does not prevent the others."""
        async with self._lock:
            return await self._load()

    def bind(self, stage: HostBinding) -> None:
        """Activate the loaded extensions in a session."""
        self._stage = stage
        for one in self._loaded:
            one.scope.bind(stage.services)
        self._apply()

    async def reload(self) -> LoadedResources:
        """Load everything anew: the new code is asked from the next event on, and old contexts say that they are stale.

        Where the new code of an extension is broken, its old code stays in force, and that is a problem.
        """
        async with self._lock:
            loaded = await self._load()
            self._apply()
            return loaded

    def close(self) -> None:
        """Unload all extensions and remove their hooks."""
        for one in self._loaded:
            one.end(CLOSED)
        self._plan.table.discard(self._hooks)
        self._loaded, self._hooks, self._stage = [], [], None

    async def _load(self) -> LoadedResources:
        discovered = await self._plan.look()
        problems = [*discovered.problems]
        before = {one.found.name: one for one in self._loaded}
        now: list[LoadedExtension] = []
        self._is_loading = True
        try:
            for found in discovered.found:
                one = await self._one(found, before.get(found.name), problems)
                if one is not None:
                    now.append(one)
        finally:
            self._is_loading = False
        self.discovered = discovered
        self._exchange(now)
        problems.extend(self.offers.problems)
        resources = [
            Resource(kind="extension", name=one.found.name, path=one.found.path) for one in now
        ]
        return LoadedResources(resources=tuple(resources), problems=tuple(problems))

    async def _one(
        self,
        found: DiscoveredExtension,
        before: LoadedExtension | None,
        problems: list[LoadProblem],
    ) -> LoadedExtension | None:
        try:
            return await load(
                found,
                make_api=self._api,
                new_id=self._plan.new_id,
                limit_s=self._plan.load_limit_s,
            )
        except ExtensionBroken as error:
            # Half an edit must not take a gate away; but what the user has not seen is not run, nor kept alive by it.
            kept = before if before is not None and found.origin != "project" else None
            stays = "; its old code stays in force" if kept is not None else ""
            problems.append(LoadProblem(message=f"{error}{stays}", path=found.path, level="error"))
            return kept

    def _api(self, scope: ExtensionScope, registered: Registrations) -> "ExtensionApi":
        from agent_core.extensions.api import ExtensionApi  # noqa: PLC0415 - at first use

        return ExtensionApi(
            scope,
            registered,
            bus=self._bus,
            flags=self._plan.flags,
            changed=self._registered_later,
        )

    def _exchange(self, now: list[LoadedExtension]) -> None:
        """Replace the loaded extensions with the new ones, without an await: between two events."""
        for one in self._loaded:
            if one not in now:
                name = one.found.name
                one.end(RELOADED if any(new.found.name == name for new in now) else GONE)
                if self._stage is not None:
                    self._stage.takes.take_off(name)
        self._loaded = now
        self.offers = self._offers()
        if self._stage is not None:
            for one in now:
                one.scope.bind(self._stage.services)

    def _offers(self) -> Offers:
        registered = [one.registered for one in self._loaded]
        return offers_of(registered, conflicts=self._plan.conflicts)

    def _registered_later(self) -> None:
        """Apply registrations made after loading, on the loop's thread; before `bind` and while loading do nothing."""
        if self._stage is None or self._is_loading:
            return
        self._stage.services.thread.call(self._apply_anew)

    def _apply_anew(self) -> None:
        self.offers = self._offers()
        self._apply()

    def _apply(self) -> None:
        """Make what is in force be what is offered; no waiting, so that no event sees half of it."""
        stage, table = self._stage, self._plan.table
        if stage is None:
            return
        table.discard(self._hooks)
        self._hooks = []
        for one in self._loaded:
            for at, hook in one.registered.hooks:
                table.add(hook, at)
                self._hooks.append(hook)
        stage.takes.set_extension_tools(tuple(self.offers.tools.values()))
        stage.changed(self.offers)

    def _later(self, work: Awaitable[object], extension: str, channel: str) -> None:
        stage = self._stage

        async def finish() -> None:
            try:
                _ = await work
            except Exception as error:  # noqa: BLE001 - the fence around foreign code: reported, never swallowed
                self._listener_failed(extension, channel, error)

        if stage is not None:
            stage.services.start(finish)

    def _listener_failed(self, extension: str, channel: str, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}"
        failure = HookFailure(
            owner=extension, point=f"events: {channel}", error=text, exception=error
        )
        self._plan.report(failure)
