"""Configuration of a session: settings as they are now, trust, rule files, and their conversion into options."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.request import SessionRequest
from agent_core.assembly.workspace import LiveFolders
from agent_core.compaction import CompactionPolicy, ModelFigures
from agent_core.events import Budgets, Notice, PermissionMode
from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.errors import ConfigError, WorkspaceMissing
from agent_core.kernel.values import Value
from agent_core.mcp.definitions import ServerFiles
from agent_core.providers.catalog.models_file import read_models_file
from agent_core.resources.folder_watch import FolderChanges, FolderWatches
from agent_core.resources.instructions import load_context_files
from agent_core.resources.load_result import LoadedResources, LoadProblem, Resource
from agent_core.resources.paths import AppPaths, app_paths, home_of, project_folder
from agent_core.resources.settings.layers import Layer, LayerName, Settings, load_settings
from agent_core.resources.settings.values import (
    BashSettings,
    BudgetSettings,
    ImageSettings,
    PermissionSettings,
    SettingsValues,
    WebSettings,
)
from agent_core.resources.trust.workspace_trust import TrustStore, WorkspaceTrust, origin_of
from agent_core.session.config import ActiveConfig
from agent_core.session.context import EventPublisher, SessionOptions, WorkspaceContext
from agent_core.session.input.queue import InputQueue
from agent_core.session.model_selection import ModelSelection
from agent_core.session.permissions.broker import LoadedRules, PermissionState, stricter_mode
from agent_core.session.runs.retry_policy import RetryOptions
from agent_core.session.runs.usage import BudgetPolicy
from agent_core.workspace.permissions.call_permission import SecretAccess
from agent_core.workspace.permissions.policy import Rule, RuleSet
from agent_core.workspace.permissions.policy.rules.rules_file import (
    NAME,
    RulesOrigin,
    load_rules,
    remembered_file,
)


def session_options(values: SettingsValues, *, scratch: Path) -> SessionOptions:
    """Return the options of a session.

    Args:
        values: The settings in force.
        scratch: Where tools keep whole outputs.
    """
    return SessionOptions(
        retry=RetryOptions(
            enabled=values.retry.enabled,
            max_retries=values.retry.max_retries,
            base_delay_ms=values.retry.base_delay_ms,
            max_delay_ms=values.retry.max_delay_ms,
        ),
        compaction=CompactionPolicy(
            enabled=values.compaction.enabled,
            reserve_tokens=values.compaction.reserve_tokens,
            keep_recent_tokens=values.compaction.keep_recent_tokens,
            branch_reserve_tokens=values.branch_summary.reserve_tokens,
            offer_branch_summary=not values.branch_summary.skip_prompt,
            by_model={
                ref: ModelFigures(
                    reserve_tokens=own.reserve_tokens, keep_recent_tokens=own.keep_recent_tokens
                )
                for ref, own in values.compaction.model_overrides.items()
            },
        ),
        auto_compact=values.compaction.enabled,
        tool_execution=values.tool_execution,
        cache=values.cache_retention,
        tool_concurrency=values.tool_concurrency,
        tool_timeout_s=values.tool_timeout_s or None,
        max_turns=values.max_turns,
        skip_on_steer=values.skip_on_steer,
        steer_grace_s=values.steer.grace_s,
        tool_options={
            "bash": _bash(values.bash),
            "read": _read(values.images),
            **web_options(values.web),
        },
        durability=values.durability,
        titles=values.titles,
        title_model=values.title_model,
        completion_trigger=values.completion.trigger,
        completion_model=values.completion.model,
        scratch=str(scratch),
    )


def allowance(budgets: BudgetSettings) -> BudgetPolicy:
    """Return what each run may use up, and what a day may cost."""
    most = Budgets(
        usd=budgets.usd, tokens=budgets.tokens, turns=budgets.turns, minutes=budgets.minutes
    )
    return BudgetPolicy(
        ceiling=most, day_usd=budgets.day_usd, folder_day_usd=budgets.folder_day_usd
    )


def _bash(bash: BashSettings) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {"timeoutS": bash.timeout_s}
    if bash.prefix is not None:
        options["prefix"] = bash.prefix
    if bash.shell_path is not None:
        options["shellPath"] = bash.shell_path
    return options


def _read(images: ImageSettings) -> dict[str, JsonValue]:
    return {
        "autoResize": images.auto_resize,
        "blockImages": images.block_images,
        "maxBytes": images.max_bytes,
    }


def web_options(web: WebSettings) -> dict[str, dict[str, JsonValue]]:
    """Return the options of `fetch` and `web_search`."""
    return {
        "fetch": {"timeoutS": web.timeout_s, "privateHosts": list(web.private_hosts)},
        "web_search": {
            "timeoutS": web.timeout_s,
            "service": web.search,
            "url": web.search_url,
        },
    }


def project_layer(root: Path, trust: WorkspaceTrust | None) -> Layer:
    """Return the layer of the workspace's own settings, limited to the content that the user trusted."""
    path = project_folder(root) / "settings.json"
    return Layer(
        name="project", content=path, expected=None if trust is None else trust.content(path)
    )


async def look_at(
    root: Path, *, paths: AppPaths, layers: Sequence[Layer], clock: Clock
) -> WorkspaceTrust:
    """Look for the first time whether the user trusts a workspace.

    Args:
        root: The workspace, absolute and real.
        paths: Where their words are kept.
        layers: Settings; of those that are not the user's own none can loosen `defaultProjectTrust`.
        clock: Time.
    """
    values = (await load_settings(layers)).values
    store = TrustStore(paths.trust)
    trust = WorkspaceTrust(
        root,
        store=store,
        default=values.default_project_trust,
        clock=clock,
        origin=await to_thread.run_sync(origin_of, root, paths),
    )
    _ = await trust.check()
    return trust


log = logging.getLogger(__name__)

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
        self, options: SessionOptions, workspace: WorkspaceContext, *, is_trusted: bool
    ) -> None:
        """Apply the settings that a change of trust brings from the next run on; never loosen the permission mode."""
        values = (await self.load(is_trusted=is_trusted)).values
        self.put(values, options, workspace)
        # A project tightens; what the user chose meanwhile is not loosened by taking its trust away.
        workspace.permissions.mode = stricter_mode(
            workspace.permissions.mode, values.permission.mode
        )

    def put(
        self, values: SettingsValues, options: SessionOptions, workspace: WorkspaceContext
    ) -> None:
        """Apply the settings that can change in a running session, except those that users choose in it."""
        made = session_options(values, scratch=self._scratch)
        options.retry = made.retry
        if made.compaction.enabled != options.compaction.enabled:
            options.auto_compact = made.auto_compact
        options.compaction = made.compaction
        options.tool_execution = made.tool_execution
        options.tool_concurrency = made.tool_concurrency
        options.tool_timeout_s = made.tool_timeout_s
        options.max_turns = made.max_turns
        options.skip_on_steer = made.skip_on_steer
        options.steer_grace_s = made.steer_grace_s
        options.cache = made.cache
        options.titles, options.title_model = made.titles, made.title_model
        options.completion_trigger = made.completion_trigger
        options.completion_model = made.completion_model
        options.tool_options = made.tool_options
        workspace.allowance.adopt(allowance(values.budgets))
        workspace.permissions.fallback = values.permission.fallback
        workspace.permissions.timeout_s = values.permission.timeout_s


class SettingsTracker(Value, frozen=True, kw_only=True):
    """Tracker of the settings of one session: reloads them on change and keeps choices made in the session."""

    live: LiveSettings
    publisher: EventPublisher
    models: ModelSelection
    queue: InputQueue
    config: ActiveConfig
    workspace: WorkspaceContext
    options: SessionOptions

    async def configure(self, values: JsonObject) -> None:
        """Replace the settings of the editor layer and reload."""
        self.live.set_layer("editor", values)
        await self.follow()

    async def follow(self) -> None:
        """Reload the settings without a request of the user, and publish each problem as a warning."""
        for problem in (await self.reload()).problems:
            self.publisher.publish(Notice(level="warning", text=str(problem)))

    async def follow_models(self) -> None:
        """Read models.json and auth.json again."""
        await self.config.refresh_models()

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
                self.models.model is None and not files.isdisjoint(changed)
            ):
                await self.follow_models()

    def _folders(self) -> tuple[Path, ...]:
        """Return the folders of the files, or those above where there is none. Blocking."""
        above = (file.parent for file in self.live.files.values())
        return tuple(folder if folder.is_dir() else folder.parent for folder in above)

    async def reload(self) -> LoadedResources:
        """Read the settings again and put them in force from the next run."""
        live, queue = self.live, self.queue
        before, config = live.now.values, self.config.now()
        permission_state = self.workspace.permissions
        settings = await live.load(is_trusted=permission_state.is_trusted())
        if settings.refusals:
            return LoadedResources(problems=_problems(settings))
        allowed = await live.allowed()
        values = settings.values
        live.put(values, self.options, self.workspace)
        self.workspace.allowed = allowed
        chosen = permission_state.mode != before.permission.mode
        permission_state.mode = (
            stricter_mode(permission_state.mode, allowed) if chosen else values.permission.mode
        )
        if queue.steering_mode == before.steering_mode:
            queue.steering_mode = values.steering_mode
        if queue.follow_up_mode == before.follow_up_mode:
            queue.follow_up_mode = values.follow_up_mode
        self.config.publish_change(config)
        used = (one for name, one in live.files.items() if name in settings.sources.values())
        return LoadedResources(
            resources=tuple(Resource(kind="settings", name=one.name, path=one) for one in used),
            problems=_problems(settings),
        )


def _problems(settings: Settings) -> tuple[LoadProblem, ...]:
    return tuple(
        LoadProblem(message=one.message, path=one.path, line=one.line) for one in settings.problems
    )


PROJECT_FOLDER = ".tiller"


class RuleFiles(Value, frozen=True, kw_only=True):
    """The rules of one workspace. Answers "for this project" lie in the user's own folder, never in the project."""

    config: Path
    """The user's folder of configuration."""
    data: Path
    """The user's folder of data."""
    roots: Sequence[Path]
    """The primary one first; those that are not trusted are not among them."""
    origin: Path
    """The folder whose remembered rules apply."""
    env_path: Callable[[], str]
    """The PATH of commands, which is that of whoever spoke last."""
    home: Path
    is_trusted: Callable[[], bool]
    """Whether the project's own file counts; it can only ask and deny."""

    async def load(self) -> LoadedRules:
        """Return the rules in force. A file that cannot be read is reported as a problem and permits nothing more."""
        return await to_thread.run_sync(self._load, self.env_path())

    async def save(self, rule: Rule) -> None:
        """Keep a rule of the scopes `project` and `user`."""
        from agent_core.workspace.permissions.policy.rules.rules_file_writer import save_rule  # noqa: PLC0415 - at first use

        await to_thread.run_sync(save_rule, self._place(rule), rule)

    async def remove(self, rule_id: str) -> None:
        """Forget a rule wherever it is kept."""
        from agent_core.workspace.permissions.policy.rules.rules_file_writer import remove_rule  # noqa: PLC0415 - at first use

        for path in (self._user, self._remembered):
            _ = await to_thread.run_sync(remove_rule, path, rule_id)

    @property
    def _user(self) -> Path:
        return self.config / NAME

    @property
    def _remembered(self) -> Path:
        return remembered_file(self.data, self.origin)

    def _place(self, rule: Rule) -> Path:
        return self._user if rule.scope == "user" else self._remembered

    def _load(self, env_path: str) -> LoadedRules:
        roots = tuple(self.roots)
        files: list[tuple[Path, RulesOrigin]] = [
            (self._user, "user"),
            (self._remembered, "project"),
        ]
        if self.is_trusted():
            files.extend((root / PROJECT_FOLDER / NAME, "repository") for root in roots)
        load = partial(load_rules, roots=roots, env_path=env_path, home=self.home)
        loaded = [load(path, origin=origin) for path, origin in files]
        return LoadedRules(
            rules=tuple(rule for one in loaded for rule in one.rules),
            problems=tuple(str(problem) for one in loaded for problem in one.problems),
        )


class WorkspaceConfig(Value, frozen=True, kw_only=True):
    """Inputs of a session, read before it opens."""

    root: Path
    """Absolute and real."""
    origin: Path
    """The folder that a worktree was made from; else `root`."""
    paths: AppPaths
    layers: tuple[Layer, ...]
    """Where settings come from, but for the project's file."""
    settings: Settings
    allowed: PermissionMode
    """The most that the user's own settings allow."""
    permission_state: PermissionState
    trust: WorkspaceTrust | None
    """None: the opener of the session decides whether the workspace is trusted."""
    secrets: SecretAccess = msgspec.field(default_factory=SecretAccess)
    """The secret files that a person let the session read; commands see them too."""
    left_out: tuple[str, ...]
    """Context files and rules that could not be used as they are, a sentence each."""

    def expected(self, path: Path) -> str | None:
        """Return the SHA-256 of what a file of the workspace must hold to be used; None: anything."""
        return None if self.trust is None else self.trust.content(path)


async def load_workspace_config(request: SessionRequest) -> WorkspaceConfig:
    """Read what holds.

    Raises:
        WorkspaceMissing: The workspace is no folder.
        ConfigError: The settings hold what no session may begin with.
    """
    ports = request.ports
    far_root = None if ports is None or ports.address is not None else ports.root
    root = far_root or await to_thread.run_sync(_folder, request.workspace)
    paths = request.paths or app_paths(request.env)
    request.redactor.hold_environment(request.env)
    layers = _layers(request, paths)
    trust = None
    if request.trusted is None and ports is None:
        trust = await look_at(root, paths=paths, layers=layers, clock=request.clock)
        request.added.judge = partial(look_at, paths=paths, layers=layers, clock=request.clock)
    if request.folders:
        _ = await request.added.follow(request.folders)
    is_trusted = request.trusted is not False if trust is None else trust.is_trusted
    settings, allowed = await _settings(layers, project_layer(root, trust), is_trusted=is_trusted)
    context = await load_context_files(
        config=paths.config,
        root=root,
        project_trusted=is_trusted,
        above=() if trust is None else trust.above,
        expected=(lambda _: None) if trust is None else trust.content,
    )
    origin = root if ports else await to_thread.run_sync(origin_of, root, paths)
    permission_state, wrong_rules = await _permission_state(
        request, (root, origin), paths, settings.values.permission, is_trusted=is_trusted
    )
    return WorkspaceConfig(
        root=root,
        origin=origin,
        paths=paths,
        layers=layers,
        settings=settings,
        allowed=allowed,
        permission_state=permission_state,
        trust=trust,
        left_out=(*context.problems, *wrong_rules),
    )


def _layers(request: SessionRequest, paths: AppPaths) -> tuple[Layer, ...]:
    above = [Layer(name=name, content=content) for name, content in request.settings.items()]
    return (Layer(name="user", content=paths.settings), *above)


async def _settings(
    layers: Sequence[Layer], project: Layer, *, is_trusted: bool
) -> tuple[Settings, PermissionMode]:
    """Return the settings in force, and the most that the user's own settings allow.

    Raises:
        ConfigError: They hold what no session may begin with.
    """
    settings = await load_settings([*layers, project], project_trusted=is_trusted)
    if refusals := settings.refusals:
        first = refusals[0]
        raise ConfigError(
            "; ".join(map(str, refusals)),
            path=first.path or Path(f"{first.layer} settings"),
            line=first.line,
            column=first.column,
        )
    own = [layer for layer in layers if layer.name in {"user", "request"}]
    allowed = await load_settings(own)
    return settings, allowed.values.permission.mode


async def _permission_state(
    request: SessionRequest,
    folders: tuple[Path, Path],
    paths: AppPaths,
    permission: PermissionSettings,
    *,
    is_trusted: bool,
) -> tuple[PermissionState, tuple[str, ...]]:
    """Return what holds for permission checks, with the rules that are kept, and what is wrong with those.

    Args:
        request: The session to open.
        folders: The workspace, and the folder whose remembered rules apply to it.
        paths: Where rules are kept.
        permission: Settings.
        is_trusted: Whether the workspace is trusted.
    """
    root, origin = folders
    state = PermissionState(
        mode=permission.mode,
        fallback=permission.fallback,
        timeout_s=permission.timeout_s,
        is_trusted=lambda: is_trusted,
        rules=RuleSet(rules=tuple(request.rules)),
    )
    state.keeper = RuleFiles(
        config=paths.config,
        data=paths.data,
        roots=LiveFolders(lambda: (root, *request.added.trusted)),
        origin=origin,
        env_path=lambda: request.env.get("PATH", ""),
        home=home_of(request.env),
        is_trusted=lambda: state.is_trusted(),  # noqa: PLW0108 - asked anew each time
    )
    return state, await state.refresh()


def _folder(path: Path) -> Path:
    try:
        real = path.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        message = f"the workspace {str(path)!r} cannot be found: {error}"
        raise WorkspaceMissing(message) from error
    if not real.is_dir():
        message = f"the workspace {str(path)!r} is not a folder; name one that exists"
        raise WorkspaceMissing(message)
    return real


def config_problems(paths: AppPaths, *, env: Mapping[str, str]) -> Sequence[str]:
    """Return a sentence for each problem of models.json, mcp.json and policy.json. Blocking."""
    problems: list[str] = []
    # A file that cannot be read is told where its models are needed.
    with suppress(OSError, UnicodeError):
        file = read_models_file(paths.models.read_text("utf-8-sig"), path=paths.models)
        problems.extend(map(str, file.problems))
    servers = ServerFiles(config=paths.config, root=Path("/"), env=env, is_trusted=lambda: False)
    problems.extend(servers.read_now().problems)
    return (*problems, *rule_problems(paths, env=env))


def rule_problems(paths: AppPaths, *, env: Mapping[str, str]) -> Sequence[str]:
    """Return a sentence for each problem of policy.json. Blocking."""
    loaded = load_rules(
        paths.config / NAME,
        origin="user",
        roots=(),
        env_path=env.get("PATH", ""),
        home=home_of(env),
    )
    return tuple(map(str, loaded.problems))
