"""The command line of bubblewrap: pure, from what was found on the disk to its arguments."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.guards.mount_plan import MountKind

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
