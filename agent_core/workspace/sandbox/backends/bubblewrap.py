"""Contains with bubblewrap: namespaces, a read-only machine, limits, and a filter of system calls."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from errno import EPERM
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.backends.keeper import (
    PROCESSES,
    ControlGroup,
    find_shell,
    keeper_script,
    limits_processes,
    memory_bytes,
    planned_mounts,
)
from agent_core.workspace.sandbox.backends.seccomp import closing, memory_file, seccomp_filter
from agent_core.workspace.sandbox.backends.uncontained import Uncontained
from agent_core.workspace.sandbox.guards.mount_plan import MountKind
from agent_core.workspace.sandbox.home_view import PrivateFolder
from agent_core.workspace.sandbox.survey import (
    CommandBaseline,
    Survey,
    find_program,
    git_access,
    inner_environment,
    shown_again,
)
from agent_core.workspace.sandbox.values import (
    Boundaries,
    Launch,
    PrestartPlan,
    SandboxCapability,
    Slot,
)

SHARED_MEMORY_BYTES: Final = 1_073_741_824
EMPTY_BYTES: Final = 65_536
EMPTY_FOLDERS: Final = (Path("/sys"), Path("/run"))
TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - these are replaced by a private one
DEVICES: Final = Path("/dev")


class Profile(Value, frozen=True, kw_only=True):
    """Resources that one command sees, changes and reaches. All paths are real and exist, unless they say otherwise."""

    roots: tuple[Path, ...]
    """May be changed."""
    held: Mapping[Path, MountKind]
    """Mounts over the roots, by place."""
    closed: tuple[Path, ...] = ()
    """Homes: they show as empty, but for what is shown of them and laid over them."""
    shown: tuple[Path, ...] = ()
    """Below closed homes, read-only."""
    links: tuple[tuple[Path, Path], ...] = ()
    """Below closed homes: where a link is made, and what it leads to."""
    masked_folders: tuple[Path, ...]
    """Show as empty."""
    masked_files: tuple[Path, ...]
    """Show as empty too."""
    empty_file: Path
    """Of ours; stands where a file shows as empty."""
    readable: tuple[Path, ...]
    """Shown although they lie in something masked or temporary."""
    kernel: tuple[Path, ...]
    """Switches of the kernel in /proc, which root could turn: bubblewrap leaves those open."""
    temporary: Path
    """Private; stands where every program looks for its temporary folder."""
    cwd: Path
    network: bool
    forbids_userns: bool


def bubblewrap_arguments(profile: Profile) -> tuple[str, ...]:
    """Return the arguments for bubblewrap, up to where the command begins. Later ones lie over earlier ones."""
    return tuple(_arguments(profile))


def writable_places(arguments: Sequence[str]) -> Iterator[Path]:
    """Yield where arguments for bubblewrap mount something that is not read-only. Pure."""
    for at, word in enumerate(arguments):
        if word == "--bind":
            yield Path(arguments[at + 2])
        elif word == "--tmpfs":
            yield Path(arguments[at + 1])


def _arguments(profile: Profile) -> Iterator[str]:
    yield from ("--die-with-parent", "--new-session")
    yield from (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    )
    if profile.forbids_userns:
        yield "--disable-userns"
    if not profile.network:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL")
    yield from ("--ro-bind", "/", "/")
    yield from _ground(profile)
    yield from _homes(profile)
    inside = [one for one in profile.masked_folders if _is_below(one, profile.roots)]
    files = [one for one in profile.masked_files if not _is_below(one, profile.roots)]
    folders = [one for one in profile.masked_folders if one not in inside]
    yield from _masks(
        [one for one in folders if _is_there(one, profile)],
        # Also in a closed home: programs ask for some of them at every start.
        files,
        profile,
    )
    yield from _binds("--ro-bind", profile.readable)
    yield from _binds("--bind", profile.roots)
    yield from _masks(
        inside, [one for one in profile.masked_files if _is_below(one, profile.roots)], profile
    )
    yield from _held(profile)
    # Last: until here places for what is bound may have had to be made in it.
    for folder in (DEVICES, *profile.closed):
        yield from ("--remount-ro", str(folder))
    yield from ("--chdir", str(profile.cwd), "--")


def _ground(profile: Profile) -> Iterator[str]:
    """Replace what the system itself offers."""
    yield from ("--dev", str(DEVICES))
    yield from ("--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108 - private
    yield from ("--proc", "/proc")
    yield from _binds("--ro-bind", profile.kernel)
    yield from _masks(EMPTY_FOLDERS, (), profile)
    for folder in TEMPORARY:
        yield from ("--bind", str(profile.temporary), str(folder))


def _homes(profile: Profile) -> Iterator[str]:
    """Close the homes, and show what tool chains keep there."""
    yield from _masks(profile.closed, (), profile)
    yield from _binds("--ro-bind", profile.shown)
    for link, target in profile.links:
        yield from ("--symlink", str(target), str(link))


def _is_there(path: Path, profile: Profile) -> bool:
    """Return whether something would be seen if it were not masked: of a closed home only what is shown is."""
    return _is_below(path, profile.shown) or not _is_below(path, profile.closed)


def _held(profile: Profile) -> Iterator[str]:
    for path, kind in sorted(profile.held.items()):
        match kind:
            case "writable":
                yield from ("--bind", str(path), str(path))
            case "read-only":
                yield from ("--ro-bind", str(path), str(path))
            case "empty file":
                yield from _masks((), (path,), profile)
            case "empty folder":
                yield from _masks((path,), (), profile)


def _masks(folders: Sequence[Path], files: Sequence[Path], profile: Profile) -> Iterator[str]:
    for folder in folders:
        # Not mounted read-only, which costs bubblewrap a look at all mounts: there is room for nothing.
        yield from ("--perms", "0555", "--size", str(EMPTY_BYTES), "--tmpfs", str(folder))
    for file in files:
        # No device: bubblewrap mounts without those, and to open one would fail.
        yield from ("--ro-bind", str(profile.empty_file), str(file))


def _binds(flag: str, paths: Sequence[Path]) -> Iterator[str]:
    # A folder before what is in it: the other way round it would hide that.
    for path in sorted(dict.fromkeys(paths)):
        yield from (flag, str(path), str(path))


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    # As text: paths take their time, and this is asked dozens of times before every command.
    return f"{path}/".startswith(tuple(f"{folder}/" for folder in folders))


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
