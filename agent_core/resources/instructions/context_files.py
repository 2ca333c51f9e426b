"""Reads the instructions that people leave for agents: AGENTS.md up the tree, SYSTEM.md, APPEND_SYSTEM.md."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from agent_core.kernel.values import Value
from agent_core.resources.instructions.instruction_file import (
    CONTEXT_BYTES,
    Instructions,
    UnusableInstructions,
    read_instructions,
)
from agent_core.resources.instructions.worktree import folders_above, project_folders

NAMES = ("AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD")
"""Of one folder the first that exists counts."""
SYSTEM_NAMES = ("SYSTEM.md", "APPEND_SYSTEM.md")
"""Of `.tiller`, or else of the user's configuration folder."""
TOTAL_BYTES = 4 * CONTEXT_BYTES
"""All context files together; the nearest to the workspace are the last to go."""
ExpectedContentHash = Callable[[Path], str | None]
"""Returns the SHA-256 that a file of the project must have; None: any."""


class ContextFiles(Value, frozen=True, kw_only=True):
    """Instructions for the system prompt that come from files."""

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
    above: Collection[Path] = (),
    expected: ExpectedContentHash = lambda _: None,
) -> ContextFiles:
    """Read all instructions for a workspace. A file that cannot be used is a problem in the result, not an error.

    Args:
        config: The user's configuration folder.
        root: The workspace, absolute.
        project_trusted: Whether the files of the project are used: AGENTS.md and similar, and `.tiller/SYSTEM.md` and
            `.tiller/APPEND_SYSTEM.md`, which have precedence over the user's.
        added: More folders of the workspace that are trusted; each brings its own file.
        above: Folders above the project that the user trusts separately; the files of other folders above are not
            used.
        expected: The trusted content of files of the project and of the folders above; a file that has changed is
            left out.
    """
    load = partial(
        _load, config, root, tuple(added), tuple(above), expected, project_trusted=project_trusted
    )
    return await anyio.to_thread.run_sync(load)


def _load(
    config: Path,
    root: Path,
    added: Sequence[Path],
    above: Collection[Path],
    expected: ExpectedContentHash,
    *,
    project_trusted: bool,
) -> ContextFiles:
    problems: list[str] = []
    places = (root / ".tiller", config) if project_trusted else (config,)
    project: tuple[Path, ...] = ()
    if project_trusted:
        outer = folders_above(root, NAMES)
        project = (*project_folders(root), *(folder for folder in outer if folder in above))
        problems += [
            _untrusted_above(folder) for folder in outer if folder not in (config, *added, *above)
        ]
    return ContextFiles(
        files=_bounded(
            _context(config, root, added, project, expected=expected, problems=problems), problems
        ),
        system=_first(places, SYSTEM_NAMES[0], root=root, problems=problems, expected=expected),
        append=_first(places, SYSTEM_NAMES[1], root=root, problems=problems, expected=expected),
        problems=tuple(problems),
    )


def _untrusted_above(folder: Path) -> str:
    return (
        f"{_context_file(folder)} was not read: it lies above the workspace's repository, in a folder that is not trusted "
        f"by itself. Trust that folder if it should count (tiller trust add {folder})."
    )


def _context(
    config: Path,
    root: Path,
    added: Sequence[Path],
    project: Sequence[Path],
    *,
    expected: ExpectedContentHash,
    problems: list[str],
) -> list[Instructions]:
    owners = frozenset(_owners((root, config)))
    read: list[Instructions] = []
    seen: set[Path] = set()
    # What is nearest to the workspace comes last, for it goes last when there is too much.
    for folder in dict.fromkeys((config, *added, *reversed(project))):
        path = _context_file(folder)
        if path is None:
            continue
        own = folder == config
        outside = not own and folder != root and folder not in added
        file = read_instructions(
            path,
            within=None if own else folder,
            instruction_names=NAMES,
            owners=owners if outside else None,
            expected=expected(path) if folder in project and not own else None,
        )
        match file:
            case UnusableInstructions(why=why):
                problems.append(why)
            case Instructions() if file.real not in seen:
                seen.add(file.real)
                read.append(file)
            case _:
                continue
    return [file for file in read if file.text.strip()]


def _context_file(folder: Path) -> Path | None:
    """Return the context file of a folder; None where there is none."""
    return next((folder / name for name in NAMES if _exists(folder / name)), None)


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
    folders: Iterable[Path],
    name: str,
    *,
    root: Path,
    problems: list[str],
    expected: ExpectedContentHash,
) -> Instructions | None:
    for folder in folders:
        path = folder / name
        if not _exists(path):
            continue
        is_own = not folder.is_relative_to(root)
        read = read_instructions(
            path,
            within=None if is_own else folder,
            instruction_names=(),
            owners=None,
            expected=None if is_own else expected(path),
        )
        match read:
            case UnusableInstructions(why=why):
                problems.append(why)
            case Instructions():
                return read
    return None


def _exists(path: Path) -> bool:
    """Return whether there is something, also when it cannot be read or is a broken link."""
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
