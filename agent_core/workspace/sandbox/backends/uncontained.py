"""Processes that nothing contains: only secrets are kept back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.environment import scrubbed
from agent_core.workspace.sandbox.values import Launch, SandboxCapability

SWITCHED_OFF: Final = SandboxCapability(
    level="none",
    how="nothing",
    why_not_full='the setting "sandbox" is "off"; take it out of settings.json to contain commands again',
)


class Uncontained:
    """A sandbox that contains nothing; the environment is that of a contained command."""

    def __init__(
        self, containing: SandboxCapability = SWITCHED_OFF, *, passed: tuple[str, ...] = ()
    ) -> None:
        self.containing = containing
        self._passed = passed

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Remove from the environment what a contained command would not see of it either."""
        _ = cwd, needs
        temporary = {name: env[name] for name in ("TMPDIR",) if name in env}
        return Launch(argv=argv, env={**scrubbed(env, passed=self._passed).env, **temporary})

    def close(self) -> None:
        """Do nothing: nothing is kept."""
