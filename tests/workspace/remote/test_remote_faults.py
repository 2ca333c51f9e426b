"""A connection that is cut loses nothing: the error names the host and what to do, and the next call connects again."""

import os
import select
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio
import pytest
from anyio import lowlevel, to_thread

from agent_core.kernel.errors import EditUnverified, WorkspaceError, WorkspaceUnreachable
from agent_core.workspace import FileReader, FileText, ProcessEnd
from agent_core.workspace.remote.prefixes import ContainerPrefix, SshPrefix
from agent_core.workspace.remote.workspace import opened_workspace
from tests.support.remote.containers import Container
from tests.support.remote.ssh_server import ENV, HOST, SshServer
from tests.support.workspace.processes import processes_with, wait_gone
from tests.workspace.remote.conftest import behind

LARGE = "0123456789abcdef\n" * 4_000_000
NAMED = r"ssh:tl-loopback cannot be reached: .*check with `ssh tl-loopback true` in a terminal"
GRACE_S = 0.15
SOON_S = 30.0
LOOK_AGAIN_S = 0.01


def cut(prefix: SshPrefix, server: SshServer, where: str) -> None:
    """Cut the connection at one of its ends."""
    if where == "here":
        assert prefix.master_pid is not None
        os.kill(prefix.master_pid, signal.SIGKILL)
    else:
        server.signal_connections(signal.SIGKILL)


def wait_for(folder: Path, temporary: Literal["one", "none"]) -> None:
    """Wait until there is a temporary file in a folder, or none. Blocks.

    Raises:
        TimeoutError: That takes too long.
    """
    deadline = time.monotonic() + SOON_S
    while bool([*folder.glob(".tiller-*")]) is (temporary == "none"):
        if time.monotonic() > deadline:
            raise TimeoutError
        # Nothing tells of it: look again, but not all the time.
        select.select([], [], [], LOOK_AGAIN_S)


BOTH_ENDS = pytest.mark.parametrize("where", ["here", "there"])


@BOTH_ENDS
async def test_a_command_that_is_cut_off_says_so_and_is_ended_there(
    own_server: SshServer, folder: Path, where: str
) -> None:
    mark = f"mark-{folder.name}-{where}"
    async with behind(own_server, folder) as (workspace, prefix):
        process = await workspace.processes.start(
            ("bash", "-c", f": {mark}; echo up; sleep 600; echo {mark}"),
            cwd=workspace.root,
            env=workspace.env,
        )
        assert await process.read() == b"up\n"
        cut(prefix, own_server, where)
        output = b""
        with anyio.fail_after(15):
            while data := await process.read():
                output += data
            assert await process.wait() == ProcessEnd(exit_code=255)
            killed = await process.end(grace_s=GRACE_S)
        assert b"The connection to ssh:tl-loopback was lost while the command ran" in output
        assert b"look at the state before you run it again" in output
        assert killed.survivors == ()
        left = await to_thread.run_sync(lambda: wait_gone(processes_with(mark), timeout_s=10))
        assert left == set()
        again = await workspace.processes.start(
            ("echo", "again"), cwd=workspace.root, env=workspace.env
        )
        assert await again.read() == b"again\n"
        _ = await again.end(grace_s=GRACE_S)


async def test_what_runs_there_ends_when_its_connection_does(
    own_server: SshServer, folder: Path
) -> None:
    mark = f"mark-{folder.name}"
    async with behind(own_server, folder) as (workspace, _):
        process = await workspace.processes.start(
            # What ends them has to outlive the first one: the other one needs more than one signal.
            (
                "bash",
                "-c",
                f": {mark}; (setsid bash -c 'trap : TERM INT; echo up; exec >/dev/null 2>&1; while :; do sleep 600; done' &); trap exit TERM; sleep 600 & wait",
            ),
            cwd=workspace.root,
            env={**workspace.env, "GIT_AUTHOR_NAME": mark},
        )
        assert await process.read() == b"up\n"
        own_server.stop()
        left = await to_thread.run_sync(lambda: wait_gone(processes_with(mark), timeout_s=10))
        assert left == set()
        own_server.start()
        _ = await process.end(grace_s=GRACE_S)


@BOTH_ENDS
async def test_a_write_that_is_cut_off_leaves_the_old_text(
    own_server: SshServer, folder: Path, where: str
) -> None:
    async with behind(own_server, folder) as (workspace, prefix):
        path = workspace.root / "a.txt"
        _ = await workspace.files.write(path, "old\n", base=None)
        base = await workspace.files.read(path)
        assert isinstance(base, FileText)
        errors: list[WorkspaceError] = []

        async def write() -> None:
            try:
                _ = await workspace.files.write(path, LARGE, base=base)
            except WorkspaceError as error:
                errors.append(error)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(write)
                await to_thread.run_sync(wait_for, path.parent, "one")
                cut(prefix, own_server, where)
        assert [type(error) for error in errors] == [WorkspaceUnreachable]
        assert "a.txt was not written" in str(errors[0])
        assert path.read_text() == "old\n"
        await to_thread.run_sync(wait_for, path.parent, "none")
        _ = await workspace.files.write(path, "new\n", base=base)
        assert path.read_text() == "new\n"


@BOTH_ENDS
async def test_a_read_that_is_cut_off_is_no_shorter_text(
    own_server: SshServer, folder: Path, where: str
) -> None:
    async with behind(own_server, folder) as (workspace, prefix):
        path = workspace.root / "a.txt"
        _ = path.write_text(LARGE)
        async with workspace.files.open(path) as reader:
            assert await reader.read(10) == b"0123456789"
            cut(prefix, own_server, where)
            with pytest.raises(WorkspaceUnreachable, match=NAMED):
                await _rest(reader)
        read = await workspace.files.read(path)
        assert isinstance(read, FileText)
        assert read.text == LARGE


async def test_a_search_that_is_cut_off_is_no_empty_result(
    own_server: SshServer, folder: Path
) -> None:
    async with behind(own_server, folder) as (workspace, _):
        own_server.stop()
        with pytest.raises(WorkspaceUnreachable, match=NAMED):
            _ = await workspace.files.list(workspace.root)
        own_server.start()
        assert await workspace.files.list(workspace.root) == ()


async def test_a_host_that_is_silent_is_not_waited_for(own_server: SshServer, folder: Path) -> None:
    async with behind(own_server, folder, silence_s=5.0) as (workspace, _):
        own_server.signal_connections(signal.SIGSTOP)
        try:
            with pytest.raises(WorkspaceUnreachable, match="no answer for 5 s"):
                _ = await workspace.files.list(workspace.root)
        finally:
            own_server.signal_connections(signal.SIGCONT)
        assert await workspace.files.list(workspace.root) == ()


async def test_a_host_with_another_key_is_not_used(own_server: SshServer, folder: Path) -> None:
    known = own_server.folder / "known_hosts"
    other = (own_server.folder / "user_key.pub").read_text()
    _ = known.write_text(f"[127.0.0.1]:{own_server.port} {other}")
    with pytest.raises(WorkspaceUnreachable, match="Host key verification failed"):
        async with behind(own_server, folder):
            pass


async def test_a_program_that_is_missing_is_named(folder: Path) -> None:
    prefix = SshPrefix(HOST, env={"PATH": str(folder)})
    with pytest.raises(WorkspaceUnreachable, match="there is no program `ssh` on the PATH"):
        async with opened_workspace(prefix, "/", env={}, address="test:"):
            pass


async def test_a_container_that_is_missing_is_named(machine_box: Container) -> None:
    prefix = ContainerPrefix("podman", "tl-none", env=machine_box.env, options=machine_box.options)
    with pytest.raises(WorkspaceUnreachable, match=r"podman:tl-none cannot be reached: .*tl-none"):
        async with opened_workspace(prefix, "/", env=machine_box.env, address="test:"):
            pass


class Unconfirmed:
    """A prefix of this machine that loses the answers of some scripts, as a connection does that is cut at the end."""

    name = "ssh:unconfirmed"
    advice = "check the test"

    def __init__(self) -> None:
        self.lost = 0

    async def argv(self, script: str, arguments: Sequence[str]) -> tuple[str, ...]:
        await lowlevel.checkpoint()
        if not self.lost:
            return ("sh", "-c", script, "sh", *arguments)
        self.lost -= 1
        return ("sh", "-c", 'sh -c "$0" sh "$@" >/dev/null; exit 255', script, *arguments)

    async def close(self) -> None:
        await lowlevel.checkpoint()


async def test_a_write_whose_confirmation_is_lost_is_looked_for(folder: Path) -> None:
    prefix = Unconfirmed()
    async with opened_workspace(prefix, str(folder), env=ENV, address="test:") as workspace:
        prefix.lost = 1
        written = await workspace.files.write(folder / "a.txt", "new\n", base=None)
        assert written.created
        base = await workspace.files.read(folder / "a.txt")
        assert isinstance(base, FileText)
        prefix.lost = 2
        with pytest.raises(EditUnverified, match="either the old or the new text, whole"):
            _ = await workspace.files.write(folder / "a.txt", "newer\n", base=base)
    assert (folder / "a.txt").read_text() == "newer\n"


async def _rest(reader: FileReader) -> None:
    while await reader.read(1_000_000):
        pass
