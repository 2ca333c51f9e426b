"""A container for tests: of podman, from a root made of this machine's programs or of BusyBox alone; else a stand-in.

No registry is asked. Where podman cannot start a container, a program `podman` that understands `exec -i` alone enters the
same root with bubblewrap; its processes are seen from outside, as those of a container are not.
"""

import os
import shutil
import subprocess
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from tests.support.workspace.processes import processes_with, wait_gone

INNER = Path("/box")
"""Where the shared folder lies in the container."""
BUSYBOX = shutil.which("busybox")
MEMORY = Path("/dev/shm")  # noqa: S108 - of the system; made anew with a name of its own
"""A file system on which nothing waits for the disk."""
STARTS_S = 30.0
SLEEP = "while :; do sleep 600; done"
FLAGS = (
    *("--network", "none", "--ulimit", "nofile=10000:10000", "--ulimit", "nproc=4000:4000"),
    *("--log-driver", "none"),
)
WAYS: Sequence[tuple[str, ...]] = (
    (),
    ("--runtime", "crun", "--cgroup-manager", "cgroupfs"),
    ("--runtime", "runc", "--cgroup-manager", "cgroupfs"),
)
"""Options of podman, of which the first that starts a container is used."""
STAND_IN = """#!/bin/sh
# Understands `exec -i NAME PROGRAM ...` for one container.
[ "$1 $2 $3" = "exec -i {name}" ] || {{ echo "Error: no such container: $3" >&2; exit 125; }}
shift 3
exec bwrap {mounts} --dev /dev --proc /proc --tmpfs /tmp --clearenv \\
  --setenv PATH {path} --setenv HOME /root --chdir / -- "$@"
"""
APART = """#!/bin/sh
export CONTAINERS_CONF={store}/containers.conf
exec unshare --mount --propagation private {podman} --root {store}/root --runroot {store}/run \\
  --tmpdir {store}/tmp --storage-driver vfs --events-backend none "$@"
"""
"""Podman with mounts and a store of its own.

Each of its commands mounts, and other tests count on a table of mounts that does not change. In the store of the machine each
command waits for those of other tests, and examines the file system for overlays: that is most of what `exec` takes.
"""
ENTERED = """#!/bin/sh
# Understands `exec -i NAME PROGRAM ...` for one container; the engine does all else.
[ "$1 $2 $3" = "exec -i {name}" ] || PATH={path} exec podman "$@"
shift 3
exec nsenter --target {pid} --all env -i PATH={inner_path} HOME=/root "$@"
"""
CONFIGURATION = """[engine]
lock_type = "file"
"""
"""Locks of a store of its own: those in shared memory are numbered across all stores, and a new store releases all of them."""
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(kw_only=True)
class Container:
    """A container that runs."""

    name: str
    options: tuple[str, ...]
    path: str
    """The PATH on which its engine is found."""
    shared: Path
    """The folder of this machine that is `INNER` in it."""
    how: Literal["podman", "stand-in"]

    @property
    def env(self) -> dict[str, str]:
        """The environment of the engine."""
        return {"PATH": self.path, "HOME": str(Path.home())}


def make_root(folder: Path, programs: Literal["machine", "busybox"]) -> tuple[str, ...]:
    """Make the root of a container; return the folders of this machine to mount, with the same names."""
    root = folder / "root"
    for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "root", "box", "bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    if programs == "busybox":
        assert BUSYBOX is not None
        shutil.copy(BUSYBOX, root / "bin" / "busybox")
        listed = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True)
        for applet in listed.stdout.split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        return ()
    (root / "bin").rmdir()
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path(f"/{name}").exists():
            (root / name).symlink_to(f"usr/{name}")
    (root / "etc" / "alternatives").mkdir()
    return tuple(one for one in ("/usr", "/etc/alternatives") if Path(one).exists())


@contextmanager
def container(folder: Path, programs: Literal["machine", "busybox"]) -> Generator[Container]:
    """Run a container that shares the folder `shared` with this machine."""
    mounted = make_root(folder, programs)
    shared = folder / "shared"
    shared.mkdir()
    name = f"tl-{uuid.uuid4().hex[:12]}"
    with _engine_apart(folder) as engine:
        path = f"{engine}:{os.defpath}"
        started = _started(folder / "root", mounted, shared, name, path=path)
        if started is None:
            yield _stand_in(folder, mounted, shared, name)
            return
        try:
            yield Container(name=name, options=started, path=path, shared=shared, how="podman")
        finally:
            _ = _podman([*started, "rm", "-f", "-t", "0", name], path=path)


@contextmanager
def _engine_apart(folder: Path) -> Generator[Path]:
    """Make a folder whose `podman` has mounts and a store of its own; that of a user who is not root has them anyway."""
    programs, podman = folder / "engine", shutil.which("podman")
    programs.mkdir()
    if podman is None or os.getuid() != 0:
        yield programs
        return
    # Podman takes a folder of at most 50 characters, so it is not among the test's own.
    with TemporaryDirectory(prefix="tl-box-", dir=MEMORY if MEMORY.is_dir() else None) as store:
        _ = Path(store, "containers.conf").write_text(CONFIGURATION, encoding="utf-8")
        program = programs / "podman"
        _ = program.write_text(APART.format(podman=podman, store=store))
        program.chmod(0o755)
        try:
            yield programs
        finally:
            # What the engine does after its last commands would make the folder anew.
            while left := processes_with(store):
                assert not wait_gone(left, timeout_s=STARTS_S)


def entered(box: Container, folder: Path) -> Container:
    """Return a container whose `podman exec` enters its namespaces itself, in a thirtieth of the time.

    For claims on the programs in the container, where others verify what the engine does. Without the rights to do so, and
    for a stand-in, it is the same container.

    Args:
        box: The container, which runs.
        folder: An empty folder for the program.
    """
    if box.how != "podman" or box.options or os.getuid() != 0:
        return box
    inspected = _podman(["inspect", "--format", "{{.State.Pid}}", box.name], path=box.path)
    program = folder / "podman"
    _ = program.write_text(
        ENTERED.format(name=box.name, path=box.path, pid=int(inspected.stdout), inner_path=PATH),
        encoding="utf-8",
    )
    program.chmod(0o755)
    return replace(box, path=f"{folder}:{box.path}")


def _podman(arguments: Sequence[str], *, path: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["podman", *arguments],
        env={"PATH": path, "HOME": str(Path.home())},
        capture_output=True,
        timeout=STARTS_S,
        check=False,
    )


def _started(
    root: Path, mounted: Sequence[str], shared: Path, name: str, *, path: str
) -> tuple[str, ...] | None:
    if shutil.which("podman") is None:
        return None
    volumes = [f"-v={one}:{one}:ro" for one in mounted]
    for way in WAYS:
        arguments = [
            *(*way, "run", "-d", "--name", name, *FLAGS, *volumes),
            *(
                f"-v={shared}:{INNER}",
                f"-v={shared}:{shared}",
                "-e",
                f"PATH={PATH}",
                "--rootfs",
                str(root),
                "sh",
                "-c",
                SLEEP,
            ),
        ]
        try:
            run = _podman(arguments, path=path)
        except subprocess.TimeoutExpired:
            continue
        if run.returncode == 0:
            return way
        _ = _podman([*way, "rm", "-f", name], path=path)
    return None


def _stand_in(folder: Path, mounted: Sequence[str], shared: Path, name: str) -> Container:
    binds = [f"--bind {folder}/root /", *(f"--ro-bind {one} {one}" for one in mounted)]
    binds += [f"--bind {shared} {inner}" for inner in (INNER, shared)]
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "podman"
    _ = program.write_text(STAND_IN.format(name=name, mounts=" ".join(binds), path=PATH))
    program.chmod(0o755)
    path = f"{programs}:{os.defpath}"
    return Container(name=name, options=(), path=path, shared=shared, how="stand-in")
