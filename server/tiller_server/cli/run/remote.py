"""A workspace on another machine or in a container, for a session of the command line."""

import argparse
import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.kernel.errors import StorageUnavailable, UsageError, WorkspaceError
from agent_core.resources.instructions import CONTEXT_BYTES, NAMES
from agent_core.resources.paths import app_paths
from agent_core.workspace import FileText, Workspace
from agent_core.workspace.remote.address import parse_address
from agent_core.workspace.remote.workspace import open_remote
from tiller_server.cli.environment import Environment
from tiller_server.cli.session_options import ADDRESS_FILE, REMOTE_FOLDER, Placing

NAME_CHARS: Final = 60
HASH_CHARS: Final = 12
UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.-]+")


@asynccontextmanager
async def opened_remotely(
    text: str, options: argparse.Namespace, environment: Environment
) -> AsyncGenerator[Placing]:
    """Connect to a remote workspace; yield the function that moves a request there.

    A folder of this machine stands for it: sessions belong to that folder, and with `--trust` it has copies of the
    workspace's instructions. The options name it as the workspace from then on.

    Raises:
        UsageError: The address is none, or an option needs a workspace on this machine.
        WorkspaceError: The workspace cannot be reached.
        WorkspaceMissing: It is not there.
    """
    address = parse_address(text)
    _check_options(options)
    async with open_remote(address, env=environment.variables) as workspace:
        name = workspace.address or text
        data = app_paths(environment.variables).data
        folder = await to_thread.run_sync(_make_folder, data / REMOTE_FOLDER, name)
        await _copy_instructions(workspace, folder, is_trusted=bool(options.trust))
        options.workspace = str(folder)

        def place(request: SessionRequest) -> SessionRequest:
            notice = f"commands run on {name}, where Tiller does not contain them: each asks, and no allow rule covers it"
            return replace(request, ports=workspace, notices=(*request.notices, notice))

        yield place


def _check_options(options: argparse.Namespace) -> None:
    if options.add_dir:
        message = "--add-dir needs a workspace on this machine; leave it out"
        raise UsageError(message)
    if options.allow:
        message = "--allow needs a workspace on this machine: no allow rule covers a command elsewhere; leave it out"
        raise UsageError(message)


def _folder_name(address: str) -> str:
    """Return a name that is another one for each address."""
    plain = UNUSUAL.sub("-", address)[:NAME_CHARS].strip("-")
    return f"{plain}-{hashlib.sha256(address.encode()).hexdigest()[:HASH_CHARS]}"


def _make_folder(above: Path, address: str) -> Path:
    folder = above / _folder_name(address)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _ = (folder / ADDRESS_FILE).write_text(address, "utf-8")
    except OSError as error:
        message = f"the folder {str(folder)!r} for sessions of the remote workspace cannot be made: {error.strerror or error}"
        raise StorageUnavailable(message) from error
    return folder


async def _copy_instructions(workspace: Workspace, folder: Path, *, is_trusted: bool) -> None:
    """Copy the instructions at the top of the workspace if it is trusted, and remove older copies."""
    texts: dict[str, str] = {}
    for name in NAMES if is_trusted else ():
        with suppress(WorkspaceError):
            path = await workspace.files.resolve(name, "read")
            file = await workspace.files.read(path, limit_bytes=CONTEXT_BYTES)
            if isinstance(file, FileText):
                texts[name] = file.text
                break

    def copy() -> None:
        for name in NAMES:
            if name in texts:
                _ = (folder / name).write_text(texts[name], "utf-8")
            else:
                (folder / name).unlink(missing_ok=True)

    await to_thread.run_sync(copy)
