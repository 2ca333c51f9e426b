"""Finds out how this machine can contain processes, and chooses how those of one workspace are contained."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.workspace.sandbox.backends.keeper import find_shell
from agent_core.workspace.sandbox.backends.uncontained import Uncontained
from agent_core.workspace.sandbox.values import Boundaries, Sandbox, SandboxCapability

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


NOT_A_ROOT: Final = tuple(
    Path(f"/{one}")
    for one in ("tmp", "var", "run", "etc", "usr", "bin", "sbin", "lib", "boot", "home", "root", "opt")
)  # fmt: skip
"""A workspace that is one of these, or around one, cannot be laid open for writing."""
NEVER_INSIDE: Final = tuple(Path(f"/{one}") for one in ("proc", "sys", "dev", "boot"))


def sandbox_for(containing: SandboxCapability, boundaries: Boundaries) -> Sandbox:
    """Return the containment for a workspace: never a lower rung without saying why. Blocking."""
    homes = homes_of(boundaries.env)
    why = why_uncontainable(boundaries.roots, homes=homes)
    if why is not None:
        uncontainable = SandboxCapability(level="none", how="nothing", why_not_full=why)
        return Uncontained(uncontainable, passed=boundaries.passed_variables)
    match containing.level, containing.how.partition(" ")[0]:
        case "full", _:
            from agent_core.workspace.sandbox.backends.bubblewrap import Bubblewrap  # noqa: PLC0415 - one of three is needed

            return Bubblewrap(containing, boundaries, homes=homes)
        case "partial", "Landlock":
            from agent_core.workspace.sandbox.backends.landlock import LandlockSandbox  # noqa: PLC0415 - as above

            return LandlockSandbox(containing, boundaries, homes=homes)
        case "partial", _:
            from agent_core.workspace.sandbox.backends.seatbelt import Seatbelt  # noqa: PLC0415 - as above

            return Seatbelt(containing, boundaries, homes=homes)
        case _:
            return Uncontained(
                replace(containing, level="none"), passed=boundaries.passed_variables
            )


def why_uncontainable(roots: tuple[Path, ...], *, homes: tuple[Path, ...]) -> str | None:
    """Return why a workspace cannot be contained; None: it can. Pure."""
    advice = "open a folder of the project alone to have commands contained"
    for root in roots:
        for place in (*homes, *NOT_A_ROOT):
            if place.is_relative_to(root):
                what = "is no project's own folder" if place == root else f"has {place} in it"
                return f"the workspace {root} {what}, and all of it would be open for writing; {advice}"
        if any(root.is_relative_to(one) for one in NEVER_INSIDE):
            return f"the workspace {root} belongs to the system; {advice}"
    return None


def homes_of(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the home that the environment names and the one of the user, as real paths. Blocking."""
    homes = [env.get("HOME", "")]
    with suppress(KeyError, OSError, ImportError):
        import pwd  # noqa: PLC0415 - not every system has it

        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    found = (Path(os.path.realpath(home)) for home in homes if home.startswith("/"))
    return tuple(dict.fromkeys(home for home in found if home != Path("/")))
