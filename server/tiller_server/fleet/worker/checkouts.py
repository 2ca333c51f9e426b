"""Checkouts of commits: one bare mirror per repository, one folder per job. Git gets no configuration but ours."""

import base64
import logging
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import anyio
from anyio.to_thread import run_sync

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import GitAnswer, run_command
from agent_core.workspace.git.command import (
    GitCommand,
    find_git,
    git_command,
    git_environment,
)
from tiller_server.fleet.errors import FleetError, JobDeferred
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.values import Job

LOG: Final = logging.getLogger(__name__)
LEAST_FREE_BYTES: Final = 512 * 1024 * 1024
DISK_WAIT_MS: Final = 120_000
NETWORK_WAIT_MS: Final = 30_000
FETCH_S: Final = 600.0
NO_COMMIT: Final = ("not our ref", "couldn't find remote ref", "no such remote ref", "unadvertised")
NO_REPOSITORY: Final = ("not found", "does not appear to be a git repository", "does not exist")
NO_ACCESS: Final = ("authentication failed", "could not read username", "error: 403", "error: 401")
NO_SPACE: Final = "no space left on device"
USERS: Final[Mapping[str, str]] = {
    "github": "x-access-token",
    "gitlab": "oauth2",
    "gitea": "tiller",
}


NO_VARIABLES: Final[Mapping[str, str]] = {}


class CommitMissing(FleetError):
    """The repository no longer has the commit."""


class RepositoryMissing(FleetError):
    """The repository is gone, or the token may not read it."""


class Checkout(Value, frozen=True, kw_only=True):
    """The commit of a job on the disk."""

    folder: Path
    base: str
    """Commit that the change goes into, as it was at the checkout."""


class Checkouts:
    """The checkouts of one machine, below one folder; its worker processes share them."""

    def __init__(
        self,
        root: Path,
        *,
        env: Mapping[str, str],
        least_free_bytes: int = LEAST_FREE_BYTES,
    ) -> None:
        """Use a folder, which is made at the first checkout; git is looked up in the environment of the worker."""
        self._root = root
        self._least_free_bytes = least_free_bytes
        self._env = env

    async def make(self, job: Job, forge: Forge) -> Checkout:
        """Check a commit out, once; repeating it after a kill completes it.

        Raises:
            CommitMissing: The repository no longer has the commit.
            RepositoryMissing: There is no such repository for the token.
            JobDeferred: The disk is full, or the forge cannot be reached.
        """
        folder = self.folder(job)
        mirror = self.mirror(job)
        await run_sync(self._check_space)
        head_ref, base_ref = (f"refs/tiller/{job.id}/{name}" for name in ("head", "base"))
        if not await anyio.Path(mirror / "HEAD").exists():
            await self.git("init", "--quiet", "--bare", str(mirror))
        if not await self._has(mirror, base_ref):
            url = forge.clone_url.format(repo=job.repo)
            specs = [f"+{job.head}:{head_ref}", f"+{job.base}:{base_ref}"]
            fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
            await self.git("-C", str(mirror), *fetch, "--atomic", "--", url, *specs, forge=forge)
        base = await self.git("-C", str(mirror), "rev-parse", f"{base_ref}^{{commit}}")
        if not await anyio.Path(folder / "complete").exists():
            await run_sync(_remove, folder)
            source = folder / "source"
            await self.git(
                "clone", "--quiet", "--shared", "--no-checkout", str(mirror), str(source)
            )
            await self.git("-C", str(source), "fetch", "--quiet", "origin", head_ref)
            await self.git("-C", str(source), "checkout", "--quiet", "--detach", job.head)
            # Memory names a project by this address.
            address = forge.clone_url.format(repo=job.repo)
            await self.git("-C", str(source), "remote", "set-url", "origin", address)
            await anyio.Path(folder / "complete").touch()
        return Checkout(folder=folder / "source", base=base)

    async def discard(self, job: Job) -> None:
        """Remove the folder of a job, so that the next `make` checks it out anew from the mirror."""
        await run_sync(_remove, self.folder(job))

    async def remove(self, job: Job) -> None:
        """Remove the folder of a job and the references that kept its commits."""
        await run_sync(_remove, self.folder(job))
        mirror = self.mirror(job)
        if await anyio.Path(mirror).exists():
            for name in ("head", "base"):
                ref = f"refs/tiller/{job.id}/{name}"
                await self.git("-C", str(mirror), "update-ref", "-d", ref)

    async def tip(self, job: Job, forge: Forge, branch: str) -> str:
        """Return the commit of a branch on the forge; empty: there is no such branch.

        Raises:
            RepositoryMissing: There is no such repository for the token.
            JobDeferred: The forge cannot be reached.
        """
        await run_sync(self._check_space)
        url = forge.clone_url.format(repo=job.repo)
        listed = await self.git("ls-remote", "--", url, f"refs/heads/{branch}", forge=forge)
        rows = (line.split("\t") for line in listed.splitlines())
        return next((sha for sha, name in rows if name == f"refs/heads/{branch}"), "")

    def folder(self, job: Job) -> Path:
        """Return the folder of a job, which may not be there."""
        return self._root / "jobs" / str(job.id)

    def mirror(self, job: Job) -> Path:
        """Return the bare repository that jobs of a repository share, which may not be there."""
        return self._root / "mirrors" / job.forge / f"{quote(job.repo, safe='')}.git"

    async def _has(self, mirror: Path, ref: str) -> bool:
        answer = await self.ask("-C", str(mirror), "rev-parse", "--verify", "--quiet", ref)
        return answer.code == 0

    def _check_space(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._root).free
        if free < self._least_free_bytes:
            message = (
                f"the disk of {str(self._root)!r} has {free >> 20} MiB free; free some space there"
            )
            LOG.error("%s", message)
            raise JobDeferred(message, wait_ms=DISK_WAIT_MS)

    async def git(
        self,
        *arguments: str,
        forge: Forge | None = None,
        stdin: bytes = b"",
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> str:
        """Run a command of Git that must succeed, on repositories that no agent can write.

        Args:
            arguments: The command with its arguments.
            forge: Its token is sent along.
            stdin: Input of the command.
            variables: Further variables of its environment.

        Raises:
            CommitMissing: The repository no longer has the commit.
            RepositoryMissing: There is no such repository for the token.
            JobDeferred: Git failed for another reason.
        """
        answer = await self.ask(*arguments, forge=forge, stdin=stdin, variables=variables)
        if answer.code:
            raise _error_of(answer.errors)
        return answer.output.decode(errors="replace").strip()

    async def ask(
        self,
        *arguments: str,
        forge: Forge | None = None,
        stdin: bytes = b"",
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> GitAnswer:
        """Run a command of Git as `git` does, and return its exit code and output.

        Raises:
            JobDeferred: It took too long, or there is no Git.
        """
        command = await run_sync(
            partial(self._command, arguments, {**variables, **_login_variables(forge)})
        )
        with anyio.move_on_after(FETCH_S):
            return await run_command(command, self._root, stdin=stdin)
        message = f"git took longer than {FETCH_S:.0f} s"
        raise JobDeferred(message, wait_ms=NETWORK_WAIT_MS)

    def _command(self, arguments: Sequence[str], variables: Mapping[str, str]) -> GitCommand:
        program = find_git(self._env, roots=(self._root,))
        if program is None:
            message = "git was not found on the PATH; a worker needs it"
            raise JobDeferred(message, wait_ms=DISK_WAIT_MS)
        environment = git_environment(self._env, roots=(self._root,))
        # A clone of our own mirror uses `file`.
        return git_command(
            program,
            *arguments,
            environment=environment,
            GIT_ALLOW_PROTOCOL="https:http:file",
            **variables,
        )


def _login_variables(forge: Forge | None) -> Mapping[str, str]:
    """Return the variables with the token of a forge: other users do not see them, unlike the arguments."""
    if forge is None or not forge.token or not forge.clone_url.startswith("http"):
        return NO_VARIABLES
    login = base64.b64encode(f"{USERS[forge.kind]}:{forge.token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
    }


def _error_of(complaint: str) -> FleetError:
    text = " ".join(complaint.split())[-300:]
    lower = text.lower()
    if NO_SPACE in lower:
        return JobDeferred(f"the disk is full: {text}", wait_ms=DISK_WAIT_MS)
    if any(part in lower for part in NO_COMMIT):
        return CommitMissing(f"the repository no longer has the commit ({text})")
    if any(part in lower for part in (*NO_REPOSITORY, *NO_ACCESS)):
        return RepositoryMissing(f"the repository cannot be fetched ({text})")
    return JobDeferred(f"the repository cannot be fetched now ({text})", wait_ms=NETWORK_WAIT_MS)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
