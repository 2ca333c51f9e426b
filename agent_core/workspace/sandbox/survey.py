"""Looks at the disk before a command, and at what the command left there. Blocking."""

import os
import shutil
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from errno import EACCES, ENOENT
from pathlib import Path
from typing import Final

import msgspec

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.denial_messages import CommandLimits, denials
from agent_core.workspace.sandbox.environment import scrubbed
from agent_core.workspace.sandbox.guards.git import first_made, is_tame, unfinished_programs
from agent_core.workspace.sandbox.guards.mount_plan import (
    GitAccess,
    MountPlan,
    git_pointers,
    plan_holds,
)
from agent_core.workspace.sandbox.guards.secret_places import (
    SecretPlaces,
    TrackedSecrets,
    secret_places,
)
from agent_core.workspace.sandbox.guards.tree_index import (
    DEPENDENCIES,
    GIT,
    GuardedEntry,
    TreeIndex,
)
from agent_core.workspace.sandbox.home_view import HomeView, PrivateFolder, home_view
from agent_core.workspace.sandbox.quarantine import Quarantine
from agent_core.workspace.sandbox.values import Boundaries, SandboxReport

TEMPORARY: Final = "/tmp"  # noqa: S108 - a private one stands there
OVERLAID: Final = tuple(Path(one) for one in ("/tmp", "/var/tmp", "/run"))  # noqa: S108 - as above
_OVERLAID_NAMES: Final = tuple(f"{one}/" for one in OVERLAID)
VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"
RESOLVER: Final = "/etc/resolv.conf"
UNSEEN: Final = "what an earlier command left in it could not be looked at; check its changes, then open it again"
MOST_PASSES: Final = 32
"""Most passes of the clean-up: a removal may uncover another entry."""


class CommandBaseline(Value, frozen=True, kw_only=True):
    """State found just before a command."""

    entries: Mapping[str, GuardedEntry]
    """All that is held in the roots, by absolute path."""
    holds: MountPlan
    git: GitAccess
    pointers: frozenset[Path] = msgspec.field(default_factory=frozenset[Path])
    """Entries in the git folders with writable data that lead git elsewhere."""
    modes: Mapping[Path, int] = msgspec.field(default_factory=dict[Path, int])
    """Permissions of the roots."""
    unfinished: frozenset[tuple[Path, str]] = msgspec.field(
        default_factory=frozenset[tuple[Path, str]]
    )
    """The programs that git was in the middle of running there."""
    secrets: SecretPlaces
    view: HomeView
    """Closed homes of the user, and the parts of them that are shown."""
    home: Path


class Survey:
    """Looks at the roots of one workspace before and after its commands."""

    def __init__(
        self, boundaries: Boundaries, *, homes: tuple[Path, ...], private: PrivateFolder
    ) -> None:
        """Create a survey for the boundaries of commands, the homes and the private folder; nothing is read yet."""
        self._private = private
        self._boundaries = boundaries
        self._homes = homes
        self._turn = threading.Lock()
        self._index = TreeIndex(tuple(str(root) for root in boundaries.roots))
        self._left: dict[str, GuardedEntry] = {}
        """Entries that had to be removed and could not be."""
        self._tracked = TrackedSecrets()
        self._failure: str | None = None
        self._made: set[Path] = set()
        """Paths that were created where git or a protected link leads to, and that could not be removed."""

    def before(self, *, env: Mapping[str, str], git: GitAccess) -> CommandBaseline:
        """Look at everything that the containment of one command depends on."""
        boundaries = self._boundaries
        with self._turn:
            entries = self._index.refresh()
            holds = self._plan(entries, git, env=env)
        secrets = secret_places(
            homes=self._homes, env={**boundaries.env, **env}, own=boundaries.hidden
        )
        return CommandBaseline(
            entries=entries,
            holds=holds,
            git=git,
            pointers=git_pointers(holds.data),
            unfinished=unfinished_programs(holds.data),
            modes={root: stat.S_IMODE(root.stat().st_mode) for root in boundaries.roots},
            secrets=secrets,
            view=home_view(
                homes=self._homes,
                env=env,
                path=env.get("PATH", os.defpath),
                extra=boundaries.readable_extra,
                secrets=secrets,
                roots=boundaries.roots,
            ),
            home=self._homes[0] if self._homes else Path("/"),
        )

    def after(
        self,
        ground: CommandBaseline,
        *,
        needs: frozenset[Needs],
        into: Path,
        output: str,
        exit_code: int | None,
    ) -> SandboxReport:
        """Remove what a command must not have made, and return that with what it was kept from."""
        quarantine = Quarantine(into, (*self._boundaries.roots, *ground.holds.data))
        walls = CommandLimits(
            network="network" in needs,
            sockets="sockets" in needs,
            git=ground.git,
            guarded=tuple(sorted({path.name for path in ground.holds.read_only})),
            masked=(*ground.secrets.folders, *ground.secrets.files),
            secrets=tuple(sorted({path.name for path in ground.holds.hidden})),
            home=ground.home,
        )
        with self._turn:
            # Until it is seen what the command left, that would pass for the user's own; also when this look fails.
            earlier, self._failure = self._failure, UNSEEN
            open_roots(ground.modes)
            taken = self._clean(ground, quarantine)
            self._failure = earlier
        return SandboxReport(
            quarantined=tuple(taken),
            denied=denials(output, exit_code=exit_code, walls=walls),
        )

    def close(self) -> None:
        """Stop watching the roots. Idempotent."""
        with self._turn:
            self._index.close()

    def _plan(
        self, entries: Mapping[str, GuardedEntry], git: GitAccess, *, env: Mapping[str, str]
    ) -> MountPlan:
        if self._failure is not None:
            return MountPlan(problem=self._failure)
        left = next((path for path, one in self._left.items() if entries.get(path) == one), None)
        left = left or next((place for place in self._made if os.path.lexists(place)), None)
        if left is not None:
            return MountPlan(problem=f"a command made {left}, and it could not be taken away")
        visible = frozenset(self._boundaries.visible())
        tracked = self._tracked.among(entries)
        return plan_holds(
            entries,
            roots=self._boundaries.roots,
            git=git,
            visible=visible,
            tracked=tracked,
            settings=user_settings(self._homes, env),
        )

    def _clean(self, ground: CommandBaseline, quarantine: Quarantine) -> list[Path]:
        """Remove what is new and must not be, until nothing of that is left."""
        taken: list[Path] = []
        if ground.git == "data":
            taken += _taken_pointers(ground, quarantine)
        taken += self._taken_led_to(ground, quarantine)
        judged: dict[str, GuardedEntry] = {}
        for _ in range(MOST_PASSES):
            now = self._index.refresh()
            taken += _restored(ground, now, quarantine)
            new = {
                path: entry
                for path, entry in now.items()
                if ground.entries.get(path) != entry and judged.get(path) != entry
            }
            if not new:
                break
            judged |= new
            for name, entry in sorted(new.items()):
                if self._must_go(name, entry, ground):
                    taken += _take(Path(name), entry, now, ground.entries, quarantine)
        now = self._index.refresh()
        self._left = {
            path: entry
            for path, entry in now.items()
            if self._left.get(path) == entry
            or (ground.entries.get(path) != entry and self._must_go(path, entry, ground))
        }
        return list(dict.fromkeys(taken))

    def _taken_led_to(self, ground: CommandBaseline, quarantine: Quarantine) -> Iterable[Path]:
        """Remove what a command made where git, or a protected link, leads to."""
        for place in sorted(ground.holds.vacant):
            for _ in range(MOST_PASSES):
                made = first_made(place, self._boundaries.roots)
                if made is None:
                    break
                entry = entry_at(made)
                if entry is None or not quarantine.take(made, entry):
                    self._made.add(made)
                    break
                yield made

    def _must_go(self, name: str, entry: GuardedEntry, ground: CommandBaseline) -> bool:
        """Return whether something that is there since a command began must not be."""
        before, path = ground.entries.get(name), Path(name)
        if before and before.kind != "marker" and before.target in {None, entry.target}:
            # What a mount holds cannot be exchanged from inside: somebody else did that. Not all secrets are mounted.
            return before.kind == "secret" and entry.target != before.target
        match entry.kind:
            case "protected" | "protected secret" | "unreadable":
                return True
            case "git" | "repository":
                is_held = entry.kind == "repository" or entry.is_folder
                return ground.git != "open" and not (is_held and is_tame(path))
            case "secret":
                # A link would hide, or show, what it leads to.
                return entry.target is not None
            case _:
                return entry.kind == "link" and self._leads_astray(path)

    def _leads_astray(self, link: Path) -> bool:
        """Return whether a new link leads to where commands can put anything, and nobody looks for it."""
        try:
            real = Path(os.path.realpath(link))
        except OSError:
            return True  # it changes while it is looked at
        if real.is_relative_to(self._private.top):
            return True
        around = [root for root in self._boundaries.roots if root in real.parents]
        if not around:
            return False
        # Of roots in one another the innermost is walked whole.
        root = max(around, key=lambda one: len(one.parts))
        return not ({GIT} | DEPENDENCIES).isdisjoint(real.relative_to(root).parts)


def _take(
    path: Path,
    entry: GuardedEntry,
    now: Mapping[str, GuardedEntry],
    before: Mapping[str, GuardedEntry],
    quarantine: Quarantine,
) -> Iterable[Path]:
    """Remove one thing that must not be there; returns what was taken."""
    match entry.kind:
        case "git" if entry.is_folder:
            try:
                return tuple(path / name for name in quarantine.neutralize(path, entry))
            except OSError:
                return (path,) if quarantine.take(path, entry) else ()
        case "repository":
            return _unmade(path, now, before, quarantine)
        case "unreadable":
            is_readable = quarantine.make_readable(path, entry)
            # What lies too deep to be looked at goes as a whole.
            return (path,) if not is_readable and quarantine.take(path, entry) else ()
        case _:
            return (path,) if quarantine.take(path, entry) else ()


def _restored(
    ground: CommandBaseline, now: Mapping[str, GuardedEntry], quarantine: Quarantine
) -> Iterable[Path]:
    """Restore protected links that are gone or others: no mount can hold a link in its place."""
    for name, entry in ground.entries.items():
        if entry.target is None or entry.kind == "link":
            continue
        found = now.get(name)
        if (found is None or found.target != entry.target) and quarantine.restore_link(
            path := Path(name), entry.target, found
        ):
            yield path


def _taken_pointers(ground: CommandBaseline, quarantine: Quarantine) -> Iterable[Path]:
    """Remove what a command of git made in the git folders beyond data."""
    steps = {path for path, _ in unfinished_programs(ground.holds.data) - ground.unfinished}
    for path in sorted(steps | (git_pointers(ground.holds.data) - ground.pointers)):
        entry = entry_at(path)
        if entry is not None and quarantine.take(path, entry):
            yield path


def open_roots(modes: Mapping[Path, int]) -> None:
    """Restore the permissions of roots that their owner may not enter, list or change any more. Blocking."""
    for root, mode in modes.items():
        with suppress(OSError):
            opened = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                taken = mode & ~os.fstat(opened).st_mode & stat.S_IRWXU
                if taken:
                    # By descriptor: one without rights cannot be opened otherwise.
                    os.chmod(f"/proc/self/fd/{opened}", mode)  # noqa: PTH101 - a descriptor
            finally:
                os.close(opened)


def entry_at(path: Path) -> GuardedEntry | None:
    """Return what stands at a place, to be taken away; None: nothing."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return GuardedEntry(kind="git", device=found.st_dev, inode=found.st_ino, mode=found.st_mode)


def user_settings(homes: Sequence[Path], env: Mapping[str, str]) -> Sequence[Path]:
    """Return where the user's own settings of git lie (git-config(1), FILES). Pure."""
    moved = env.get("XDG_CONFIG_HOME", "")
    folders = [Path(moved)] if moved.startswith("/") else [home / ".config" for home in homes]
    named = env.get("GIT_CONFIG_GLOBAL", "")
    return (
        *((Path(named),) if named.startswith("/") else ()),
        *(home / ".gitconfig" for home in homes),
        *(folder / "git" / "config" for folder in folders),
    )


def _unmade(
    folder: Path,
    now: Mapping[str, GuardedEntry],
    before: Mapping[str, GuardedEntry],
    quarantine: Quarantine,
) -> tuple[Path, ...]:
    """Remove the new names that make a folder a repository, and return them; the rest of it may be the user's."""
    inside = {
        Path(path): entry
        for path, entry in now.items()
        if entry.kind == "marker"
        and path.rpartition("/")[0] == str(folder)
        and before.get(path) != entry
    }
    files = {path: entry for path, entry in inside.items() if not entry.is_folder}
    return tuple(path for path, entry in (files or inside).items() if quarantine.take(path, entry))


def git_access(needs: frozenset[Needs]) -> GitAccess:
    """Return what a command may change of repositories. Pure."""
    if "gitConfig" in needs:
        return "open"
    return "data" if "gitData" in needs else "closed"


def find_program(name: str, *, cwd: Path, path: str) -> Path:
    """Return the file of a program, as the system would find it on starting it.

    Raises:
        OSError: There is none, or it may not be run.
    """
    if "/" not in name:
        found = shutil.which(name, path=path)
        if found is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
        return Path(found)
    whole = cwd / name
    if not whole.exists():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
    if whole.is_dir() or not os.access(whole, os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), name)
    return whole


def inner_environment(env: Mapping[str, str], *, passed: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the environment of a contained command. Pure.

    Args:
        env: The environment as the user has it.
        passed: More variables that the user's settings let through.

    Caches go to the private temporary folder: the user's own are read-only, and a poisoned one would act outside.
    """
    return {
        **scrubbed(env, passed=tuple(passed)).env,
        "TMPDIR": TEMPORARY,
        "XDG_CACHE_HOME": f"{TEMPORARY}/.cache",
        "npm_config_cache": f"{TEMPORARY}/.npm",
    }


def shown_again(
    boundaries: Boundaries,
    *,
    program: Path,
    path: str,
    network: bool,
    closed: Sequence[Path] = (),
) -> tuple[Path, ...]:
    """Return what lies in a masked or temporary place and must be read all the same."""
    found = [folder for folder in boundaries.readable if folder.is_dir()]
    if any(_is_in(program, place) for place in (*OVERLAID, *closed)) and not any(
        _is_in(program, root) for root in boundaries.roots
    ):
        found.append(program)
    for word in path.split(os.pathsep):
        if word.startswith(_OVERLAID_NAMES):
            found.extend(_program_folder(Path(word)))
    resolver = Path(os.path.realpath(RESOLVER))
    if network and resolver.is_file() and any(_is_in(resolver, place) for place in OVERLAID):
        found.append(resolver)
    return tuple(dict.fromkeys(found))


def _program_folder(folder: Path) -> Sequence[Path]:
    if not folder.is_dir():
        return ()
    return (folder.parent if (folder.parent / VIRTUAL_ENVIRONMENT).is_file() else folder,)


def _is_in(path: Path, place: Path) -> bool:
    return place in path.parents
