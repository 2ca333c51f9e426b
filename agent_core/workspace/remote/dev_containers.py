"""Finds the dev container that runs for a folder of this machine, by the labels that its tools give it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import anyio

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import WorkspaceUnreachable
from agent_core.kernel.json import as_object, decode, is_object
from agent_core.kernel.values import Value
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.remote.prefixes import find_engine

Engine = Literal["docker", "podman"]
ENGINES: Final[Sequence[Engine]] = ("docker", "podman")
FOLDER_LABEL: Final = "devcontainer.local_folder"
METADATA_LABEL: Final = "devcontainer.metadata"
ENGINE_S: Final = 15.0
"""How long an engine may take to answer."""
END_S: Final = 3.0


class DevContainer(Value, frozen=True, kw_only=True):
    """A dev container that runs."""

    engine: Engine
    name: str
    user: str
    """Whom commands run as; empty: the user of the container."""
    folder: str
    """The folder in the container."""


async def find_dev_container(folder: Path, *, env: Mapping[str, str]) -> DevContainer:
    """Find a container that runs for a folder; of several the one that its engine lists first.

    Args:
        folder: The folder of this machine, absolute.
        env: The environment of the engine's program.

    Raises:
        WorkspaceUnreachable: None runs, no engine answers, or what the engine says of the container cannot be used.
    """
    wanted = dict.fromkeys((str(folder), str(await anyio.Path(folder).resolve())))
    whys: list[str] = []
    for engine in ENGINES:
        program = await find_engine(engine, env)
        if program is None:
            continue
        for path in wanted:
            label = f"label={FOLDER_LABEL}={path}"
            listed, why = await _run((program, "ps", "-q", "--filter", label), env)
            whys += [f"{engine}: {why}"] if why else []
            for id_ in listed.split()[:1]:
                described, why = await _run(
                    (program, "inspect", "--format", "{{json .}}", id_), env
                )
                if why:
                    message = (
                        f"{engine} does not describe the dev container {id_} of {folder}: {why}"
                    )
                    raise WorkspaceUnreachable(message)
                return _of(engine, id_, described, folders=map(Path, wanted))
    if not whys:
        whys.append(
            f"start it in your editor or with `devcontainer up --workspace-folder {folder}`"
        )
    message = f"no dev container of {folder} runs here ({'; '.join(whys)})"
    raise WorkspaceUnreachable(message)


def _of(engine: Engine, id_: str, described: str, *, folders: Iterable[Path]) -> DevContainer:
    """Return what the description of a container says.

    Args:
        engine: Its engine.
        id_: Its id.
        described: The description, as JSON.
        folders: The paths of the folder of this machine.

    Raises:
        WorkspaceUnreachable: It is no JSON, or the folder is not mounted.
    """
    try:
        facts = as_object(decode(described.encode()))
        labels = as_object(as_object(facts.get("Config")).get("Labels"))
        user = _user(decode(str(labels.get(METADATA_LABEL) or "[]").encode()))
    except ValueError as error:
        message = f"what {engine} says of the dev container {id_} is no JSON ({error})"
        raise WorkspaceUnreachable(message) from error
    name = str(facts.get("Name") or "").removeprefix("/") or id_
    mounts = [one for one in _listed(facts.get("Mounts")) if is_object(one)]
    # The folder itself is mounted, or one above it: the top of its repository.
    inside = [
        (len(source.parts), Path(str(one.get("Destination"))) / folder.relative_to(source))
        for folder in folders
        for one in mounts
        if folder.is_relative_to(source := Path(str(one.get("Source"))))
    ]
    if not inside:
        message = f"the folder is not mounted in its dev container {name}; name a folder there: {engine}:{name}:/path"
        raise WorkspaceUnreachable(message)
    return DevContainer(engine=engine, name=name, user=user, folder=str(max(inside)[1]))


def _user(metadata: JsonValue) -> str:
    """Return the user of the last entry that names one; of a remote and a container user the remote one."""
    entries = _listed(metadata) or [metadata]
    for key in ("remoteUser", "containerUser"):
        named = [one.get(key) for one in entries if is_object(one) and one.get(key)]
        if named:
            return str(named[-1])
    return ""


def _listed(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


async def _run(argv: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, str]:
    """Return the output of a program, and why it failed; empty: it did not."""
    process = await DiskProcesses().talk(argv, cwd=Path("/"), env=env, given={})
    process.finish()
    output, errors = b"", b""
    try:
        with anyio.move_on_after(ENGINE_S) as waiting:
            while data := await process.read():
                output += data
            while data := await process.read_errors():
                errors += data
            end = await process.wait()
            if end.exit_code == 0:
                return output.decode("utf-8", "replace"), ""
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        late = f"it did not answer in {ENGINE_S:.0f} s"
        return "", late if waiting.cancelled_caught else (lines[-1] if lines else "it failed")
    finally:
        with anyio.move_on_after(END_S, shield=True):
            _ = await process.end(grace_s=0)
