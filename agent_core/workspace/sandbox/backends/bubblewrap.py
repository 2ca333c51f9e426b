"""Contains with bubblewrap: namespaces, a read-only machine, limits, and a filter of system calls."""

import os
import secrets
from collections.abc import Mapping
from errno import EPERM
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.backends.bubblewrap_arguments import (
    Profile,
    bubblewrap_arguments,
    writable_places,
)
from agent_core.workspace.sandbox.backends.control_group import ControlGroup
from agent_core.workspace.sandbox.backends.keeper import (
    PROCESSES,
    find_shell,
    keeper_script,
    limits_processes,
    memory_bytes,
    planned_mounts,
)
from agent_core.workspace.sandbox.backends.memory_file import closing, memory_file
from agent_core.workspace.sandbox.backends.prestart_slot import Slot
from agent_core.workspace.sandbox.backends.seccomp import seccomp_filter
from agent_core.workspace.sandbox.backends.uncontained import Uncontained
from agent_core.workspace.sandbox.private_folder import PrivateFolder
from agent_core.workspace.sandbox.survey import (
    CommandBaseline,
    Survey,
    find_program,
    git_access,
    inner_environment,
    shown_again,
)
from agent_core.workspace.sandbox.values import Boundaries, Launch, PrestartPlan, SandboxCapability

KERNEL: Final = tuple(Path("/proc", name) for name in ("sys", "sysrq-trigger"))
KERNEL_EMPTIED: Final = tuple(Path("/proc", name) for name in ("irq", "bus", "fs", "acpi", "scsi"))
"""Folders that no program reads. An empty folder costs bubblewrap a tenth of the time of a read-only one."""


class Bubblewrap:
    """Contains the processes of one workspace."""

    def __init__(
        self,
        containing: SandboxCapability,
        boundaries: Boundaries,
        *,
        homes: tuple[Path, ...],
        problem: "SandboxProblem | None" = None,
    ) -> None:
        self._containing = containing
        self._boundaries = boundaries
        self._private = PrivateFolder()
        self._survey = Survey(boundaries, homes=homes, private=self._private)
        self._problem = problem or SandboxProblem()
        self._last: tuple[Mapping[str, str], Mapping[str, str]] = ({}, inner_environment({}))
        # Nobody but root may turn them in any case.
        self._kernel = _there(KERNEL) if os.geteuid() == 0 else ()
        self._emptied = _there(KERNEL_EMPTIED) if os.geteuid() == 0 else ()
        self._shell = find_shell() or "bash"
        self._slot = Slot()
        self._group = ControlGroup(processes=PROCESSES, memory_bytes=memory_bytes())
        self._script = keeper_script(
            memory_bytes=memory_bytes(), limits_processes=limits_processes(os.uname().release)
        )

    @property
    def containing(self) -> SandboxCapability:
        """Containment of this workspace; its level is `none` where a required part cannot be enforced."""
        return self._problem.applied_to(self._containing)

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking."""
        namespace = self._namespace(argv[0], cwd=cwd, env=env, needs=needs)
        problem = namespace.ground.holds.problem
        if self._problem.stands_in_the_way(problem, agreed="uncontained" in needs):
            uncontained = Uncontained(self.containing, passed=self._boundaries.passed_variables)
            return uncontained.wrap(argv, cwd=cwd, env=env, needs=needs)
        key = secrets.token_hex(16)
        key_fd = memory_file("tiller-key", f"{key}\n".encode())
        launch = replace(self._launch(namespace, argv, key_fd=key_fd), report_key=key)
        # The next command hardly needs the same, and one that needs less is not to have it.
        return launch if needs else replace(launch, ahead=self._ahead(namespace))

    def _ahead(self, namespace: "_Namespace") -> PrestartPlan:
        return PrestartPlan(
            conditions=namespace.conditions,
            planned=namespace.mounts[0],
            slot=self._slot,
            launch=partial(self._waiting, namespace),
        )

    def _waiting(self, namespace: "_Namespace") -> Launch:
        """Return how to start a process that waits for its command. Blocking."""
        reading, writing = os.pipe()
        return replace(self._launch(namespace, (), key_fd=reading), order_fd=writing)

    def _namespace(
        self, program: str, *, cwd: Path, env: Mapping[str, str], needs: frozenset[Needs]
    ) -> "_Namespace":
        """Plan the namespace of one process."""
        path = env.get("PATH", os.defpath)
        found = find_program(program, cwd=cwd, path=path)
        ground = self._survey.before(env=env, git=git_access(needs))
        shown = shown_again(
            self._boundaries,
            program=found,
            path=path,
            network="network" in needs,
            closed=ground.view.closed,
        )
        profile = self._profile(ground, shown, cwd=cwd, network="network" in needs)
        arguments = bubblewrap_arguments(profile)
        mounted = os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
        return _Namespace(
            ground=ground,
            needs=needs,
            arguments=arguments,
            mounts=(
                planned_mounts((*profile.roots, *profile.held)),
                planned_mounts(writable_places(arguments)) + mounted_below(profile.roots, mounted),
            ),
            mounted=mounted,
            env=self._inner(env),
        )

    def _launch(self, namespace: "_Namespace", argv: tuple[str, ...], *, key_fd: int) -> Launch:
        into = self._boundaries.quarantine or self._private.path / "quarantine"
        seccomp_fd = filter_descriptor(sockets="sockets" in namespace.needs)
        keeper = self._group.entered(
            (
                self._containing.program or "bwrap",
                *(() if seccomp_fd is None else ("--seccomp", str(seccomp_fd))),
                *namespace.arguments,
                *(self._shell, "-c", self._script, "keeper"),
            )
        )
        before = (*keeper, "output", str(key_fd), *namespace.mounts)
        return Launch(
            argv=(*before, *argv),
            output_at=len(keeper),
            command_at=len(before),
            env=namespace.env,
            pass_fds=(key_fd,) if seccomp_fd is None else (key_fd, seccomp_fd),
            starting=self._group.enter,
            started=closing(key_fd, seccomp_fd),
            after=lambda output, code: self._survey.after(
                namespace.ground, needs=namespace.needs, into=into, output=output, exit_code=code
            ),
        )

    def _inner(self, env: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment inside; most commands have that of the one before."""
        outer, inner = self._last
        if outer != env:
            outer, inner = self._last = (
                dict(env),
                inner_environment(env, passed=self._boundaries.passed_variables),
            )
        return inner

    def close(self) -> None:
        """Remove what commands kept in their private temporary folder."""
        self._slot.close()
        self._survey.close()
        self._private.close()
        self._group.close()

    def _profile(
        self,
        ground: CommandBaseline,
        shown: tuple[Path, ...],
        *,
        cwd: Path,
        network: bool,
    ) -> Profile:
        roots = self._boundaries.roots
        return Profile(
            roots=roots,
            held=ground.holds.mounts,
            closed=ground.view.closed,
            shown=ground.view.shown,
            links=ground.view.links,
            empty_file=self._private.empty_file,
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
            forbids_userns=self._containing.can_forbid_userns,
        )


class _Namespace(Value, frozen=True, kw_only=True):
    """The plan of the namespace of one process."""

    ground: CommandBaseline
    needs: frozenset[Needs]
    arguments: tuple[str, ...]
    mounts: tuple[str, str]
    """Mounts that must exist, and mounts that may be writable."""
    mounted: str
    """Mounts outside of the namespace, as the kernel writes them."""
    env: Mapping[str, str]

    @property
    def conditions(self) -> tuple[object, ...]:
        """All that decides what the process finds, but for what it needs."""
        return self.arguments, self.mounts, self.mounted, self.env


def mounted_below(roots: tuple[Path, ...], mounted: str) -> str:
    """Return which of the mounts lie below the roots, as the kernel writes their places, each on a line. Pure."""
    begin = tuple(f"{planned_mounts((root,))[:-1]}/" for root in roots)
    # Lines end with "\n" alone: a path may have any other sign in it at which `splitlines` parts.
    places = [line.split(" ", 5)[4] for line in mounted.split("\n") if line]
    return "".join(f"{place}\n" for place in places if place.startswith(begin))


class SandboxProblem:
    """Why a workspace cannot be contained at present."""

    def __init__(self) -> None:
        self._why: str | None = None

    def applied_to(self, containing: SandboxCapability) -> SandboxCapability:
        """Return what holds with the problem taken into account."""
        if self._why is None:
            return containing
        why = f"commands cannot be contained in this workspace: {self._why}"
        return SandboxCapability(level="none", how="nothing", why_not_full=why)

    def stands_in_the_way(self, why: str | None, *, agreed: bool) -> bool:
        """Record the problem found before a command; return whether the command is to run uncontained.

        Args:
            why: The problem; None: the command can be contained.
            agreed: The command was judged as one that is not contained.

        Raises:
            OSError: The command was judged as contained, and cannot be contained.
        """
        self._why = why
        if why is not None and not agreed:
            message = (
                f"this command cannot be contained: {why}. Run it again, and the user is asked"
            )
            raise OSError(EPERM, message)
        return why is not None


def filter_descriptor(*, sockets: bool) -> int | None:
    """Return a file in memory with the filter of system calls; None where there is none for the processor."""
    # The namespace holds what is sent to the internet.
    content = seccomp_filter(machine=os.uname().machine, internet=True, unix=sockets)
    if content is None:
        return None
    return memory_file("tiller-seccomp", content)


def _there(places: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(one for one in places if one.exists())
