"""Processes on the other side are read in order, end as whole trees there, and leave nothing behind."""

from collections.abc import AsyncGenerator
from pathlib import Path
from uuid import uuid4

import anyio
import pytest
from anyio import to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing
from agent_core.workspace import Process, ProcessEnd, Workspace
from agent_core.workspace.processes.mark import MARK
from agent_core.workspace.remote.prefixes import ContainerPrefix, SshPrefix
from agent_core.workspace.remote.workspace import opened_workspace
from tests.support.remote.containers import INNER, Container
from tests.support.remote.ssh_server import ENV, HOST, SshServer
from tests.support.workspace.processes import processes_with, wait_gone
from tests.workspace.processes.conformance import GRACE_S, ProcessesConformance, output_of


class Shell:
    """Starts commands on the other side that carry a mark of the test's own."""

    is_contained = False

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.mark = f"mark-{uuid4().hex}"

    async def start(self, command: str, *, stdin: bytes = b"", **env: str) -> Process:
        variables = {"PATH": self.workspace.env["PATH"], "GIT_AUTHOR_NAME": self.mark, **env}
        return await self.workspace.processes.start(
            ("bash", "-c", command), cwd=self.workspace.root, env=variables, stdin=stdin
        )

    async def left(self) -> set[int]:
        """Return what carries the mark and does not end; containers are seen from outside."""
        return await to_thread.run_sync(lambda: wait_gone(processes_with(self.mark), timeout_s=3))


@pytest.fixture(params=["ssh", "container"])
async def shell(request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[Shell]:
    if request.param == "ssh":
        server: SshServer = request.getfixturevalue("server")
        prefix, path, env = SshPrefix(HOST, env=ENV, options=server.options), folder, ENV
    else:
        box: Container = request.getfixturevalue("machine_box")
        (box.shared / folder.name).mkdir()
        path, env = INNER / folder.name, box.env
        prefix = ContainerPrefix("podman", box.name, env=env, options=box.options)
    async with opened_workspace(prefix, str(path), env=env, address="test:") as workspace:
        yield Shell(workspace)


class TestRemoteProcesses(ProcessesConformance):
    """On the other side."""

    end_s = 10.0


async def test_input_is_what_was_given_and_otherwise_there_is_none(shell: Shell) -> None:
    data = bytes(range(256)) * 1000
    for given in (b"", data):
        process = await shell.start("cat; echo end", stdin=given)
        assert await output_of(process) == given + b"end\n"
        _ = await process.end(grace_s=GRACE_S)


async def test_output_comes_while_the_command_runs(shell: Shell) -> None:
    process = await shell.start("echo first; read -r _; sleep 600")
    with anyio.fail_after(10):
        assert await process.read() == b"first\n"
    _ = await process.end(grace_s=GRACE_S)


async def test_large_output_arrives_whole(shell: Shell) -> None:
    process = await shell.start("head -c 5000000 /dev/zero")
    assert await output_of(process) == bytes(5_000_000)
    assert await process.wait() == ProcessEnd(exit_code=0)
    _ = await process.end(grace_s=GRACE_S)


async def test_the_environment_is_what_was_given_and_a_mark(shell: Shell) -> None:
    odd = "a 'b' \"c\" $d \\ \n é !"
    process = await shell.start("env -0", ODD=odd)
    output = (await output_of(process)).decode()
    variables = dict(one.split("=", 1) for one in output.split("\0") if one)
    _ = await process.end(grace_s=GRACE_S)
    assert variables["ODD"] == odd
    shells = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert set(variables) - shells == {"PATH", "GIT_AUTHOR_NAME", "ODD", MARK}


async def test_what_a_command_leaves_is_ended_with_it(shell: Shell) -> None:
    process = await shell.start("setsid sleep 600 >/dev/null 2>&1 & echo up")
    assert await process.wait() == ProcessEnd(exit_code=0)
    killed = await process.end(grace_s=GRACE_S)
    assert len(killed.pids) == 1
    assert await shell.left() == set()


async def test_other_processes_are_left_alone(shell: Shell) -> None:
    bystander = await shell.start("exec sleep 600")
    process = await shell.start("exec sleep 600")
    assert (await process.end(grace_s=GRACE_S)).pids == (process.pid,)
    assert (await bystander.end(grace_s=GRACE_S)).pids == (bystander.pid,)


async def test_what_cannot_be_started_is_said_in_words(shell: Shell) -> None:
    workspace = shell.workspace
    _ = await workspace.files.write(workspace.root / "data.txt", "no program", base=None)
    for argv, cwd, error, words in (
        (
            ("no-such-program",),
            workspace.root,
            FileMissing,
            "Program not found: no-such-program (ENOENT)",
        ),
        (("/no/such/shell", "-c", "x"), workspace.root, FileMissing, "ENOENT"),
        (("true",), workspace.root / "gone", FileMissing, "Working directory does not exist"),
        ((str(workspace.root / "data.txt"),), workspace.root, AccessRefused, "EACCES"),
        (("bash", "-c", "x" * 200_000), workspace.root, AccessRefused, "too long"),
        (("bash", "-c", "a\0b"), workspace.root, AccessRefused, "NUL"),
        (("bash", "-c", "\ud83d"), workspace.root, AccessRefused, "broken characters"),
    ):
        with pytest.raises(error) as raised:
            _ = await workspace.processes.start(argv, cwd=cwd, env=workspace.env)
        assert words in str(raised.value)


async def test_a_program_of_the_workspace_is_never_found_by_its_name(shell: Shell) -> None:
    workspace = shell.workspace
    program = workspace.root / "bin" / "tool"
    _ = await workspace.files.write(program, "#!/bin/sh\necho taken over\n", base=None)
    process = await shell.start("chmod +x bin/tool")
    _ = await process.wait()
    _ = await process.end(grace_s=GRACE_S)
    path = f"{program.parent}:{workspace.env['PATH']}"
    with pytest.raises(FileMissing, match="Program not found: tool"):
        _ = await workspace.processes.start(("tool",), cwd=workspace.root, env={"PATH": path})


async def test_more_commands_run_than_a_connection_has_sessions(shell: Shell) -> None:
    processes = [await shell.start("echo up; exec sleep 600") for _ in range(12)]
    assert [await process.read() for process in processes] == [b"up\n"] * 12
    for process in processes:
        assert (await process.end(grace_s=GRACE_S)).pids == (process.pid,)
