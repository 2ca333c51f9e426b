"""The folders of a workspace besides the primary one: they come and go while a session is open."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol, overload

from anyio import Lock, to_thread
from typing_extensions import override

from agent_core.events import WorkspaceRoot
from agent_core.kernel.values import Value


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
