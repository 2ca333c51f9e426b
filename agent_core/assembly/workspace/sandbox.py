"""Contains the processes of a session's tools, as the settings and the machine allow."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from anyio import to_thread

from agent_core.assembly.workspace.added_roots import AddedRoots
from agent_core.assembly.workspace.sandbox_per_roots import SandboxPerRoots
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.values import ContainmentSettings
from agent_core.workspace.permissions.secret_access import SecretAccess
from agent_core.workspace.sandbox import (
    SWITCHED_OFF,
    Boundaries,
    Prober,
    Sandbox,
    SandboxCapability,
    Uncontained,
    sandbox_for,
)
from agent_core.workspace.sandbox.selection import homes_of

QUARANTINE = "quarantine"
ELSEWHERE = SandboxCapability(
    level="none",
    how="nothing",
    why_not_full="the workspace is elsewhere; what contains its processes is not known",
)

log = logging.getLogger(__name__)


async def contain(
    root: Path,
    added: AddedRoots,
    *,
    setting: Literal["auto", "off"],
    more: ContainmentSettings,
    prober: Prober,
    env: Mapping[str, str],
    paths: AppPaths,
    outputs: Path,
    secrets: SecretAccess,
) -> Sandbox:
    """Create the sandbox of a workspace; the caller closes it, on a thread.

    Args:
        root: The workspace, absolute and resolved.
        added: Further folders of the workspace; read again before each command.
        setting: Value of the sandbox setting of the user.
        more: Further access that the user's settings allow to commands.
        prober: Probes which containment the machine supports and caches the result.
        env: Environment of the connection that prompted.
        paths: Tiller's own folders, hidden from commands.
        outputs: The readable part of `paths`: whole outputs of earlier commands of the session.
        secrets: Secret files of the workspace that commands can read.
    """
    # As it is now: it may be exchanged while another thread reads it.
    variables = dict(env)

    def bounded(containing: SandboxCapability, roots: tuple[Path, ...]) -> Sandbox:
        boundaries = Boundaries(
            roots=roots,
            env=variables,
            hidden=(paths.config, paths.data, paths.runtime),
            readable=(outputs, *_own_environment(variables)),
            passed_variables=more.pass_variables,
            readable_extra=read_paths(more, env=variables),
            visible=lambda: secrets.allowed,
            quarantine=paths.data / QUARANTINE,
        )
        return sandbox_for(containing, boundaries)

    def made() -> Sandbox:
        containing = SWITCHED_OFF if setting == "off" else _containing(prober)
        following = SandboxPerRoots(
            lambda: (root, *added.trusted), made=lambda roots: bounded(containing, roots)
        )
        added.settle = following.prepare
        return following

    return await to_thread.run_sync(made)


def read_paths(more: ContainmentSettings, *, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return what the settings show to commands; `~` is the home that the environment names. Pure."""
    home = env.get("HOME", "")
    spelt = (f"{home}{one[1:]}" if one.startswith("~") else one for one in more.read_paths)
    return tuple(Path(one) for one in spelt if one.startswith("/"))


def _own_environment(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the environment that Tiller is installed in, when a home hides it: programs of it are started for tools."""
    own = Path(sys.prefix).resolve()
    is_hidden = any(own.is_relative_to(home) for home in homes_of(env) if home != own)
    return (own,) if is_hidden and sys.prefix != sys.base_prefix else ()


def _containing(prober: Prober) -> SandboxCapability:
    """Return what the machine can do; when that cannot be found out, nothing counts as contained."""
    try:
        return prober.containing()
    except Exception as error:
        # The user's session must open all the same: commands then ask.
        log.exception("what contains commands could not be found out")
        why = f"what this machine can do could not be found out ({type(error).__name__})"
        return SandboxCapability(level="none", how="nothing", why_not_full=why)


async def contain_elsewhere(root: Path, added: AddedRoots, **options: object) -> Sandbox:
    """Return a sandbox that contains nothing: the provider of the workspace's ports is responsible for containment."""
    _ = root, added, options
    return Uncontained(ELSEWHERE)


def notice_of(sandbox: Sandbox, *, setting: Literal["auto", "off"]) -> tuple[str, ...]:
    """Report that commands are not contained, when the user did not choose that; nothing otherwise."""
    why = sandbox.containing.why_not_full
    if setting == "off" or why is None or why == ELSEWHERE.why_not_full:
        return ()
    held = "only partly contained" if sandbox.containing.level == "partial" else "not contained"
    return (f"commands are {held} here: {why}. `tiller doctor` says more",)
