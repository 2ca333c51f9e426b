"""The settings of a session as they are now: read again when a file, the trust or an editor's configuration changes."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.config.session_options import allowance, session_options
from agent_core.assembly.config.trust import project_layer
from agent_core.events import Notice, PermissionMode, SessionConfigured
from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.resources.folder_watch import FolderChanges, FolderWatches
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.resources.paths import project_folder
from agent_core.resources.settings.layers import Layer, LayerName, Settings, load_settings
from agent_core.resources.settings.values import SettingsValues
from agent_core.resources.trust.workspace_trust import WorkspaceTrust
from agent_core.session.context import (
    SessionContext,
    SessionOptions,
    WorkspaceContext,
    refresh_models,
)

log = logging.getLogger(__name__)

STRICTEST_FIRST: Sequence[PermissionMode] = ("plan", "ask", "auto", "yolo")
MODEL_FILES = frozenset({"models.json", "auth.json"})
"""Beside the user's settings: which models there are, and what opens them."""
OWN = frozenset[LayerName]({"user", "request"})
"""Layers that say how much is allowed at most."""


class LiveSettings:
    """Where the settings come from, and what they came to when they were last read."""

    def __init__(
        self,
        first: Settings,
        *,
        layers: Sequence[Layer],
        root: Path,
        scratch: Path,
        trust: WorkspaceTrust | None,
    ) -> None:
        """Start from the settings that were read before the session opened.

        Args:
            first: Settings read before the session opened.
            layers: All layers except the project's.
            root: The workspace.
            scratch: Folder in which tools keep whole outputs.
            trust: None: the opener of the session decides whether the workspace is trusted.
        """
        self.now = first
        self._layers = tuple(layers)
        self._root = root
        self._scratch = scratch
        self._trust = trust

    @property
    def files(self) -> Mapping[LayerName, Path]:
        """The files that settings are read from, by layer; they need not be there."""
        found: dict[LayerName, Path] = {"project": project_folder(self._root) / "settings.json"}
        found.update(
            {one.name: one.content for one in self._layers if isinstance(one.content, Path)}
        )
        return found

    def set_layer(self, name: LayerName, values: JsonObject) -> None:
        """Replace the values of a layer that is not a file, from the next load on."""
        others = tuple(layer for layer in self._layers if layer.name != name)
        self._layers = (*others, Layer(name=name, content=values))

    async def load(self, *, is_trusted: bool) -> Settings:
        """Read them; the workspace's file is not even opened before it is trusted.

        With what no session may begin with, the settings stay as they were, but for what is wrong with them.
        """
        layers = [*self._layers, project_layer(self._root, self._trust)]
        made = await load_settings(layers, project_trusted=is_trusted)
        self.now = replace(self.now, problems=made.problems) if made.refusals else made
        return self.now

    async def allowed(self) -> PermissionMode:
        """Read the most that the user's own settings allow."""
        own = [layer for layer in self._layers if layer.name in OWN]
        return (await load_settings(own)).values.permission.mode

    async def apply(
        self, options: SessionOptions, place: WorkspaceContext, *, is_trusted: bool
    ) -> None:
        """Apply the settings that a change of trust brings from the next run on; never loosen the permission mode."""
        values = (await self.load(is_trusted=is_trusted)).values
        self.put(values, options, place)
        # A project tightens; what the user chose meanwhile is not loosened by taking its trust away.
        place.permissions.mode = _stricter(place.permissions.mode, values.permission.mode)

    def put(self, values: SettingsValues, options: SessionOptions, place: WorkspaceContext) -> None:
        """Apply the settings that can change in a running session, except those that users choose in it."""
        made = session_options(values, scratch=self._scratch)
        options.retry = made.retry
        if made.compaction.enabled != options.compaction.enabled:
            options.auto_compact = made.auto_compact
        options.compaction = made.compaction
        options.tool_execution = made.tool_execution
        options.skip_on_steer = made.skip_on_steer
        options.steer_grace_s = made.steer_grace_s
        options.cache = made.cache
        options.tool_options = made.tool_options
        place.allowance.ceiling = allowance(values.budgets).ceiling
        place.permissions.fallback = values.permission.fallback
        place.permissions.timeout_s = values.permission.timeout_s


class SettingsTracker(Value, frozen=True, kw_only=True):
    """Tracker of the settings of one session: reloads them on change and keeps choices made in the session."""

    live: LiveSettings
    parts: SessionContext

    async def configure(self, values: JsonObject) -> None:
        """Replace the settings of the editor layer and reload."""
        self.live.set_layer("editor", values)
        await self.follow()

    async def follow(self) -> None:
        """Reload the settings without a request of the user, and publish each problem as a warning."""
        for problem in (await self.reload()).problems:
            _ = self.parts.publisher.publish(Notice(level="warning", text=str(problem)))

    async def follow_models(self) -> None:
        """Read models.json and auth.json again."""
        await refresh_models(self.parts)

    async def watch(self, watches: FolderWatches) -> None:
        """Follow the files for as long as the session is open; without room for watches a reload does."""
        is_moved = False
        try:
            while True:
                folders = await to_thread.run_sync(self._folders)
                async with watches.watch(folders) as news:
                    if is_moved:
                        await self.follow()  # nobody watched a moment ago
                    await self._follow_until_moved(news, folders)
                is_moved = True
        except OSError as error:
            log.warning("settings are not watched, so changes need a reload: %s", error)

    async def _follow_until_moved(self, news: FolderChanges, folders: tuple[Path, ...]) -> None:
        """Return when other folders are to be watched: the project's own may come and go."""
        files = frozenset(self.live.files.values())
        user = self.live.files.get("user")
        own = None if user is None else user.parent
        while True:
            changed = await news.next()
            if await to_thread.run_sync(self._folders) != folders:
                return
            if not files.isdisjoint(changed):
                await self.follow()
            if any(one.parent == own and one.name in MODEL_FILES for one in changed) or (
                self.parts.models.model is None and not files.isdisjoint(changed)
            ):
                await self.follow_models()

    def _folders(self) -> tuple[Path, ...]:
        """Return the folders of the files, or those above where there is none. Blocking."""
        above = (file.parent for file in self.live.files.values())
        return tuple(folder if folder.is_dir() else folder.parent for folder in above)

    async def reload(self) -> LoadedResources:
        """Read the settings again and put them in force from the next run."""
        parts, live = self.parts, self.live
        before, config = live.now.values, parts.config()
        permission_state = parts.place.permissions
        settings = await live.load(is_trusted=permission_state.is_trusted())
        if settings.refusals:
            return LoadedResources(problems=_problems(settings))
        allowed = await live.allowed()
        values = settings.values
        live.put(values, parts.options, parts.place)
        parts.place.allowed = allowed
        chosen = permission_state.mode != before.permission.mode
        permission_state.mode = (
            _stricter(permission_state.mode, allowed) if chosen else values.permission.mode
        )
        inbox = parts.inbox
        if inbox.steering_mode == before.steering_mode:
            inbox.steering_mode = values.steering_mode
        if inbox.follow_up_mode == before.follow_up_mode:
            inbox.follow_up_mode = values.follow_up_mode
        if (after := parts.config()) != config:
            _ = parts.publisher.publish(SessionConfigured(config=after))
        used = (one for name, one in live.files.items() if name in settings.sources.values())
        return LoadedResources(
            resources=tuple(Resource(kind="settings", name=one.name, path=one) for one in used),
            problems=_problems(settings),
        )


def _problems(settings: Settings) -> tuple[LoadProblem, ...]:
    return tuple(
        LoadProblem(message=one.message, path=one.path, line=one.line) for one in settings.problems
    )


def _stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode:
    return min((one, other), key=STRICTEST_FIRST.index)
