"""Finds out, by trying, how this machine can contain processes. Blocking."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agent_core.workspace.sandbox.backends.keeper import find_shell
from agent_core.workspace.sandbox.values import Boundaries, SandboxCapability

WHERE: Final = (
    *("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/run/wrappers/bin"),
    *("/usr/sbin", "/sbin"),
)
"""Folders where the system keeps programs: programs elsewhere on a PATH may come from any user."""
TRY_S: Final = 10.0
HAS_DISABLE_USERNS: Final = (0, 8)
SEATBELT: Final = Path("/usr/bin/sandbox-exec")
INSTALL: Final = (
    "install it (`apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`)"
)
ALLOW: Final = (
    "let this user make user namespaces: `sysctl kernel.unprivileged_userns_clone=1`, on Ubuntu 24.04 and later an "
    "AppArmor profile for bwrap or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, in a container the options "
    "that allow it; then start again"
)
# Each line is one thing that must not be so; whatever is wrong is named.
CHECKS: Final = """
[ "$(ls /sys/class/net 2>/dev/null)" = "" ] || echo "/sys is visible"
grep -q '^ *lo:' /proc/net/dev && [ "$(grep -c : /proc/net/dev)" = 1 ] || echo "the network is there"
( : > "$1/outside" ) 2>/dev/null && echo "it can write outside"
( : > "$2/inside" ) 2>/dev/null || echo "it cannot write inside"
grep -q '^Seccomp:.*2' /proc/self/status || echo "system calls are not filtered"
grep -q '^CapEff:.*0000000000000000' /proc/self/status || echo "it has capabilities"
exit 0
"""


class Prober:
    """Probes once, when it is first asked; to be shared by the sessions of a process."""

    def __init__(self, result: SandboxCapability | None = None) -> None:
        """Create a prober; `result` is an earlier result, None: probe when first asked."""
        self._result = result
        self._lock = threading.Lock()

    def containing(self) -> SandboxCapability:
        """Return how this machine contains processes. Blocking, up to some seconds the first time."""
        with self._lock:
            if self._result is None:
                self._result = probe()
            return self._result


def probe() -> SandboxCapability:
    """Try each rung of the ladder for real, the best first."""
    if sys.platform == "darwin":
        return _seatbelt()
    if sys.platform != "linux":
        why = f"there is no containment for {sys.platform}; use WSL 2 on Windows"
        return SandboxCapability(level="none", how="nothing", why_not_full=why)
    return on_linux(find_program("bwrap"))


def on_linux(
    bwrap: str | None, *, landlock: Callable[[], int | None] | None = None
) -> SandboxCapability:
    """Try the rungs that Linux has.

    Args:
        bwrap: The program; None: there is none.
        landlock: Gives the version of Landlock that works here; None: try it for real.
    """
    if bwrap is None:
        why = f"bubblewrap is not installed: {INSTALL}"
    else:
        tried = try_bubblewrap(bwrap)
        if isinstance(tried, SandboxCapability):
            return tried
        why = f"bubblewrap does not work here ({tried}): {ALLOW}"
    if landlock is None:
        from agent_core.workspace.sandbox.backends.landlock import try_landlock  # noqa: PLC0415 - seldom needed

        landlock = try_landlock
    abi = landlock()
    if abi is None:
        return SandboxCapability(level="none", how="nothing", why_not_full=why)
    return SandboxCapability(level="partial", how=f"Landlock {abi}", why_not_full=why)


def find_program(name: str) -> str | None:
    """Find a program of the system that nobody but its administrator can have put there."""
    for folder in WHERE:
        path = Path(folder, name)
        try:
            found = path.stat()
        except OSError:
            continue
        is_ours = found.st_uid == 0 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISREG(found.st_mode) and is_ours and os.access(path, os.X_OK):
            return str(path)
    return None


def try_bubblewrap(program: str) -> SandboxCapability | str:
    """Contain a small script with the profile that is used later; gives what is wrong if it does not hold."""
    version = _version(program)
    if version is None:
        return "it does not say its version"
    if find_shell() is None:
        return "there is no bash"
    numbers = tuple(int(part) for part in version.split("."))
    why = ""
    for forbids in (True, False) if numbers >= HAS_DISABLE_USERNS else (False,):
        containing = SandboxCapability(
            level="full", how=f"bubblewrap {version}", program=program, can_forbid_userns=forbids
        )
        why = _what_is_wrong(containing, program)
        if not why:
            return containing
    return why


def _what_is_wrong(containing: SandboxCapability, program: str) -> str:
    from agent_core.workspace.sandbox.backends.bubblewrap import Bubblewrap  # noqa: PLC0415 - it imports much

    with tempfile.TemporaryDirectory(prefix="tiller-probe-") as made:
        top = Path(os.path.realpath(made))
        (inside := top / "inside").mkdir()
        (outside := top / "outside").mkdir()
        env = {"PATH": os.defpath}
        sandbox = Bubblewrap(containing, Boundaries(roots=(inside,), env=env), homes=())
        try:
            argv = ("/bin/sh", "-c", CHECKS, "sh", str(outside), str(inside))
            launch = sandbox.wrap(argv, cwd=inside, env=env, needs=frozenset())
            # The keeper would wait for ever; the script alone is what is tried.
            command_line = [
                *launch.argv[launch.argv.index(program) : launch.argv.index("--") + 1],
                *argv,
            ]
            try:
                ended = subprocess.run(  # noqa: S603 - a fixed program of the system
                    command_line,
                    env=dict(launch.env),
                    pass_fds=launch.pass_fds,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=TRY_S,
                    check=False,
                )
            finally:
                launch.started()
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            sandbox.close()
    said = (ended.stderr + ended.stdout).decode("utf-8", "replace").strip()
    if ended.returncode != 0 or said:
        return " ".join(said.split())[:300] or f"exit code {ended.returncode}"
    return ""


def _version(program: str) -> str | None:
    try:
        said = subprocess.run(  # noqa: S603 - a fixed program of the system
            [program, "--version"], capture_output=True, timeout=TRY_S, check=False, env={}
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else None


def _seatbelt() -> SandboxCapability:
    why = (
        "sandbox-exec hides less than namespaces do and has not been tried on this version of macOS"
    )
    if not SEATBELT.exists():
        return SandboxCapability(
            level="none", how="nothing", why_not_full=f"{SEATBELT} is not there"
        )
    return SandboxCapability(
        level="partial", how="sandbox-exec", program=str(SEATBELT), why_not_full=why
    )
