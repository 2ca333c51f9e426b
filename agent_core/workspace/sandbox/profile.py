"""The command line of bubblewrap: pure, from what was found on the disk to its arguments."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.records import dataclass

SHARED_MEMORY_BYTES: Final = 1_073_741_824
EMPTY_BYTES: Final = 65_536
EMPTY_FOLDERS: Final = (Path("/sys"), Path("/run"))
TEMPORARY: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - these are replaced by a private one
DEVICES: Final = Path("/dev")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one command sees, changes and reaches. All paths are real and there, unless they say otherwise."""

    roots: tuple[Path, ...]
    """May be changed."""
    git: tuple[Path, ...]
    """Folders of git: may be changed, and are places of their own, so that no other can be put where they are."""
    read_only: tuple[Path, ...]
    """Below roots or git folders, and not to be changed."""
    masked_folders: tuple[Path, ...]
    """Show as empty."""
    masked_files: tuple[Path, ...]
    readable: tuple[Path, ...]
    """Shown although they lie in something masked or temporary."""
    kernel: tuple[Path, ...]
    """Switches of the kernel in /proc, which root could turn: bubblewrap leaves those open."""
    temporary: Path
    """Private; stands where every program looks for its temporary folder."""
    cwd: Path
    network: bool
    forbids_userns: bool
    seccomp_fd: int | None


def bubblewrap_arguments(profile: Profile) -> tuple[str, ...]:
    """Give the arguments for bubblewrap, up to where the command begins. Later ones lie over earlier ones."""
    return tuple(_arguments(profile))


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
    inside = [one for one in profile.masked_folders if _is_below(one, profile.roots)]
    before = [one for one in profile.masked_folders if one not in inside]
    yield from _masks(
        before, [one for one in profile.masked_files if not _is_below(one, profile.roots)]
    )
    yield from _binds("--ro-bind", profile.readable)
    yield from _binds("--bind", profile.roots)
    yield from _masks(
        inside, [one for one in profile.masked_files if _is_below(one, profile.roots)]
    )
    yield from _binds("--bind", profile.git)
    yield from _binds("--ro-bind", profile.read_only)
    # Last: until here places for what is bound may have had to be made in it.
    yield from ("--remount-ro", str(DEVICES))
    if profile.seccomp_fd is not None:
        yield from ("--seccomp", str(profile.seccomp_fd))
    yield from ("--chdir", str(profile.cwd), "--")


def _ground(profile: Profile) -> Iterator[str]:
    """Replace what the system itself offers."""
    yield from ("--dev", str(DEVICES))
    yield from ("--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108 - private
    yield from ("--proc", "/proc")
    yield from _binds("--ro-bind", profile.kernel)
    yield from _masks(EMPTY_FOLDERS, ())
    for folder in TEMPORARY:
        yield from ("--bind", str(profile.temporary), str(folder))


def _masks(folders: Sequence[Path], files: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        # Not mounted read-only, which costs bubblewrap a look at all mounts: there is room for nothing.
        yield from ("--perms", "0555", "--size", str(EMPTY_BYTES), "--tmpfs", str(folder))
    for file in files:
        yield from ("--ro-bind", "/dev/null", str(file))


def _binds(flag: str, paths: Sequence[Path]) -> Iterator[str]:
    # A folder before what is in it: the other way round it would hide that.
    for path in sorted(dict.fromkeys(paths)):
        yield from (flag, str(path), str(path))


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    # As text: paths take their time, and this is asked dozens of times before every command.
    return f"{path}/".startswith(tuple(f"{folder}/" for folder in folders))
