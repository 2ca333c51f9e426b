"""Inputs of a session that are read before it opens: its folder, settings, trust and rules."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread

from agent_core.assembly.config.rule_files import RuleFiles
from agent_core.assembly.config.trust import look_at, project_layer
from agent_core.assembly.request import SessionRequest
from agent_core.assembly.workspace.added_roots import LiveFolders
from agent_core.events import PermissionMode
from agent_core.kernel.errors import ConfigError, WorkspaceMissing
from agent_core.kernel.values import Value
from agent_core.resources.instructions.context_files import load_context_files
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.layers import Layer, Settings, load_settings
from agent_core.resources.settings.values import PermissionSettings
from agent_core.resources.trust.workspace_trust import WorkspaceTrust
from agent_core.session.permissions.state import PermissionState
from agent_core.workspace.permissions.secret_access import SecretAccess


class WorkspaceConfig(Value, frozen=True, kw_only=True):
    """Inputs of a session, read before it opens."""

    root: Path
    """Absolute and real."""
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
    root = ports.root if ports else await to_thread.run_sync(_folder, request.workspace)
    paths = request.paths or app_paths(request.env)
    request.redactor.hold_environment(request.env)
    layers = _layers(request, paths)
    trust = None
    if request.trusted is None and ports is None:
        trust = await look_at(root, paths=paths, layers=layers, clock=request.clock)
        request.added.judge = partial(look_at, paths=paths, layers=layers, clock=request.clock)
    is_trusted = request.trusted is not False if trust is None else trust.is_trusted
    settings, allowed = await _settings(layers, project_layer(root, trust), is_trusted=is_trusted)
    context = await load_context_files(
        config=paths.config,
        root=root,
        project_trusted=is_trusted,
        above=() if trust is None else trust.above,
        expected=(lambda _: None) if trust is None else trust.content,
    )
    permission_state, wrong_rules = await _permission_state(
        request, root, paths, settings.values.permission, is_trusted=is_trusted
    )
    return WorkspaceConfig(
        root=root,
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
    root: Path,
    paths: AppPaths,
    permission: PermissionSettings,
    *,
    is_trusted: bool,
) -> tuple[PermissionState, tuple[str, ...]]:
    """Return what holds for permission checks, with the rules that are kept, and what is wrong with those."""
    state = PermissionState(
        mode=permission.mode,
        fallback=permission.fallback,
        timeout_s=permission.timeout_s,
        is_trusted=lambda: is_trusted,
    )
    state.keeper = RuleFiles(
        config=paths.config,
        data=paths.data,
        roots=LiveFolders(lambda: (root, *request.added.trusted)),
        env_path=lambda: request.env.get("PATH", ""),
        home=home_of(request.env),
        is_trusted=lambda: state.is_trusted(),  # noqa: PLW0108 - asked anew each time
    )
    return state, await state.refresh()


def home_of(env: Mapping[str, str]) -> Path:
    """Return the home folder that an environment names."""
    home = env.get("HOME")
    return Path(home) if home else Path("/")


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
