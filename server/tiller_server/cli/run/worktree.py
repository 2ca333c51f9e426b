"""A run in a worktree of its own, and sessions that belong to one."""

import argparse
import secrets
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from anyio import CancelScope, to_thread
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.assembly.workspace import open_worktrees
from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import SessionNotFound, TillerError, UsageError, WorkspaceMissing
from agent_core.kernel.text import one_line
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.session import AgentSession
from agent_core.storage.adapters.scan import find, read_header
from agent_core.workspace.git.worktrees.service import Worktrees
from agent_core.workspace.git.worktrees.values import Worktree, WorktreeRefused
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import complain
from tiller_server.cli.session_options import ADDRESS_FILE, REMOTE, REMOTE_FOLDER

ID_BYTES = 4
MOST_NAMES = 5
"""Files that a line names."""


class IsolatedRun:
    """A run in a worktree."""

    def __init__(self, worktrees: Worktrees, worktree: Worktree) -> None:
        self._worktrees = worktrees
        self._worktree = worktree
        self._session: str | None = None

    async def begin(self, session: AgentSession) -> None:
        """Record the session as the owner of the worktree."""
        self._session = session.id
        await self._worktrees.assign(self._worktree.id, owner=session.id)

    async def end(self) -> None:
        """Remove the worktree if nothing was changed in it; else print where it is, and what can be done with it."""
        id_ = self._worktree.id
        try:
            _ = await self._worktrees.remove(id_, asking=self._session)
        except WorktreeRefused:
            lines = (
                f"the changes are in the worktree {self._worktree.path}",
                f"see them:   tiller worktree diff {id_}",
                f"merge them: tiller worktree merge {id_}",
                f"remove it:  tiller worktree remove {id_}",
            )
            _ = sys.stderr.write("".join(f"{line}\n" for line in lines))
        except TillerError as error:
            complain("run", f"the worktree {self._worktree.path} stays: {error}")


@asynccontextmanager
async def isolated(
    options: argparse.Namespace, environment: Environment
) -> AsyncGenerator[IsolatedRun]:
    """Make a worktree of the workspace, and have the options name it as the workspace.

    Raises:
        UsageError: The options name a session, which has a folder already, or a workspace that is not on this machine.
        WorktreeRefused: No worktree can be made of the workspace.
    """
    if options.session or options.latest:
        message = "--worktree begins a new session; leave --continue and --resume out: a session goes on in the folder that it has"
        raise UsageError(message)
    if options.workspace.startswith(REMOTE):
        message = "--worktree needs a workspace on this machine; leave it out"
        raise UsageError(message)
    variables = environment.variables
    worktrees = open_worktrees(app_paths(variables), env=variables, clock=SystemClock())
    root = await to_thread.run_sync(lambda: Path(options.workspace).expanduser().resolve())
    include = bool(options.worktree_include)
    id_ = secrets.token_hex(ID_BYTES)
    worktree = await worktrees.create(root, id_=id_, owner="", include=include)
    if worktree.base_is_dirty:
        complain("run", "changes that are not committed are not in the worktree")
    if include:
        _report_included(worktree)
    options.workspace = str(worktree.folder)
    run = IsolatedRun(worktrees, worktree)
    try:
        yield run
    finally:
        with CancelScope(shield=True):
            await run.end()


def _report_included(worktree: Worktree) -> None:
    """Print which ignored files were copied into a worktree, and which were not."""
    count = len(worktree.included)
    names = f": {_shortened(worktree.included)}" if count else ""
    files = "1 ignored file was" if count == 1 else f"{count} ignored files were"
    complain("run", f"{files} copied into the worktree{names}")
    if worktree.left_out:
        complain("run", f"not copied: {_shortened(worktree.left_out)}")


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return one_line(", ".join(names[:MOST_NAMES])) + more


async def in_its_worktree(request: SessionRequest) -> SessionRequest:
    """Return the request with the folder of the session as the workspace, if that is in a worktree.

    Raises:
        UsageError: The session works in a remote workspace that the request does not name.
        WorkspaceMissing: The folder is missing.
    """
    paths = request.paths or app_paths(request.env)
    return await to_thread.run_sync(_in_its_worktree, request, paths)


def _in_its_worktree(request: SessionRequest, paths: AppPaths) -> SessionRequest:
    try:
        header = read_header(find(paths.sessions, SessionId(request.session)))
    except SessionNotFound:
        return request  # opening it reports that
    if header is None:
        return request
    folder = Path(header.cwd)
    is_remote = folder.parent == (paths.data / REMOTE_FOLDER).resolve()
    if is_remote and folder != request.workspace.resolve():
        with suppress(OSError):
            address = (folder / ADDRESS_FILE).read_text("utf-8")
            message = f"the session works in a remote workspace; add -C {address}"
            raise UsageError(message)
    if not folder.is_relative_to(paths.worktrees.resolve()):
        return request
    if not folder.is_dir():
        message = f"the worktree {header.cwd!r} of the session is missing; `tiller sessions show {request.session}` still shows the conversation"
        raise WorkspaceMissing(message)
    return replace(request, workspace=folder)
