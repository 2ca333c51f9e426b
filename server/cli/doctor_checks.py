"""What `tiller doctor` looks at. Blocking; starts programs of the system."""

import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_core.providers.keyring_store import can_have_keyring
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings import Settings
from agent_core.workspace.sandbox import (
    SWITCHED_OFF,
    Boundaries,
    Containing,
    Sandbox,
    sandbox_for,
    scrubbed,
)
from agent_core.workspace.sandbox.probe import INSTALL, find_program
from server import VERSION
from server.cli.doctor_check import Check
from server.cli.doctor_mcp import mcp_check

TRY_S: Final = 10.0
PRIVATE: Final = stat.S_IRWXG | stat.S_IRWXO
SWITCHES: Final[Mapping[str, str]] = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}
"""What the system says of user namespaces: file, and the value that means no."""


def checks(
    *,
    workspace: Path,
    env: Mapping[str, str],
    paths: AppPaths,
    settings: Settings,
    containing: Containing,
) -> Iterator[Check]:
    """Look at everything, one thing after the other.

    Args:
        workspace: The folder for which containment is told.
        env: The environment as it would be that of a session.
        paths: Our own folders.
        settings: The user's.
        containing: What this machine can do.
    """
    yield Check(name="tiller", status="ok", found=f"{VERSION}, Python {sys.version.split()[0]}")
    yield _settings(settings, paths)
    is_off = settings.values.sandbox == "off"
    boundaries = Boundaries(roots=(workspace,), env=env)
    sandbox = sandbox_for(SWITCHED_OFF if is_off else containing, boundaries)
    yield _containment(sandbox, workspace)
    yield _promises(sandbox)
    yield _environment(env)
    if sys.platform == "linux":
        yield _bubblewrap()
        yield _namespaces()
    yield _private(paths)
    yield _program(
        "git", env, without="commands with git fail", advice="install git with your package manager"
    )
    yield _program(
        "rg",
        env,
        without="searches are slower",
        advice="install ripgrep, or Tiller with its extra `search`",
    )
    yield _keyring()
    yield mcp_check(paths, workspace=workspace, env=env, sandbox=sandbox)


def _settings(settings: Settings, paths: AppPaths) -> Check:
    if not settings.problems:
        return Check(name="settings", status="ok", found=str(paths.settings))
    problems = "; ".join(str(one) for one in settings.problems)
    return Check(name="settings", status="note", found=problems, advice=f"repair {paths.settings}")


def _containment(sandbox: Sandbox, workspace: Path) -> Check:
    found = sandbox.containing
    if found.level == "full":
        return Check(
            name="containment", status="ok", found=f"full, by {found.how}, for {workspace}"
        )
    told = f"{found.level}, by {found.how}: commands are judged as if nothing contained them"
    return Check(name="containment", status="missing", found=told, advice=found.why_not_full)


def _promises(sandbox: Sandbox) -> Check:
    if sandbox.containing.level == "full":
        told = "commands cannot write outside, reach the network or the daemon, or see secrets (P2)"
        return Check(name="promises", status="ok", found=told)
    told = "P2 of SECURITY.md does not hold here: a command that runs has your rights"
    return Check(
        name="promises", status="missing", found=told, advice="see the line about containment"
    )


def _environment(env: Mapping[str, str]) -> Check:
    removed = scrubbed(env).removed
    if not removed:
        return Check(name="environment", status="ok", found="commands see all of its names")
    return Check(
        name="environment",
        status="ok",
        found=f"{len(removed)} names are kept from commands: {', '.join(removed)}",
    )


def _bubblewrap() -> Check:
    program = find_program("bwrap")
    if program is None:
        return Check(name="bubblewrap", status="missing", found="not there", advice=INSTALL)
    return Check(name="bubblewrap", status="ok", found=f"{_version(program)} ({program})")


def _namespaces() -> Check:
    for name, means_no in SWITCHES.items():
        try:
            value = Path(name).read_text("ascii").strip()
        except OSError:
            continue
        if value == means_no:
            setting = name.removeprefix("/proc/sys/").replace("/", ".")
            return Check(
                name="user namespaces",
                status="note",
                found=f"{setting} is {value}",
                advice=f"if containment is not full: `sysctl {setting}=…`, or a profile that allows them to bwrap",
            )
    return Check(name="user namespaces", status="ok", found="nothing forbids them")


def _private(paths: AppPaths) -> Check:
    try:
        is_open = bool(paths.auth.stat().st_mode & PRIVATE)
    except OSError:
        return Check(name="keys", status="ok", found=f"{paths.auth} is not there")
    if not is_open:
        return Check(name="keys", status="ok", found=f"{paths.auth} is yours alone")
    return Check(
        name="keys",
        status="missing",
        found=f"others may read {paths.auth}",
        advice=f"chmod 600 {paths.auth}",
    )


def _program(name: str, env: Mapping[str, str], *, without: str, advice: str) -> Check:
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=env.get("PATH")) or shutil.which(name, path=str(beside))
    if found is None:
        return Check(name=name, status="note", found=f"not there: {without}", advice=advice)
    return Check(name=name, status="ok", found=f"{_version(found)} ({found})")


def _keyring() -> Check:
    if can_have_keyring():
        return Check(name="keyring", status="ok", found="can be used for keys")
    return Check(
        name="keyring",
        status="note",
        found="none: keys are kept in auth.json",
        advice="nothing, or install Tiller with a keyring of your desktop",
    )


def _version(program: str) -> str:
    try:
        said = subprocess.run(  # noqa: S603 - a program that sessions start too
            [program, "--version"], capture_output=True, timeout=TRY_S, check=False
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return "no version"
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else "no version"
