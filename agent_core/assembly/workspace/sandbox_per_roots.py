"""Containment for a workspace whose folders come and go: each command is held in by the folders of its moment."""

import threading
from collections.abc import Callable, Mapping
from errno import EPERM
from pathlib import Path

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox import Launch, Sandbox, SandboxCapability

JUST_CHANGED = SandboxCapability(
    level="none", how="nothing", why_not_full="the folders of the workspace have just changed"
)


class SandboxPerRoots:
    """One containment per set of folders, for a command that began among some ends among the same."""

    def __init__(
        self,
        roots: Callable[[], tuple[Path, ...]],
        *,
        made: Callable[[tuple[Path, ...]], Sandbox],
    ) -> None:
        """Make the containment of the folders that there are now. Blocking.

        Args:
            roots: The folders of the moment that commands may change.
            made: Makes the containment for some. Blocking.
        """
        self._roots = roots
        self._make = made
        self._turn = threading.Lock()
        self._made: dict[tuple[Path, ...], Sandbox] = {}
        self.prepare()

    @property
    def containing(self) -> SandboxCapability:
        """Containment in force now. Not blocking: nothing counts as contained until `prepare` has seen a change."""
        made = self._made.get(self._roots())
        return JUST_CHANGED if made is None else made.containing

    def prepare(self) -> None:
        """Record that the folders may have changed. Blocking."""
        _ = self._now()

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking.

        Raises:
            OSError: Among these folders it cannot be contained, and it was judged among others, where it could be.
        """
        now = self._now()
        if "uncontained" not in needs and now.containing.level == "none":
            with self._turn:
                others = [one for one in self._made.values() if one is not now]
            if any(one.containing.level != "none" for one in others):
                message = "the folders of the workspace have changed, and among these commands cannot be contained; run it again"
                raise OSError(EPERM, message)
        return now.wrap(argv, cwd=cwd, env=env, needs=needs)

    def close(self) -> None:
        """Remove what commands kept. Blocking, idempotent."""
        with self._turn:
            for sandbox in self._made.values():
                sandbox.close()

    def _now(self) -> Sandbox:
        roots = self._roots()
        with self._turn:
            if roots not in self._made:
                self._made[roots] = self._make(roots)
            return self._made[roots]
