"""Names and hashes of the files in a workspace that could run in or configure Tiller; trust covers them. Blocking."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from agent_core.kernel.values import Value
from agent_core.resources.instructions import NAMES, SYSTEM_NAMES, WHOLE_BYTES, project_folders
from agent_core.resources.paths import project_folder

MOST_FILES: Final = 2_000
MOST_BYTES: Final = WHOLE_BYTES
SHOWN_BYTES: Final = 16 * 1024
"""Larger files are compared by their hash alone, not shown line by line."""
PROGRAM_BYTES: Final = 256 * 1024
"""The same of code that would run in us, which is shown whole."""
PROGRAMS: Final = (".tiller", "extensions")
OUR_OWN: Final = frozenset({"chat.md", "changes.diff"})
"""Files that Tiller writes into `.tiller`; none of them configures it."""

Above = Mapping[Path, Mapping[str, str]]
"""Folders above the project that the user trusts by themselves, each with the hashes of its files by name."""
NO_ABOVE: Final[Above] = MappingProxyType({})
Marks = tuple[tuple[str, int, int, int, int], ...]
"""Of each file: path, inode, size, time of its last change in ns, and 1 when a link leads there."""


class EvidenceTooLarge(Exception):
    """There is more than anybody would look through; it cannot be trusted."""


class FileEvidence(Value, frozen=True, kw_only=True):
    """One thing that was found."""

    hash: str
    """SHA-256 of a file's bytes; of a link `link `, its target, and the hash of what it leads to; else what it is."""
    content: str = ""
    """SHA-256 of the bytes, also behind a link; empty when there are none to read."""
    text: str | None = None
    """The words of a small text file, to show later what has changed."""


def is_program(name: str) -> bool:
    """Return whether what lies there, by its path relative to the workspace, is code that would run in us."""
    return Path(name).parts[: len(PROGRAMS)] == PROGRAMS


def is_instructions(name: str) -> bool:
    """Return whether what lies there, by its path relative to the workspace, goes into the system prompt as it is."""
    path = Path(name)
    return path.name in NAMES or path.parts in {(".tiller", one) for one in SYSTEM_NAMES}


class TrustEvidence(Value, frozen=True, kw_only=True):
    """Everything that was found, by its path relative to the workspace."""

    files: Mapping[str, FileEvidence] = msgspec.field(default_factory=dict[str, FileEvidence])
    contents: Mapping[Path, str] = msgspec.field(default_factory=dict[Path, str])
    """The same by absolute path: SHA-256 of the bytes."""
    above: Above = msgspec.field(default_factory=lambda: NO_ABOVE)
    """The folders above the project whose context files are among them."""
    unchanged_above: frozenset[Path] = frozenset()
    """Those of these files that are as they were when their folder was trusted."""

    @property
    def hashes(self) -> Mapping[str, str]:
        """The hashes alone, by name; the comparison uses them."""
        return {name: seen.hash for name, seen in sorted(self.files.items())}

    def content(self, path: Path) -> str:
        """Return the hash of what a file held; empty, which no file has, when it was not there."""
        return self.contents.get(path, "")


def gather(root: Path, *, above: Above = NO_ABOVE) -> TrustEvidence:
    """Read every file that configures Tiller in a trusted workspace.

    That is `.tiller/`, `.mcp.json`, `.claude/agents/`, from the workspace up to the top of its repository `.agents/skills/` and the
    context files, and the context files of the folders in `above`. Links to folders are not followed; the content of a
    linked file is part of its hash. A link out of the project is not followed, except from one context file to another:
    the target is used in no other case.

    Args:
        root: The workspace, absolute and real.
        above: Folders above the project whose context files are included.

    Raises:
        TooMuch: More than 2,000 files or 16 MiB.
        OSError: A file cannot be read, so it is unknown whether it changed.
    """
    found: dict[str, FileEvidence] = {}
    contents: dict[Path, str] = {}
    unchanged: set[Path] = set()
    project = project_folders(root)[-1]
    room = MOST_BYTES
    for path in _candidates(root, above):
        if len(found) >= MOST_FILES:
            message = f"more than {MOST_FILES} files could configure Tiller here"
            raise EvidenceTooLarge(message)
        name = os.path.relpath(path, root)
        shown = PROGRAM_BYTES if is_program(name) else SHOWN_BYTES
        inside = path.parent if path.parent in above else project
        seen, size = _look(path, room, inside, shown_bytes=shown)
        room -= size
        found[name] = seen
        contents[path] = seen.content
        if path.parent in above and seen.hash == above[path.parent].get(path.name):
            unchanged.add(path)
    return TrustEvidence(
        files=found, contents=contents, above=above, unchanged_above=frozenset(unchanged)
    )


def marks(root: Path, *, above: Collection[Path] = ()) -> Marks:
    """Return what changes cheaply and surely when a file of the evidence does: names, inodes, sizes, times.

    Raises:
        TooMuch: As `gather`.
        OSError: A folder cannot be listed.
    """
    made: list[tuple[str, int, int, int, int]] = []
    for path in _candidates(root, above):
        if len(made) >= MOST_FILES:
            message = f"more than {MOST_FILES} files could configure Tiller here"
            raise EvidenceTooLarge(message)
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            try:
                behind = path.stat()
            except OSError:
                behind = facts
            made.append((str(path), behind.st_ino, behind.st_size, behind.st_ctime_ns, 1))
        made.append((str(path), facts.st_ino, facts.st_size, facts.st_ctime_ns, 0))
    return tuple(made)


def _candidates(root: Path, above: Collection[Path]) -> Iterator[Path]:
    own = project_folder(root)
    yield from (path for path in _below(own) if path.parent != own or path.name not in OUR_OWN)
    if _is_there(root / ".mcp.json"):
        yield root / ".mcp.json"
    yield from _below(root / ".claude" / "agents")
    for folder in project_folders(root):
        yield from _below(folder / ".agents" / "skills")
        yield from _context_files(folder)
    for folder in above:
        yield from _context_files(folder)


def _context_files(folder: Path) -> Iterator[Path]:
    return (folder / name for name in NAMES if _is_there(folder / name))


def _below(folder: Path) -> Iterator[Path]:
    """Return what is in a folder, at any depth, and the folder itself when it is something else."""
    try:
        facts = folder.lstat()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        return
    if not stat.S_ISDIR(facts.st_mode):
        yield folder
        return
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))
        else:
            yield Path(entry.path)


def _look(path: Path, room: int, project: Path, *, shown_bytes: int) -> tuple[FileEvidence, int]:
    facts = path.lstat()
    if not stat.S_ISLNK(facts.st_mode):
        return _content(path, room, shown_bytes)
    target = path.readlink()
    if not _may_follow(path, project):
        return FileEvidence(hash=f"link {target} out of the project"), 0
    try:
        behind, size = _content(path, room, shown_bytes)
    except FileNotFoundError:
        return FileEvidence(hash=f"link {target} to nothing"), 0
    linked = f"link {target} {behind.hash}"
    return FileEvidence(hash=linked, content=behind.content, text=behind.text), size


def _may_follow(path: Path, project: Path) -> bool:
    """Return whether a link may be looked behind: it stays in the project, or instructions lead to instructions."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        # A loop, before Python 3.13.
        return False
    return real.is_relative_to(project) or (path.name in NAMES and real.name in NAMES)


def _content(path: Path, room: int, shown_bytes: int) -> tuple[FileEvidence, int]:
    # Not to wait for a writer when it is a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if stat.S_ISSOCK(path.stat().st_mode):
            return FileEvidence(hash="no regular file"), 0
        raise error from error
    # A folder, behind a link, is no file that Python would open.
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return FileEvidence(hash="no regular file"), 0
    with os.fdopen(handle, "rb") as file:
        raw = file.read(room + 1)
    if len(raw) > room:
        message = f"more than {MOST_BYTES} bytes could configure Tiller here"
        raise EvidenceTooLarge(message)
    content = hashlib.sha256(raw).hexdigest()
    return FileEvidence(hash=content, content=content, text=_text(raw, shown_bytes)), len(raw)


def _text(raw: bytes, most_bytes: int) -> str | None:
    if len(raw) > most_bytes or b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeError:
        return None


def _is_there(path: Path) -> bool:
    """Return whether there is something, also a broken link."""
    try:
        _ = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
