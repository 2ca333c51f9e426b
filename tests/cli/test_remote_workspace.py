"""A remote workspace of the command line, behind a container engine that runs scripts on this machine."""

import argparse
import json
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
DEV_ENGINE = """#!/bin/sh
case $1 in
  ps) [ "$*" = "ps -q --filter label=devcontainer.local_folder=FOLDER" ] && echo 0123abcd; exit 0 ;;
  inspect) [ "$*" = "inspect --format {{json .}} 0123abcd" ] || exit 1; cat FACTS; exit ;;
esac
[ "$*" = "${*#exec -i -u vscode brave_box }" ] && { echo "not this container: $*" >&2; exit 1; }
shift 5
exec "$@"
"""


def options(
    *, trust: bool = False, add_dir: Sequence[str] = (), allow: Sequence[str] = ()
) -> argparse.Namespace:
    return argparse.Namespace(trust=trust, add_dir=list(add_dir), allow=list(allow), workspace=".")


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
        ("docker:box:/", options(allow=["make"]), UsageError, "--allow needs a workspace on this"),
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


def dev_container(environment: Environment, folder: Path, **facts: object) -> None:
    """Make `docker` an engine with one dev container, of a folder."""
    engine = Path(environment.variables["PATH"].partition(":")[0]) / "docker"
    described = engine.parent / "facts.json"
    _ = described.write_text(json.dumps({"Name": "/brave_box", **facts}))
    text = DEV_ENGINE.replace("FOLDER", str(folder)).replace("FACTS", str(described))
    _ = engine.write_text(text)


def with_this_engine_alone(environment: Environment) -> Environment:
    """Return the environment without the engines of this machine."""
    path = environment.variables["PATH"].partition(":")[0]
    return Environment({**environment.variables, "PATH": path})


@pytest.mark.parametrize("above", [False, True], ids=["folder", "repository"])
async def test_a_dev_container_is_found_by_its_folder(
    environment: Environment, there: Path, tmp_path: Path, *, above: bool
) -> None:
    folder = tmp_path / "repo" / there.name
    mounts = [
        {"Source": str(folder.parent if above else folder), "Destination": str(there.parent if above else there)},
        {"Source": "/elsewhere", "Destination": "/elsewhere"},
    ]  # fmt: skip
    users = [{"containerUser": "root"}, {"remoteUser": "vscode"}, {"id": "a feature"}]
    labels = {"devcontainer.metadata": json.dumps(users)}
    dev_container(environment, folder, Config={"Labels": labels}, Mounts=mounts)
    given = options(trust=True)
    async with opened_remotely(f"devcontainer:{folder}", given, environment) as place:
        request = place(SessionRequest(workspace=Path("/nowhere"), env={}))
        workspace = request.ports
        assert workspace is not None
        assert (workspace.root, workspace.address) == (there, f"devcontainer:{folder}:{there}")
        process = await workspace.processes.start(
            ("/bin/sh", "-c", "cat a.txt"), cwd=there, env=workspace.env
        )
        assert await output_of(process) == "one\n"
        _ = await process.end(grace_s=1)
    assert (Path(given.workspace) / "AGENTS.md").read_text() == "Speak of herons.\n"


async def test_a_folder_without_a_dev_container_is_told_how_to_start_one(
    environment: Environment, there: Path, tmp_path: Path
) -> None:
    dev_container(environment, there)
    environment = with_this_engine_alone(environment)
    with pytest.raises(WorkspaceUnreachable, match=r"devcontainer up --workspace-folder .*other"):
        async with opened_remotely(f"devcontainer:{tmp_path / 'other'}", options(), environment):
            pass


async def test_an_engine_that_fails_says_why_no_dev_container_is_found(
    environment: Environment, there: Path
) -> None:
    engine = Path(environment.variables["PATH"].split(":")[0]) / "docker"
    _ = engine.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    environment = with_this_engine_alone(environment)
    with pytest.raises(WorkspaceUnreachable, match="docker: Cannot connect to the Docker daemon"):
        async with opened_remotely(f"devcontainer:{there}", options(), environment):
            pass


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"Mounts": [{"Source": "/elsewhere", "Destination": "/here"}]}, "is not mounted in its dev container brave_box; name a folder there: docker:brave_box:/path"),
        ({"Config": {"Labels": {"devcontainer.metadata": "{"}}}, "says of the dev container 0123abcd is no JSON"),
        (None, "docker does not describe the dev container 0123abcd of "),
    ],
    ids=["not mounted", "no JSON", "gone"],
)  # fmt: skip
async def test_a_dev_container_that_cannot_be_used_is_one_sentence(
    environment: Environment, there: Path, facts: dict[str, object] | None, why: str
) -> None:
    dev_container(environment, there, **(facts or {}))
    if facts is None:
        (Path(environment.variables["PATH"].partition(":")[0]) / "facts.json").unlink()
    with pytest.raises(WorkspaceUnreachable) as refused:
        async with opened_remotely(f"devcontainer:{there}", options(), environment):
            pass
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
