"""Containment of a session's processes, and the folders of a workspace that come and go."""

import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from errno import EPERM
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, overload

from anyio import Lock, to_thread
from typing_extensions import override

from agent_core.events import WorkspaceRoot
from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.values import ContainmentSettings
from agent_core.workspace.permissions.call_permission import Needs, SecretAccess
from agent_core.workspace.sandbox import (
    SWITCHED_OFF,
    Boundaries,
    Launch,
    Prober,
    Sandbox,
    SandboxCapability,
    Uncontained,
    sandbox_for,
)
from agent_core.workspace.sandbox.selection import homes_of

if TYPE_CHECKING:
    from agent_core.workspace.git.worktrees.service import Worktrees

STANDALONE: Final = "standalone.json"
"""File in the prefix of an interpreter that belongs to Tiller alone; `scripts.standalone` writes it."""


class FolderTrustState(Protocol):
    """Trust decision of the user for one folder."""

    @property
    def is_trusted(self) -> bool:
        """Whether it was trusted at the last look."""
        ...

    def check_now(self) -> object:
        """Look again, blocking. Never raises."""
        ...

    def record_now(self, said: Literal["trusted", "refused"], *, lasting: bool) -> object:
        """Record the user's trust decision. Blocking. Raises ConfigError when it cannot be stored."""
        ...


FolderTrustLookup = Callable[[Path], Awaitable[FolderTrustState | None]]
"""Looks up the trust state of a folder. None: the opener of the session has trusted all folders."""


class LiveFolders(Sequence[Path]):
    """Some folders as they are at each look; take a tuple of it where two looks must see the same."""

    def __init__(self, look: Callable[[], tuple[Path, ...]]) -> None:
        self._look = look

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Path, ...]: ...
    @override
    def __getitem__(self, index: int | slice) -> Path | tuple[Path, ...]:
        return self._look()[index]

    @override
    def __len__(self) -> int:
        return len(self._look())

    @override
    def __iter__(self) -> Iterator[Path]:
        return iter(self._look())


class _Root(Value, frozen=True, kw_only=True):
    folder: Path
    trust: FolderTrustState | None

    @property
    def is_trusted(self) -> bool:
        return self.trust is None or self.trust.is_trusted


class AddedRoots:
    """Which folders were added, and which of them are trusted: the others can be read, and nothing else."""

    def __init__(self) -> None:
        self.judge: FolderTrustLookup = _vouched
        """Set by whoever opens the session."""
        self.settle: Callable[[], None] = _nothing
        """Called on a thread when the folders, or the trust in one, have changed."""
        self._roots: tuple[_Root, ...] = ()
        self._turn = Lock()

    @property
    def trusted(self) -> tuple[Path, ...]:
        """Those that may be changed and worked in."""
        return tuple(one.folder for one in self._roots if one.is_trusted)

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """Those that may only be read."""
        return tuple(one.folder for one in self._roots if not one.is_trusted)

    @property
    def roots(self) -> tuple[WorkspaceRoot, ...]:
        """All of them, in the order in which they came."""
        return tuple(
            WorkspaceRoot(
                folder=one.folder, name=one.folder.name, primary=False, trusted=one.is_trusted
            )
            for one in self._roots
        )

    async def follow(self, folders: Iterable[Path]) -> bool:
        """Have exactly these folders from now on; say whether anything changed.

        A folder that is not there, or no folder, is left out.

        Args:
            folders: As an editor names them: links and relative steps are followed here.
        """
        wanted = tuple(folders)
        async with self._turn:
            before = self.roots
            real = await to_thread.run_sync(_real, wanted) if wanted else ()
            by_folder = {one.folder: one for one in self._roots}
            made: list[_Root] = []
            for folder in real:
                one = by_folder.get(folder)
                made.append(one or _Root(folder=folder, trust=await self.judge(folder)))
            self._roots = tuple(made)
            return await self._settled(before)

    async def look(self) -> bool:
        """Look again at what is trusted; say whether anything changed. Never raises."""
        judged = [one.trust for one in self._roots if one.trust is not None]
        if not judged:
            return False
        before = self.roots
        for trust in judged:
            _ = await to_thread.run_sync(trust.check_now)
        return await self._settled(before)

    async def decide(self, folder: Path, *, trusted: bool) -> bool:
        """Record the user's trust decision for an added root; return False when it is none or needs no decision.

        Raises:
            ConfigError: The decision could not be stored; nothing changed.
        """
        one = next((one for one in self._roots if one.folder == folder), None)
        if one is None or one.trust is None:
            return False
        trust = one.trust

        def take() -> None:
            _ = trust.check_now()
            _ = trust.record_now("trusted" if trusted else "refused", lasting=True)
            self.settle()

        await to_thread.run_sync(take)
        return True

    async def _settled(self, before: tuple[WorkspaceRoot, ...]) -> bool:
        if self.roots == before:
            return False
        await to_thread.run_sync(self.settle)
        return True


def _real(folders: Iterable[Path]) -> tuple[Path, ...]:
    found: dict[Path, None] = {}
    for folder in folders:
        try:
            real = folder.resolve()
            if real.is_dir():
                found[real] = None
        except (OSError, ValueError, RuntimeError):
            continue
    return tuple(found)


def _nothing() -> None:
    return


async def _vouched(folder: Path) -> FolderTrustState | None:
    _ = folder
    return None


JUST_CHANGED = SandboxCapability(
    level="none", how="nothing", why_not_full="the folders of the workspace have just changed"
)


class SandboxPerRoots:
    """One containment per set of folders, for a command that began among some ends among the same."""

    def __init__(
        self,
        roots: Callable[[], tuple[Path, ...]],
        *,
        made: Callable[[tuple[Path, ...]], Sandbox],
    ) -> None:
        """Make the containment of the folders that there are now. Blocking.

        Args:
            roots: The folders of the moment that commands may change.
            made: Makes the containment for some. Blocking.
        """
        self._roots = roots
        self._make = made
        self._turn = threading.Lock()
        self._made: dict[tuple[Path, ...], Sandbox] = {}
        self.prepare()

    @property
    def containing(self) -> SandboxCapability:
        """Containment in force now. Not blocking: nothing counts as contained until `prepare` has seen a change."""
        made = self._made.get(self._roots())
        return JUST_CHANGED if made is None else made.containing

    def prepare(self) -> None:
        """Record that the folders may have changed. Blocking."""
        _ = self._now()

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking.

        Raises:
            OSError: Among these folders it cannot be contained, and it was judged among others, where it could be.
        """
        now = self._now()
        if "uncontained" not in needs and now.containing.level == "none":
            with self._turn:
                others = [one for one in self._made.values() if one is not now]
            if any(one.containing.level != "none" for one in others):
                message = "the folders of the workspace have changed, and among these commands cannot be contained; run it again"
                raise OSError(EPERM, message)
        return now.wrap(argv, cwd=cwd, env=env, needs=needs)

    def close(self) -> None:
        """Remove what commands kept. Blocking, idempotent."""
        with self._turn:
            for sandbox in self._made.values():
                sandbox.close()

    def _now(self) -> Sandbox:
        roots = self._roots()
        with self._turn:
            if roots not in self._made:
                self._made[roots] = self._make(roots)
            return self._made[roots]


QUARANTINE = "quarantine"
ELSEWHERE = SandboxCapability(
    level="none",
    how="nothing",
    why_not_full="the workspace is elsewhere; what contains its processes is not known",
)

log = logging.getLogger(__name__)


async def contain(
    root: Path,
    added: AddedRoots,
    *,
    setting: Literal["auto", "off"],
    more: ContainmentSettings,
    prober: Prober,
    env: Mapping[str, str],
    paths: AppPaths,
    outputs: Path,
    secrets: SecretAccess,
) -> Sandbox:
    """Create the sandbox of a workspace; the caller closes it, on a thread.

    Args:
        root: The workspace, absolute and resolved.
        added: Further folders of the workspace; read again before each command.
        setting: Value of the sandbox setting of the user.
        more: Further access that the user's settings allow to commands.
        prober: Probes which containment the machine supports and caches the result.
        env: Environment of the connection that prompted.
        paths: Tiller's own folders, hidden from commands.
        outputs: The readable part of `paths`: whole outputs of earlier commands of the session.
        secrets: Secret files of the workspace that commands can read.
    """
    # As it is now: it may be exchanged while another thread reads it.
    variables = dict(env)

    def bounded(containing: SandboxCapability, roots: tuple[Path, ...]) -> Sandbox:
        prefix, base_prefix = Path(sys.prefix), Path(sys.base_prefix)
        own = own_environment(variables, prefix=prefix, base_prefix=base_prefix)
        boundaries = Boundaries(
            roots=roots,
            env=variables,
            hidden=(paths.config, paths.data, paths.runtime, *hide_paths(more, env=variables)),
            readable=(outputs, *own),
            passed_variables=more.pass_variables,
            readable_extra=read_paths(more, env=variables),
            visible=lambda: secrets.allowed,
            quarantine=paths.data / QUARANTINE,
        )
        return sandbox_for(containing, boundaries)

    def made() -> Sandbox:
        containing = SWITCHED_OFF if setting == "off" else _containing(prober)
        following = SandboxPerRoots(
            lambda: (root, *added.trusted), made=lambda roots: bounded(containing, roots)
        )
        added.settle = following.prepare
        return following

    return await to_thread.run_sync(made)


def read_paths(more: ContainmentSettings, *, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return what the settings show to commands; `~` is the home that the environment names. Pure."""
    return _full_paths(more.read_paths, home=env.get("HOME", ""))


def hide_paths(more: ContainmentSettings, *, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return what the settings hide from commands; `~` is the home that the environment names. Pure."""
    return _full_paths(more.hide_paths, home=env.get("HOME", ""))


def _full_paths(written: Iterable[str], *, home: str) -> tuple[Path, ...]:
    spelt = (f"{home}{one[1:]}" if one.startswith("~") else one for one in written)
    return tuple(Path(one) for one in spelt if one.startswith("/"))


def own_environment(env: Mapping[str, str], *, prefix: Path, base_prefix: Path) -> tuple[Path, ...]:
    """Return the environment that Tiller is installed in, when a home hides it: programs of it are started for tools. Blocking.

    Args:
        env: Names the homes.
        prefix: Root of the running interpreter, which counts where it is Tiller's own: a virtual environment or that of
            the standalone program. Another, such as `~/.local`, can hold files of the user.
        base_prefix: Root of the interpreter that a virtual environment was made with.
    """
    own = prefix.resolve()
    is_hidden = any(own.is_relative_to(home) for home in homes_of(env) if home != own)
    is_own = prefix != base_prefix or (own / STANDALONE).is_file()
    return (own,) if is_hidden and is_own else ()


def _containing(prober: Prober) -> SandboxCapability:
    """Return what the machine can do; when that cannot be found out, nothing counts as contained."""
    try:
        return prober.containing()
    except Exception as error:
        # The user's session must open all the same: commands then ask.
        log.exception("what contains commands could not be found out")
        why = f"what this machine can do could not be found out ({type(error).__name__})"
        return SandboxCapability(level="none", how="nothing", why_not_full=why)


async def contain_elsewhere(root: Path, added: AddedRoots, **options: object) -> Sandbox:
    """Return a sandbox that contains nothing: the provider of the workspace's ports is responsible for containment."""
    _ = root, added, options
    return Uncontained(ELSEWHERE)


def notice_of(sandbox: Sandbox, *, setting: Literal["auto", "off"]) -> tuple[str, ...]:
    """Report that commands are not contained, when the user did not choose that; nothing otherwise."""
    why = sandbox.containing.why_not_full
    if setting == "off" or why is None or why == ELSEWHERE.why_not_full:
        return ()
    held = "only partly contained" if sandbox.containing.level == "partial" else "not contained"
    return (f"commands are {held} here: {why}. `tiller doctor` says more",)


def open_worktrees(paths: AppPaths, *, env: Mapping[str, str], clock: Clock) -> "Worktrees":
    """Return the worktrees of a user; the open sessions are their owners.

    Args:
        paths: Where worktrees and sessions are kept.
        env: The environment of the user.
        clock: Time.
    """
    from agent_core.storage.worktree_owners import SessionOwners  # noqa: PLC0415 - at first use
    from agent_core.workspace.git.worktrees.service import Worktrees  # noqa: PLC0415 - at first use

    owners = SessionOwners(paths.sessions)
    return Worktrees(paths.worktrees, env=env, owners=owners, clock=clock)
