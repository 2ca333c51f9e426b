"""Trust in a workspace: the first look, and the layer of settings that depends on it."""

from collections.abc import Sequence
from pathlib import Path

from agent_core.kernel import Clock
from agent_core.resources.paths import AppPaths, project_folder
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.resources.trust.store import TrustStore
from agent_core.resources.trust.workspace_trust import WorkspaceTrust


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
    trust = WorkspaceTrust(root, store=store, default=values.default_project_trust, clock=clock)
    _ = await trust.check()
    return trust
