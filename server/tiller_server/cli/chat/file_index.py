"""The files of a workspace by name, for the menu behind `@`."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.ignore_rules import Rules, read_rules

MOST_FILES: Final = 50_000
MOST_RULE_BYTES: Final = 256 * 1024
FRESH_S: Final = 5.0
"""A listing that is older is made anew."""
IGNORE_FILE: Final = ".gitignore"
NEVER: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})


class _Ignored(Value, frozen=True):
    """The rules of one ignore file, and the folder that they are for, relative to the workspace."""

    folder: str
    rules: Rules


class FileIndex:
    """Lists files and folders without those that .gitignore names, and finds some by a part of the path. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = Lock()
        self._paths: Sequence[str] = ()
        self._read_s: float | None = None

    def find(self, typed: str, *, limit: int) -> list[str]:
        """Return paths that hold the characters of a text in their order, the best matches first. Blocking.

        Folders end with a slash.
        """
        wanted = typed.casefold()
        ranked: list[tuple[int, int, str]] = []
        for path in self._listed():
            rank = match_rank(wanted, path)
            if rank is not None:
                ranked.append((rank, len(path), path))
        return [path for _, _, path in sorted(ranked)[:limit]]

    def _listed(self) -> Sequence[str]:
        with self._lock:
            now_s = time.monotonic()
            if self._read_s is None or now_s - self._read_s > FRESH_S:
                self._paths = tuple(_walk(self._root))
                self._read_s = time.monotonic()
            return self._paths


def match_rank(wanted: str, path: str) -> int | None:
    """Return how well a path fits, 0 is best; None: it lacks characters.

    A name that begins with the text comes before one that holds it, then a path that holds it, then scattered characters.

    Args:
        wanted: The typed text, casefolded.
        path: The path; that of a folder ends with a slash.
    """
    if not wanted:
        return path.rstrip("/").count("/")
    low = path.casefold()
    name = low.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted) or low.startswith(wanted):
        return 0
    if wanted in name:
        return 1
    if wanted in low:
        return 2
    place = -1
    for char in wanted:
        place = low.find(char, place + 1)
        if place < 0:
            return None
    return 3


def _walk(root: Path) -> Iterator[str]:
    """Yield the files and folders, those near the root first, up to a limit."""
    left: list[tuple[str, tuple[_Ignored, ...]]] = [("", ())]
    count = 0
    for folder, above in left:  # grows while it is read: a breadth-first walk
        ignored = _with_rules(root, folder, above)
        try:
            entries = sorted(os.scandir(root / folder), key=lambda one: one.name)
        except OSError:
            continue
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            path = f"{folder}{entry.name}{'/' if is_folder else ''}"
            if entry.name in NEVER or _is_ignored(path, ignored):
                continue
            yield path
            count += 1
            if count >= MOST_FILES:
                return
            if is_folder:
                left.append((path, ignored))


def _with_rules(root: Path, folder: str, above: tuple[_Ignored, ...]) -> tuple[_Ignored, ...]:
    """Return the rules that count in a folder, the nearest first."""
    try:
        with (root / folder / IGNORE_FILE).open("rb") as file:
            rules = read_rules(file.read(MOST_RULE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return above
    return (_Ignored(folder, rules), *above)


def _is_ignored(path: str, ignored: Sequence[_Ignored]) -> bool:
    verdicts = (one.rules.verdict(path[len(one.folder) :]) for one in ignored)
    return next((verdict for verdict in verdicts if verdict is not None), False)
