"""Trust in a workspace, and what of its settings comes into force with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_core.assembly.options import allowance, session_options
from agent_core.events import PermissionMode
from agent_core.kernel import Clock
from agent_core.resources.paths import AppPaths, project_folder
from agent_core.resources.settings import Layer, Settings, load_settings
from agent_core.resources.trust import WorkspaceTrust
from agent_core.resources.trust_store import TrustStore
from agent_core.session.parts import Place, SessionOptions

STRICTEST_FIRST: Sequence[PermissionMode] = ("plan", "ask", "auto", "yolo")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """The settings of a session with and without those of its workspace."""

    layers: tuple[Layer, ...]
    """All but the project's."""
    root: Path
    scratch: Path
    trust: WorkspaceTrust | None

    async def load(self, *, is_trusted: bool) -> Settings:
        """Read them; the workspace's file is not even opened before it is trusted."""
        layers = [*self.layers, project_layer(self.root, self.trust)]
        return await load_settings(layers, project_trusted=is_trusted)

    async def apply(self, options: SessionOptions, place: Place, *, is_trusted: bool) -> None:
        """Put in force from the next run on what a running session can change."""
        values = (await self.load(is_trusted=is_trusted)).values
        made = session_options(values, scratch=self.scratch)
        options.retry = made.retry
        if made.compaction.enabled != options.compaction.enabled:
            options.auto_compact = made.auto_compact
        options.compaction = made.compaction
        options.tool_execution = made.tool_execution
        options.skip_on_steer = made.skip_on_steer
        options.steer_grace_s = made.steer_grace_s
        options.cache = made.cache
        options.tool_options = made.tool_options
        place.allowance.most = allowance(values.budgets).most
        standing = place.standing
        standing.fallback = values.permission.fallback
        standing.timeout_s = values.permission.timeout_s
        # A project tightens; what the user chose meanwhile is not loosened by taking its trust away.
        modes = (standing.mode, values.permission.mode)
        standing.mode = min(modes, key=STRICTEST_FIRST.index)


def project_layer(root: Path, trust: WorkspaceTrust | None) -> Layer:
    """Give the layer of the workspace's own settings: what was trusted of them, and nothing that came since."""
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
    trust = WorkspaceTrust(root, store=store, default=values.default_project_trust, clock=clock)
    _ = await trust.look()
    return trust
