"""Rules of .gitignore, .ignore and .rgignore files for paths. Pure, except for reading them through the port."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace import DirectoryEntry, Files, FileText
from agent_core.workspace.files.ignore_rules import IgnoreVerdict, Rules, read_rules

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore")
"""Those named first prevail, however far up they lie."""
GIT_FOLDER = ".git"
EXCLUDE = Path(GIT_FOLDER, "info", "exclude")
LIMIT_BYTES = 1_048_576
"""A larger ignore file is not read."""


class FolderRules(Value, frozen=True, kw_only=True):
    """The ignore files of one folder and of those above it."""

    prefix: str
    """The folder, relative to the topmost one that counts; ends with a slash unless it is that."""
    rules: Mapping[str, Rules] = msgspec.field(default_factory=dict[str, Rules])
    is_repository: bool = False
    parent: "FolderRules | None" = None

    def ignores(self, path: str) -> bool:
        """Judge what is directly in this folder; `path` is relative to the topmost one, a folder's ends with a slash."""
        for name in (*IGNORE_FILES, EXCLUDE.name):
            verdict = self._verdict(name, path)
            if verdict is not None:
                return verdict
        return False

    def _verdict(self, name: str, path: str) -> IgnoreVerdict:
        folder: FolderRules | None = self
        while folder is not None:
            rules = folder.rules.get(name)
            if rules is not None:
                verdict = rules.verdict(path[len(folder.prefix) :])
                if verdict is not None:
                    return verdict
            # What git is told outside does not count inside a repository.
            if folder.is_repository and name in {".gitignore", EXCLUDE.name}:
                return None
            folder = folder.parent
        return None


async def folder_rules(
    files: Files,
    folder: Path,
    entries: Sequence[DirectoryEntry],
    *,
    prefix: str,
    parent: FolderRules | None,
    in_repository: bool,
) -> FolderRules:
    """Read the ignore files of a folder.

    Args:
        files: Port through which they are read.
        folder: The folder.
        entries: Entries of the folder.
        prefix: Its path relative to the topmost folder, with a slash at the end; empty for that one.
        parent: The rules of the folder above.
        in_repository: Whether a `.git` entry makes the folder the top of a repository.
    """
    above = parent or FolderRules(prefix="")
    names = {entry.name: entry for entry in entries}
    sources = {
        name: folder / name for name in IGNORE_FILES if name in names and names[name].kind == "file"
    }
    is_repository = in_repository and GIT_FOLDER in names
    if is_repository and names[GIT_FOLDER].kind == "folder":
        sources[EXCLUDE.name] = folder / EXCLUDE
    rules: dict[str, Rules] = {}
    for name, path in sources.items():
        text = await ignore_text(files, path)
        if text:
            rules[name] = await to_thread.run_sync(read_rules, text)
    if not rules and not is_repository:
        return above
    return FolderRules(prefix=prefix, rules=rules, is_repository=is_repository, parent=parent)


async def ignore_text(files: Files, path: Path) -> str:
    """Read an ignore file; empty if there is none that could be read."""
    try:
        file = await files.read(path, limit_bytes=LIMIT_BYTES)
    except WorkspaceError:
        return ""
    return file.text if isinstance(file, FileText) else ""
