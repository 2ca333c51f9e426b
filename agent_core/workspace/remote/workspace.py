"""Opens a remote workspace: connects, looks where it is, and builds its ports."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import WorkspaceMissing
from agent_core.workspace.port import Workspace
from agent_core.workspace.remote.address import RemoteAddress
from agent_core.workspace.remote.file_scripts import COMMON, PROBE
from agent_core.workspace.remote.files import RemoteFiles
from agent_core.workspace.remote.prefixes import ContainerPrefix, SshPrefix
from agent_core.workspace.remote.processes import RemoteProcesses
from agent_core.workspace.remote.transport import SILENCE_S, CommandPrefix, Remote

CLOSE_S: Final = 5.0
OF_CONNECTION: Final = ("SSH_", "TILLER_")
"""Beginnings of variables that belong to one connection."""
NOT_COMPARED: Final = frozenset({"_", "PWD", "OLDPWD", "SHLVL"})
"""Variables that shells set by themselves."""


@asynccontextmanager
async def open_remote(
    address: RemoteAddress, *, env: Mapping[str, str], options: Sequence[str] = ()
) -> AsyncGenerator[Workspace]:
    """Open a remote workspace while the context is entered.

    Args:
        address: Where it is.
        env: The environment of this machine, for `ssh` or the container engine.
        options: More options of that program.

    Raises:
        WorkspaceUnreachable: There is no connection.
        WorkspaceMissing: The folder is not there.
    """
    prefix: CommandPrefix
    path, name = address.path, address.name
    match address.kind:
        case "ssh":
            prefix = SshPrefix(address.host, env=env, options=options)
        case "devcontainer":
            from agent_core.workspace.remote.dev_containers import find_dev_container  # noqa: PLC0415 - seldom needed

            folder = Path(await anyio.Path(await anyio.Path(address.host).expanduser()).absolute())
            there = await find_dev_container(folder, env=env)
            path, name = there.folder, f"devcontainer:{folder}"
            prefix = ContainerPrefix(
                there.engine, there.name, env=env, options=options, user=there.user
            )
        case engine:
            prefix = ContainerPrefix(engine, address.host, env=env, options=options)
    async with opened_workspace(prefix, path, env=env, address=f"{name}:") as made:
        yield made


@asynccontextmanager
async def opened_workspace(
    prefix: CommandPrefix,
    path: str,
    *,
    env: Mapping[str, str],
    address: str,
    silence_s: float = SILENCE_S,
) -> AsyncGenerator[Workspace]:
    """Open a workspace behind a command prefix, which is closed at the end.

    Args:
        prefix: How scripts are run there.
        path: The folder: absolute or from `~`; empty: where commands start.
        env: The environment of this machine.
        address: The address without its path.
        silence_s: How long the other side may be silent.
    """
    remote = Remote(prefix, env=env, silence_s=silence_s)
    try:
        status, output = await remote.run(COMMON + PROBE, path)
        if status[0] != "ok":
            message = (
                f"the folder {path!r} cannot be found on {remote.name}; name one that exists there"
            )
            raise WorkspaceMissing(message)
        folder, home, *variables = output.decode("utf-8", "surrogateescape").split("\0")
        root = Path(folder.removesuffix("\n"))
        there = _environment(variables)
        yield Workspace(
            roots=(root,),
            files=RemoteFiles(remote, (root,), Path(home or "/")),
            processes=RemoteProcesses(remote, (root,), env=there),
            env={
                name: value for name, value in there.items() if not name.startswith(OF_CONNECTION)
            },
            address=f"{address}{root}",
        )
    finally:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await remote.close()


def _environment(variables: Sequence[str]) -> dict[str, str]:
    """Return the environment that the other side reported."""
    pairs = (one.partition("=") for one in variables if "=" in one)
    return {
        name: value
        for name, _, value in pairs
        if name.isidentifier() and name.isascii() and name not in NOT_COMPARED
    }
