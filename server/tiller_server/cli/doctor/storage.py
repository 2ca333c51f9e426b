"""Checks of folders, disk, sessions, the daemon and this workspace, for `tiller doctor`. Blocking."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_core.assembly.library import ledger_problems
from agent_core.kernel.text import format_size
from agent_core.resources.paths import AppPaths
from tiller_server import VERSION
from tiller_server.cli.doctor.check import Check
from tiller_server.cli.subcommands.trust import look_at
from tiller_server.daemon.control_client import ask_daemon
from tiller_server.daemon.shim.connection import Unreachable

ROOM_BYTES: Final = 200 * 1024 * 1024
"""With less free, sessions will soon not be written."""
INSTRUCTIONS: Final = ("AGENTS.md", "CLAUDE.md")


def place_checks(paths: AppPaths, *, workspace: Path, env: Mapping[str, str]) -> Iterator[Check]:
    """Look at everything that lies on the disk."""
    yield _folders(paths)
    yield _room(paths)
    yield _sessions(paths)
    yield _costs(paths)
    yield _daemon(env)
    yield _trust(paths, workspace)
    yield _repository(workspace)
    yield _instructions(workspace)


def _folders(paths: AppPaths) -> Check:
    for folder in (paths.config, paths.data, paths.runtime):
        if not _can_write(folder):
            return Check(
                name="folders",
                status="missing",
                found=f"{folder} cannot be written to",
                advice="make it yours (chown), or name another: TILLER_CONFIG_DIR, TILLER_DATA_DIR, TILLER_RUNTIME_DIR",
            )
    return Check(name="folders", status="ok", found=f"{paths.config}, {paths.data} can be written")


def _room(paths: AppPaths) -> Check:
    free = shutil.disk_usage(_nearest(paths.data)).free
    summary = f"{format_size(free)} free for sessions"
    if free >= ROOM_BYTES:
        return Check(name="disk", status="ok", found=summary)
    advice = f"make room, or name another disk: TILLER_DATA_DIR (now {paths.data})"
    return Check(name="disk", status="missing", found=summary, advice=advice)


def _sessions(paths: AppPaths) -> Check:
    files = [one for one in paths.sessions.glob("*/*.jsonl") if ".events." not in one.name]
    count = f"{len(files)} session{'' if len(files) == 1 else 's'} in {paths.sessions}"
    torn = [one for one in files if not _ends_whole(one)]
    if not torn:
        return Check(name="sessions", status="ok", found=count)
    return Check(
        name="sessions",
        status="note",
        found=f"{count}; the last line of {len(torn)} is torn, {torn[0].name} for one",
        advice="nothing: it is cut off and kept beside the file when the session is opened",
    )


def _costs(paths: AppPaths) -> Check:
    problems = ledger_problems(paths)
    if not problems:
        return Check(name="costs", status="ok", found=f"the ledger of model calls is {paths.costs}")
    advice = "tiller costs; it takes over what waits when the ledger can be written"
    return Check(name="costs", status="note", found="; ".join(problems), advice=advice)


def _daemon(env: Mapping[str, str]) -> Check:
    try:
        status = ask_daemon(env, "status")
    except Unreachable as error:
        advice = "tiller daemon stop --force; the next editor starts another"
        return Check(name="daemon", status="missing", found=str(error), advice=advice)
    if status is None:
        return Check(name="daemon", status="ok", found="not running; editors start it")
    version = status.get("version")
    summary = f"process {status.get('pid')}, Tiller {version}"
    if version == VERSION:
        return Check(name="daemon", status="ok", found=summary)
    return Check(
        name="daemon",
        status="note",
        found=f"{summary}, while this is {VERSION}",
        advice="tiller daemon stop; the next editor starts the new one",
    )


def _trust(paths: AppPaths, workspace: Path) -> Check:
    if look_at(paths, workspace).is_trusted:
        return Check(name="trust", status="ok", found=f"{workspace} is trusted")
    return Check(
        name="trust",
        status="note",
        found=f"{workspace} is not trusted: its settings, skills and instructions do not count",
        advice=f"look at it, then: tiller trust add {workspace}; for one run: tiller run --trust",
    )


def _repository(workspace: Path) -> Check:
    """Look at the files of git: to ask git itself would let the repository say what it starts."""
    repository = next(
        (one / ".git" for one in (workspace, *workspace.parents) if (one / ".git").exists()), None
    )
    if repository is None:
        return Check(
            name="repository",
            status="note",
            found=f"{workspace} is in no git repository: reviews and the way back by git are not there",
            advice="nothing, or git init",
        )
    if (_common(repository) / "shallow").exists():
        return Check(
            name="repository",
            status="note",
            found="a shallow clone: tiller review may not find the commit that both sides have",
            advice="git fetch --unshallow; in CI set fetch-depth: 0",
        )
    return Check(name="repository", status="ok", found="git, with its whole history")


def _common(repository: Path) -> Path:
    """Return the folder of git that holds the history: a worktree and a submodule only name it."""
    if repository.is_dir():
        return repository
    try:
        named = repository.read_text("utf-8").removeprefix("gitdir:").strip()
        folder = repository.parent / named
        common = folder / "commondir"
        return folder / common.read_text("utf-8").strip() if common.exists() else folder
    except (OSError, UnicodeError):
        return repository


def _instructions(workspace: Path) -> Check:
    there = [name for name in INSTRUCTIONS if (workspace / name).is_file()]
    if there:
        return Check(name="instructions", status="ok", found=", ".join(there))
    found = f"no {' or '.join(INSTRUCTIONS)} in {workspace}"
    advice = "nothing; a short AGENTS.md (how to build, how to test) saves turns and money"
    return Check(name="instructions", status="note", found=found, advice=advice)


def _can_write(folder: Path) -> bool:
    nearest = _nearest(folder)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _nearest(folder: Path) -> Path:
    """Return a folder, or the nearest above it that is there."""
    # What lies below a file is not there, and asking for it is an error of its own.
    return next((one for one in (folder, *folder.parents) if os.path.lexists(one)), Path("/"))


def _ends_whole(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            end = stream.seek(0, os.SEEK_END)
            _ = stream.seek(max(end - 1, 0))
            return end == 0 or stream.read(1) == b"\n"
    except OSError:
        return True
