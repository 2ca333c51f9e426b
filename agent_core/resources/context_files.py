"""Reads the instructions that people leave for agents: AGENTS.md up the tree, SYSTEM.md, APPEND_SYSTEM.md."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from agent_core.kernel.records import dataclass
from agent_core.resources.reading import CONTEXT_BYTES, Instructions, Refused, read_instructions
from agent_core.resources.worktree import project_folders, shadowed_folders

NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""Of one folder the first that exists counts."""
TOTAL_BYTES = 4 * CONTEXT_BYTES
"""All context files together; the nearest to the workspace are the last to go."""
Expected = Callable[[Path], str | None]
"""Gives the SHA-256 of what a file of the project must hold; None: anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFiles:
    """What the system prompt takes from files."""

    files: tuple[Instructions, ...] = ()
    """The user's own first, then from the root of the file system down to the workspace."""
    system: Instructions | None = None
    """SYSTEM.md: stands for Tiller's own instructions."""
    append: Instructions | None = None
    """APPEND_SYSTEM.md: goes behind them."""
    problems: tuple[str, ...] = ()
    """One sentence for each file that could not be used as it is."""


async def load_context_files(
    *,
    config: Path,
    root: Path,
    project_trusted: bool,
    added: Sequence[Path] = (),
    expected: Expected = lambda _: None,
) -> ContextFiles:
    """Read all instructions for a workspace. Never fails because of one of them.

    Args:
        config: The user's configuration folder.
        root: The workspace, absolute.
        project_trusted: Whether what the project brings counts: AGENTS.md and its kin, and `.tiller/SYSTEM.md` and
            `.tiller/APPEND_SYSTEM.md`, which win over the user's.
        added: More folders of the workspace that are trusted; each brings its own file.
        expected: What was trusted of that; a file that is something else by now is left out.
    """
    load = partial(_load, config, root, tuple(added), expected, project_trusted=project_trusted)
    return await anyio.to_thread.run_sync(load)


def _load(
    config: Path,
    root: Path,
    added: Sequence[Path],
    expected: Expected,
    *,
    project_trusted: bool,
) -> ContextFiles:
    problems: list[str] = []
    places = (root / ".tiller", config) if project_trusted else (config,)
    return ContextFiles(
        files=_bounded(
            _context(
                config,
                root,
                added,
                problems,
                expected=expected,
                skipped=() if project_trusted else project_folders(root),
            ),
            problems,
        ),
        system=_first(places, "SYSTEM.md", root=root, problems=problems, expected=expected),
        append=_first(places, "APPEND_SYSTEM.md", root=root, problems=problems, expected=expected),
        problems=tuple(problems),
    )


def _context(
    config: Path,
    root: Path,
    added: Sequence[Path],
    problems: list[str],
    *,
    expected: Expected,
    skipped: Collection[Path],
) -> list[Instructions]:
    shadowed = shadowed_folders(root, NAMES)
    project = project_folders(root)
    trusted = frozenset(_owners((root, config)))
    found: list[Instructions] = []
    seen: set[Path] = set()
    # What is nearest to the workspace comes last, for it goes last when there is too much.
    for folder in dict.fromkeys((config, *added, *reversed(root.parents), root)):
        if folder in shadowed or folder in skipped:
            continue
        path = next((folder / name for name in NAMES if _exists(folder / name)), None)
        if path is None:
            continue
        own = folder == config
        outside = not own and folder != root and folder not in added
        read = read_instructions(
            path,
            within=None if own else folder,
            known_names=NAMES,
            owners=trusted if outside else None,
            expected=expected(path) if folder in project and not own else None,
        )
        match read:
            case Refused(why=why):
                problems.append(why)
            case Instructions() if read.real not in seen:
                seen.add(read.real)
                found.append(read)
            case _:
                continue
    return [one for one in found if one.text.strip()]


def _bounded(found: list[Instructions], problems: list[str]) -> tuple[Instructions, ...]:
    kept: list[Instructions] = []
    room = TOTAL_BYTES
    for one in reversed(found):
        room -= len(one.text.encode())
        if room < 0:
            problems.append(
                f"{one.path} was left out: the context files hold more than {TOTAL_BYTES} bytes"
            )
        else:
            kept.append(one)
    return tuple(reversed(kept))


def _first(
    folders: Iterable[Path], name: str, *, root: Path, problems: list[str], expected: Expected
) -> Instructions | None:
    for folder in folders:
        path = folder / name
        if not _exists(path):
            continue
        is_own = not folder.is_relative_to(root)
        read = read_instructions(
            path,
            within=None if is_own else folder,
            known_names=(),
            owners=None,
            expected=None if is_own else expected(path),
        )
        match read:
            case Refused(why=why):
                problems.append(why)
            case Instructions():
                return read
    return None


def _exists(path: Path) -> bool:
    """Tell whether there is something, also when it cannot be read or is a broken link."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _owners(folders: Iterable[Path]) -> Iterator[int]:
    yield 0
    for folder in folders:
        try:
            yield folder.stat().st_uid
        except OSError:
            continue
