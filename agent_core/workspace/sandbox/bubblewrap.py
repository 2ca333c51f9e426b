"""Contains with bubblewrap: namespaces, a read-only machine, limits, and a filter of system calls."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.workspace.permission import Needs
from agent_core.workspace.sandbox.control_group import ControlGroup
from agent_core.workspace.sandbox.keeper import (
    PROCESSES,
    find_shell,
    keeper_script,
    limits_processes,
    memory_bytes,
)
from agent_core.workspace.sandbox.memory_file import closing, memory_file
from agent_core.workspace.sandbox.private_folder import PrivateFolder
from agent_core.workspace.sandbox.profile import Profile, bubblewrap_arguments
from agent_core.workspace.sandbox.seccomp import seccomp_filter
from agent_core.workspace.sandbox.survey import (
    Ground,
    aftermath,
    find_program,
    inner_environment,
    shown_again,
    survey,
)
from agent_core.workspace.sandbox.values import Boundaries, Containing, Launch

KERNEL: Final = tuple(Path("/proc", name) for name in ("sys", "sysrq-trigger"))
KERNEL_EMPTIED: Final = tuple(Path("/proc", name) for name in ("irq", "bus", "fs", "acpi", "scsi"))
"""Nobody reads these, and an empty folder costs bubblewrap a tenth of what a read-only one does."""


class Bubblewrap:
    """Contains the processes of one workspace."""

    def __init__(
        self, containing: Containing, boundaries: Boundaries, *, homes: tuple[Path, ...]
    ) -> None:
        self.containing = containing
        self._boundaries = boundaries
        self._homes = homes
        self._private = PrivateFolder()
        self._last: tuple[Mapping[str, str], Mapping[str, str]] = ({}, inner_environment({}))
        # Nobody but root may turn them in any case.
        self._kernel = _there(KERNEL) if os.geteuid() == 0 else ()
        self._emptied = _there(KERNEL_EMPTIED) if os.geteuid() == 0 else ()
        self._shell = find_shell() or "bash"
        self._group = ControlGroup(processes=PROCESSES, memory_bytes=memory_bytes())
        self._script = keeper_script(
            memory_bytes=memory_bytes(), limits_processes=limits_processes(os.uname().release)
        )

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Say how to start a process. Blocking."""
        path = env.get("PATH", os.defpath)
        program = find_program(argv[0], cwd=cwd, path=path)
        ground = survey(
            self._boundaries, homes=self._homes, env=env, git_is_open="gitConfig" in needs
        )
        temporary = self._private.path
        seccomp_fd = filter_descriptor(network="network" in needs)
        shown = shown_again(
            self._boundaries, program=program, path=path, network="network" in needs
        )
        profile = self._profile(
            ground, shown, cwd=cwd, network="network" in needs, seccomp_fd=seccomp_fd
        )
        into = self._boundaries.quarantine or temporary / "quarantine"
        keeper = self._group.entered(
            (
                *(self.containing.program or "bwrap", *bubblewrap_arguments(profile)),
                *(self._shell, "-c", self._script, "keeper"),
            )
        )
        return Launch(
            argv=(*keeper, "output", *argv),
            output_at=len(keeper),
            env=self._inner(env),
            pass_fds=() if seccomp_fd is None else (seccomp_fd,),
            starting=self._group.enter,
            started=closing(seccomp_fd),
            after=lambda output, code: aftermath(
                self._boundaries, ground, needs=needs, into=into, output=output, exit_code=code
            ),
        )

    def _inner(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Give the environment inside; most commands have that of the one before."""
        known, inner = self._last
        if known != env:
            known, inner = self._last = dict(env), inner_environment(env)
        return inner

    def close(self) -> None:
        """Remove what commands kept in their private temporary folder."""
        self._private.close()
        self._group.close()

    def _profile(
        self,
        ground: Ground,
        shown: tuple[Path, ...],
        *,
        cwd: Path,
        network: bool,
        seccomp_fd: int | None,
    ) -> Profile:
        roots = self._boundaries.roots
        return Profile(
            roots=roots,
            git=tuple(folder.path for folder in ground.git),
            read_only=ground.guarded,
            # What the user opened as a workspace is no secret from it.
            masked_folders=(
                *self._emptied,
                *(one for one in ground.secrets.folders if one not in roots),
            ),
            masked_files=ground.secrets.files,
            readable=shown,
            kernel=self._kernel,
            temporary=self._private.path,
            cwd=Path(os.path.realpath(cwd)),
            network=network,
            forbids_userns=self.containing.can_forbid_userns,
            seccomp_fd=seccomp_fd,
        )


def filter_descriptor(*, network: bool, sockets: bool = True) -> int | None:
    """Give a file in memory with the filter of system calls; None where there is none for the processor."""
    content = seccomp_filter(machine=os.uname().machine, network=network, sockets=sockets)
    if content is None:
        return None
    return memory_file("tiller-seccomp", content)


def _there(places: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(one for one in places if one.exists())
