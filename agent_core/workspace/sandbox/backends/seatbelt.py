"""Contains with macOS's sandbox-exec: a profile as text. Deprecated by Apple, used by everyone, and not tried here."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.home_view import PrivateFolder
from agent_core.workspace.sandbox.survey import Survey, find_program, git_access, inner_environment
from agent_core.workspace.sandbox.values import Boundaries, Launch, SandboxCapability

NETWORK: Final = (
    '(allow network-outbound (remote ip "*:*"))',
    '(allow network-bind network-inbound (local ip "*:*"))',
    # Names are resolved by a service that listens on a unix socket.
    '(allow network-outbound (literal "/private/var/run/mDNSResponder"))',
)
UNIX_SOCKETS: Final = ('(allow network* (subpath "/"))',)


class Seatbelt:
    """Contains the processes of one workspace."""

    def __init__(
        self, containing: SandboxCapability, boundaries: Boundaries, *, homes: tuple[Path, ...]
    ) -> None:
        self.containing = containing
        self._boundaries = boundaries
        self._private = PrivateFolder()
        self._survey = Survey(boundaries, homes=homes, private=self._private)

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking."""
        _ = find_program(argv[0], cwd=cwd, path=env.get("PATH", os.defpath))
        ground = self._survey.before(env=env, git=git_access(needs))
        temporary = self._private.path
        profile = seatbelt_profile(
            writable=(*self._boundaries.roots, *ground.holds.data, temporary),
            guarded=ground.holds.read_only,
            secret=(*ground.secrets.folders, *ground.secrets.files, *ground.holds.hidden),
            readable=self._boundaries.readable,
            network="network" in needs,
            sockets="sockets" in needs,
        )
        moved = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": f"{temporary}/.cache"}
        into = self._boundaries.quarantine or temporary / "quarantine"
        return Launch(
            argv=(self.containing.program or "/usr/bin/sandbox-exec", "-p", profile, *argv),
            env={
                **inner_environment(env, passed=self._boundaries.passed_variables),
                **moved,
                "npm_config_cache": f"{temporary}/.npm",
            },
            after=lambda output, code: self._survey.after(
                ground, needs=needs, into=into, output=output, exit_code=code
            ),
        )

    def close(self) -> None:
        """Remove what commands kept in their private temporary folder."""
        self._survey.close()
        self._private.close()


def seatbelt_profile(
    *,
    writable: Iterable[Path],
    guarded: Iterable[Path],
    secret: Iterable[Path],
    readable: Iterable[Path],
    network: bool,
    sockets: bool = False,
) -> str:
    """Return a profile in the language of sandbox-exec; a later rule wins over an earlier one. Pure."""
    rules = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read ipc-posix-sem ipc-posix-shm)",
        "(allow file-read*)",
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))',
        *_paths("allow file-write*", writable),
        *_paths("deny file-read* file-write*", secret),
        *_paths("allow file-read*", readable),
        *_paths("deny file-write*", guarded),
        # Renaming what is above a guarded name would put another one in its place.
        *_literals("deny file-write-unlink", {one.parent for one in guarded}),
        "(deny network*)",
        *(NETWORK if network else ()),
        *(UNIX_SOCKETS if sockets else ()),
    ]
    return "\n".join(rules)


def _paths(rule: str, paths: Iterable[Path]) -> list[str]:
    return [f"({rule} (subpath {_quoted(path)}))" for path in paths]


def _literals(rule: str, paths: Iterable[Path]) -> list[str]:
    return [f"({rule} (literal {_quoted(path)}))" for path in sorted(paths)]


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
