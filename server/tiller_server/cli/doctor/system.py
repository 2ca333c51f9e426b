"""Checks of this machine for `tiller doctor`. Blocking; starts programs of the system."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.assembly.config import rule_problems
from agent_core.assembly.workspace import read_paths
from agent_core.providers.auth.store import can_have_keyring
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.layers import Settings
from agent_core.tools.builtin.search.ripgrep import OLDEST, ripgrep_programs
from agent_core.tools.port import version_in
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program
from agent_core.workspace.sandbox import (
    SWITCHED_OFF,
    Boundaries,
    Sandbox,
    SandboxCapability,
    sandbox_for,
    scrubbed,
)
from agent_core.workspace.sandbox.guards.secret_places import secret_places
from agent_core.workspace.sandbox.home_view import home_view
from agent_core.workspace.sandbox.selection import INSTALL, find_program, homes_of
from tiller_server import VERSION
from tiller_server.cli.doctor.check import Check, CheckStatus
from tiller_server.cli.doctor.mcp import mcp_check

TRY_S: Final = 10.0
OWN_SEARCH: Final = "Tiller searches by itself, which is slower"
RIPGREP: Final = ".".join(map(str, OLDEST))
MANY_ENTRIES: Final = 100_000
MOST_COUNTED: Final = 1_000_000
ENTRIES_PER_S: Final = 75_000
"""So many files and folders containment looks at before the first command: 500,000 took 4.5 s to 9.6 s on two cores."""
PRIVATE: Final = stat.S_IRWXG | stat.S_IRWXO
SWITCHES: Final[Mapping[str, str]] = {
    "/proc/sys/user/max_user_namespaces": "0",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
}
"""Files in which the kernel reports on user namespaces, each with the value that forbids them."""


def checks(
    *,
    workspace: Path,
    env: Mapping[str, str],
    paths: AppPaths,
    settings: Settings,
    containing: SandboxCapability,
) -> Iterator[Check]:
    """Run the checks, one after the other.

    Args:
        workspace: Folder for which containment is reported.
        env: Environment that a session would have.
        paths: Tiller's own folders.
        settings: Settings of the user.
        containing: Containment that this machine supports.
    """
    yield Check(name="tiller", status="ok", found=f"{VERSION}, Python {sys.version.split()[0]}")
    yield _settings(settings, paths)
    yield _rules(paths, env)
    is_off = settings.values.sandbox == "off"
    more = settings.values.containment
    boundaries = Boundaries(
        roots=(workspace,),
        env=env,
        passed_variables=more.pass_variables,
        readable_extra=read_paths(more, env=env),
    )
    sandbox = sandbox_for(SWITCHED_OFF if is_off else containing, boundaries)
    yield _containment(sandbox, workspace)
    if sandbox.containing.level == "full":
        yield workspace_size(workspace)
    yield _promises(sandbox)
    yield _environment(boundaries, paths)
    yield from _homes(boundaries, paths)
    if sys.platform == "linux":
        yield _bubblewrap()
        yield _namespaces()
    yield _private(paths)
    yield _program(
        "git",
        env,
        workspace,
        without="commands with git fail",
        advice="install git with your package manager",
    )
    yield _ripgrep(env, workspace)
    yield _keyring()
    yield mcp_check(paths, workspace=workspace, env=env, sandbox=sandbox)


def _settings(settings: Settings, paths: AppPaths) -> Check:
    if not settings.problems:
        return Check(name="settings", status="ok", found=str(paths.settings))
    problems = "; ".join(str(one) for one in settings.problems)
    status = "missing" if settings.refusals else "note"
    return Check(name="settings", status=status, found=problems, advice=f"repair {paths.settings}")


def _rules(paths: AppPaths, env: Mapping[str, str]) -> Check:
    if problems := rule_problems(paths, env=env):
        return Check(
            name="policy.json", status="note", found="; ".join(problems), advice="repair it"
        )
    return Check(name="policy.json", status="ok", found="no problem in it")


def _containment(sandbox: Sandbox, workspace: Path) -> Check:
    found = sandbox.containing
    if found.level == "full":
        return Check(
            name="containment", status="ok", found=f"full, by {found.how}, for {workspace}"
        )
    summary = f"{found.level}, by {found.how}: commands are judged as if nothing contained them"
    return Check(
        name="containment", status=_uncontained(sandbox), found=summary, advice=found.why_not_full
    )


def workspace_size(workspace: Path, *, many: int = MANY_ENTRIES) -> Check:
    """Return what a workspace with more files and folders than `many` costs: before a first command all are looked at."""
    count = _count_entries(workspace)
    found = f"{count:,} files and folders"
    if count <= many:
        return Check(name="workspace size", status="ok", found=found)
    at_least = "at least " if count >= MOST_COUNTED else ""
    cost = f"the first contained command of each session waits some {count / ENTRIES_PER_S:.0f} s until all were looked at"
    return Check(
        name="workspace size",
        status="note",
        found=f"{at_least}{found}: {cost}, later commands do not",
        advice="open a smaller folder as the workspace; where not all can be looked at, commands ask",
    )


def _count_entries(workspace: Path) -> int:
    """Count what is below a folder, through no links, up to a limit."""
    count, left = 0, [str(workspace)]
    while left and count < MOST_COUNTED:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
    return min(count, MOST_COUNTED)


def _uncontained(sandbox: Sandbox) -> CheckStatus:
    """Return the status of less than full containment: `note` when the user switched it off, else `missing`."""
    return "note" if sandbox.containing == SWITCHED_OFF else "missing"


def _promises(sandbox: Sandbox) -> Check:
    if sandbox.containing.level == "full":
        summary = (
            "commands cannot write outside, reach the network or the daemon, or see secrets (P2)"
        )
        return Check(name="promises", status="ok", found=summary)
    summary = "P2 of SECURITY.md does not hold here: a command that runs has your rights"
    return Check(
        name="promises",
        status=_uncontained(sandbox),
        found=summary,
        advice="see the line about containment",
    )


def _environment(boundaries: Boundaries, paths: AppPaths) -> Check:
    found = scrubbed(boundaries.env, passed=boundaries.passed_variables)
    summary = f"commands get {len(found.env)} variables: {', '.join(sorted(found.env))}"
    if not found.removed:
        return Check(name="environment", status="ok", found=summary)
    return Check(
        name="environment",
        status="ok",
        found=f"{summary}; {len(found.removed)} are kept from them: {', '.join(found.removed)}",
        advice=f'to let one through, name it in "containment": {{"passVariables": [...]}} of {paths.settings}',
    )


def _homes(boundaries: Boundaries, paths: AppPaths) -> Iterator[Check]:
    """List what contained commands may read of the homes."""
    env, homes = boundaries.env, homes_of(boundaries.env)
    own = (paths.config, paths.data, paths.runtime)
    view = home_view(
        homes=homes,
        env=env,
        path=env.get("PATH", ""),
        extra=boundaries.readable_extra,
        secrets=secret_places(homes=homes, env=env, own=own),
    )
    for home in view.closed:
        places = (*view.shown, *(link for link, _ in view.links))
        named = [f"~/{one.relative_to(home)}" for one in sorted(places) if one.is_relative_to(home)]
        yield Check(
            name="home",
            status="ok",
            found=f"of {home} contained commands read {', '.join(named) or 'nothing'}",
            advice=f'to show more of it, name that in "containment": {{"readPaths": [...]}} of {paths.settings}',
        )
    for home in homes:
        if not any(home.is_relative_to(one) for one in view.closed) and home.is_dir():
            yield Check(
                name="home",
                status="note",
                found=f"contained commands read all of {home} but the usual places of keys",
                advice='nothing, if you named it in "containment": {"readPaths": [...]} or if it is a folder of the system',
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


def _program(
    name: str, env: Mapping[str, str], workspace: Path, *, without: str, advice: str
) -> Check:
    path = f"{env.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    found = find_outside_program(name, env_path=path, roots=(workspace,))
    if found is None and (inside := shutil.which(name, path=path)) is not None:
        summary = f"only {inside}, which the workspace can exchange, so it is not used: {without}"
        return Check(name=name, status="note", found=summary, advice=advice)
    if found is None:
        return Check(name=name, status="note", found=f"not there: {without}", advice=advice)
    return Check(name=name, status="ok", found=f"{_version(found)} ({found})")


def _ripgrep(env: Mapping[str, str], workspace: Path) -> Check:
    """Return which ripgrep searches use, and which they pass over."""
    advice = f"install ripgrep {RIPGREP} or newer, or Tiller with its extra `search`"
    passed_over: list[str] = []
    for program in ripgrep_programs(env, (workspace,)):
        version = _version(program)
        found = f"{version} ({program})"
        if (version_in(version) or ()) >= OLDEST:
            note = "".join(f"; not used: {one}, older than {RIPGREP}" for one in passed_over)
            return Check(name="rg", status="ok", found=found + note)
        passed_over.append(found)
    if passed_over:
        summary = f"{OWN_SEARCH}: {', '.join(passed_over)} is older than {RIPGREP}"
        return Check(name="rg", status="note", found=summary, advice=advice)
    return _program("rg", env, workspace, without=OWN_SEARCH, advice=advice)


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
