"""A remote workspace of the command line, behind a container engine that runs scripts on this machine."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agent_core.assembly import SessionRequest
from agent_core.kernel.errors import UsageError, WorkspaceMissing, WorkspaceUnreachable
from agent_core.workspace import FileText, Process
from tiller_server.cli.environment import Environment
from tiller_server.cli.run.remote import opened_remotely

ENGINE = '#!/bin/sh\n[ "$3" = box ] || { echo "no such container: $3" >&2; exit 1; }\nshift 3\nexec "$@"\n'


def options(*, trust: bool = False, add_dir: Sequence[str] = ()) -> argparse.Namespace:
    return argparse.Namespace(trust=trust, add_dir=list(add_dir), workspace=".")


@pytest.fixture
def environment(child_env: dict[str, str], tmp_path: Path) -> Environment:
    """The environment of a machine whose `docker` has one container."""
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    _ = program.write_text(ENGINE)
    program.chmod(0o755)
    return Environment({**child_env, "PATH": f"{program.parent}:/usr/bin:/bin"})


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The folder in the container."""
    folder = tmp_path.resolve() / "there"
    folder.mkdir()
    _ = (folder / "a.txt").write_text("one\n")
    _ = (folder / "AGENTS.md").write_text("Speak of herons.\n")
    return folder


async def output_of(process: Process) -> str:
    """Return everything that a process writes."""
    text = b""
    while data := await process.read():
        text += data
    return text.decode()


async def test_files_and_commands_are_those_of_the_container(
    environment: Environment, there: Path
) -> None:
    given = options(trust=True)
    async with opened_remotely(f"docker:box:{there}", given, environment) as place:
        request = place(SessionRequest(workspace=Path("/nowhere"), env={}))
        workspace = request.ports
        assert workspace is not None
        assert (workspace.root, workspace.address) == (there, f"docker:box:{there}")
        assert f"commands run on docker:box:{there}" in request.notices[0]
        file = await workspace.files.read(there / "a.txt")
        assert isinstance(file, FileText)
        _ = await workspace.files.write(there / "a.txt", "two\n", base=file)
        process = await workspace.processes.start(
            ("/bin/sh", "-c", "cat a.txt; exit 3"), cwd=there, env=workspace.env
        )
        assert await output_of(process) == "two\n"
        assert (await process.wait()).exit_code == 3
        assert (await process.end(grace_s=1)).survivors == ()
        sleeper = await workspace.processes.start(
            ("/bin/sh", "-c", "echo there; sleep 60"), cwd=there, env=workspace.env
        )
        assert await sleeper.read() == b"there\n"
        assert sleeper.pid in (await sleeper.end(grace_s=1)).pids
    stands_for = Path(given.workspace)
    assert (stands_for / "AGENTS.md").read_text() == "Speak of herons.\n"
    async with opened_remotely(f"docker:box:{there}", options(), environment):
        assert not (stands_for / "AGENTS.md").exists()


@pytest.mark.parametrize(
    ("address", "given", "error", "text"),
    [
        ("docker:", options(), UsageError, "names no host and path"),
        ("ssh:host", options(), UsageError, "names no host and path"),
        ("docker:box:a", options(), UsageError, "must begin with / or ~/"),
        ("docker:box:/", options(add_dir=["x"]), UsageError, "--add-dir needs a workspace on this"),
        ("docker:box:/not/there", options(), WorkspaceMissing, "'/not/there' cannot be found"),
        ("docker:other:/", options(), WorkspaceUnreachable, "no such container: other"),
        ("podman:box:/", options(), WorkspaceUnreachable, "no program `podman` on the PATH"),
    ],
)
async def test_what_cannot_be_opened_is_one_sentence(
    environment: Environment,
    address: str,
    given: argparse.Namespace,
    error: type[Exception],
    text: str,
) -> None:
    variables = dict(environment.variables)
    if address.startswith("podman"):
        variables["PATH"] = variables["PATH"].partition(":")[0]
    with anyio.fail_after(20), pytest.raises(error) as refused:
        async with opened_remotely(address, given, Environment(variables)):
            pass
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
