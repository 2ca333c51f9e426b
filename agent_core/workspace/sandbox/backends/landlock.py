"""Contains with Landlock and a filter of system calls, where user namespaces are not allowed: less than bubblewrap does.

Not held: signals to other processes on old kernels, `chmod` and times outside, names in masked folders, and what is
protected inside of the workspace. POSIX shared memory and named semaphores do not work: `/dev/shm` cannot be private here. So the level is `partial`, and nothing runs unasked because of it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Container, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Final

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.backends.keeper import FILE_BYTES
from agent_core.workspace.sandbox.backends.seccomp import closing, memory_file, seccomp_filter
from agent_core.workspace.sandbox.home_view import PrivateFolder
from agent_core.workspace.sandbox.survey import Survey, find_program, git_access, inner_environment
from agent_core.workspace.sandbox.values import Boundaries, Launch, SandboxCapability

LAUNCHER: Final = Path(__file__).with_name("landlock_launcher.py")
PYTHON: Final = (sys.executable, "-I", "-S", "-B")
TRY_S: Final = 10.0
WRITABLE_DEVICES: Final = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")
)
OF_THE_MACHINE: Final = (Path("/dev"), Path("/sys"))
"""Devices, shared memory and the kernel's log are the machine's: not even readable but for `WRITABLE_DEVICES`."""
READABLE_OF_THE_MACHINE: Final = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""By these the C library counts processors."""
MOST_SHOWN: Final = 4096
"""More neighbours of secrets are not opened one by one; the rest cannot be read then."""


class LandlockSandbox:
    """Contains the processes of one workspace."""

    def __init__(
        self, containing: SandboxCapability, boundaries: Boundaries, *, homes: tuple[Path, ...]
    ) -> None:
        self.containing = containing
        self._boundaries = boundaries
        self._private = PrivateFolder()
        self._survey = Survey(boundaries, homes=homes, private=self._private)

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking."""
        _ = find_program(argv[0], cwd=cwd, path=env.get("PATH", os.defpath))
        ground = self._survey.before(env=env, git=git_access(needs))
        temporary = self._private.path
        network = "network" in needs
        rules = launcher_rules(
            writable=(*self._boundaries.roots, *ground.holds.data, temporary),
            secret=(*ground.secrets.folders, *ground.secrets.files, *ground.holds.hidden),
            readable=self._boundaries.readable,
            network=network,
            sockets="sockets" in needs,
        )
        moved = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": f"{temporary}/.cache"}
        into = self._boundaries.quarantine or temporary / "quarantine"
        rules_fd = memory_file("tiller-rules", rules.encode())
        return Launch(
            argv=(*PYTHON, str(LAUNCHER), str(rules_fd), *argv),
            pass_fds=(rules_fd,),
            started=closing(rules_fd),
            env={
                **inner_environment(env, passed=self._boundaries.passed_variables),
                **moved,
                "npm_config_cache": f"{temporary}/.npm",
            },
            after=lambda output, code: self._survey.after(
                ground, needs=needs, into=into, output=output, exit_code=code
            ),
        )

    def close(self) -> None:
        """Remove what commands kept in their private temporary folder."""
        self._survey.close()
        self._private.close()


def launcher_rules(
    *,
    writable: Iterable[Path],
    secret: Iterable[Path],
    readable: Iterable[Path],
    network: bool,
    sockets: bool = False,
) -> str:
    """Return what the launcher is told. Blocking: Landlock only allows, so all that is no secret is named."""
    content = seccomp_filter(machine=os.uname().machine, internet=network, unix=sockets)
    return json.dumps(
        {
            "write": [str(path) for path in writable] + list(WRITABLE_DEVICES),
            "read": [
                *all_but((*secret, *OF_THE_MACHINE)),
                *READABLE_OF_THE_MACHINE,
                *(str(path) for path in readable),
            ],
            "network": network,
            "seccomp": None if content is None else content.hex(),
            "file_bytes": FILE_BYTES,
        }
    )


def all_but(secret: Iterable[Path]) -> list[str]:
    """Return the fewest paths that hold everything but some. Blocking.

    Where there are too many, it is the most crowded folders that lose some of theirs.
    """
    hidden = set(secret) - {Path("/")}
    if not hidden:
        return ["/"]
    around = {parent for path in hidden for parent in path.parents}
    looked_into = (one for one in around if hidden.isdisjoint((one, *one.parents)))
    folders = sorted((_beside(one, hidden | around) for one in looked_into), key=len)
    return list(islice(chain.from_iterable(folders), MOST_SHOWN))


def _beside(folder: Path, excluded: Container[Path]) -> list[str]:
    """Return what is in a folder, but for some."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - strings are enough
    except OSError:
        return []
    paths = [folder / name for name in names]
    # What a link leads to has its own place, and its own rule.
    return [str(path) for path in paths if path not in excluded and not path.is_symlink()]


def try_landlock() -> int | None:
    """Return the version of Landlock that works here; None: none does. Blocking."""
    rules = launcher_rules(writable=(), secret=(), readable=(), network=False)
    check = f'import os; os.open("{os.devnull}", os.O_RDONLY); print("in")'
    try:
        version = subprocess.run(  # noqa: S603 - our own launcher
            [*PYTHON, str(LAUNCHER), "--version"],
            capture_output=True, timeout=TRY_S, check=False, env={},
        )  # fmt: skip
        inside = subprocess.run(  # noqa: S603 - our own launcher
            [*PYTHON, str(LAUNCHER), rules, *PYTHON, "-c", check],
            capture_output=True, timeout=TRY_S, check=False, env={},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = version.stdout.strip()
    if inside.stdout.strip() != b"in" or not said.isdigit() or int(said) < 1:
        return None
    return int(said)
