"""Lists the files below a folder as ripgrep does, through the port alone: ignored ones, links and .git are left out."""

from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from agent_core.kernel.errors import WorkspaceError, WorkspaceUnreachable
from agent_core.kernel.values import Value
from agent_core.tools.builtin.search.globs import GIT_FOLDER, FolderRules, file_glob, folder_rules
from agent_core.workspace import DirectoryEntry, Files, FileText, Workspace


class SearchedFolder(Value, frozen=True, kw_only=True):
    """A folder to search."""

    files: Files
    folder: Path
    top: Path
    """The folder itself or one above it, from where on ignore files count."""
    in_repository: bool
    """Whether git is at work here: then what ignore files say ends at the top of a repository, as for git."""
    glob: str | None = None
    """Glob of wanted files, as a line of .gitignore; with `!`, of unwanted files. It prevails over ignore files."""

    @property
    def prefix(self) -> str:
        """The folder's path below `top`, with a slash at the end."""
        return "" if self.folder == self.top else f"{self.folder.relative_to(self.top).as_posix()}/"


class _Folder(Value, frozen=True, kw_only=True):
    path: str
    """Relative to the searched folder, with a slash at the end; empty for that one."""
    parent: FolderRules | None


async def searched(
    workspace: Workspace, folder: Path, *, glob: str | None = None
) -> SearchedFolder:
    """Return how a folder of the workspace is searched."""
    files = workspace.files
    above = [root for root in workspace.roots if folder.is_relative_to(root)]
    top = max(above, key=lambda root: len(root.parts)) if above else folder
    in_repository = False
    for one in (folder, *folder.parents):
        in_repository = in_repository or await _is_there(files, one / GIT_FOLDER)
        if in_repository or one == top:
            break
    return SearchedFolder(
        files=files, folder=folder, top=top, in_repository=in_repository, glob=glob
    )


async def walk(place: SearchedFolder) -> AsyncGenerator[str]:
    """Return the paths of all files, relative to the folder, those of one folder together and sorted."""
    wanted = _wanted(place.glob)
    left = [_Folder(path="", parent=await _rules_above(place))]
    while left:
        here = left.pop()
        entries = await _entries(place, here.path)
        rules = await _rules(place, here.path, entries, parent=here.parent)
        for name in sorted(entry.name for entry in entries if _is_file(entry)):
            if _is_listed(f"{here.path}{name}", rules, place, wanted):
                yield f"{here.path}{name}"
        folders = [
            f"{here.path}{name}/"
            for name in sorted((entry.name for entry in entries if _is_folder(entry)), reverse=True)
        ]
        left += [
            _Folder(path=path, parent=rules)
            for path in folders
            if _is_listed(path, rules, place, wanted)
        ]


async def listed_buffers(place: SearchedFolder) -> dict[str, FileText]:
    """Return the unsaved texts that a walk would come upon, by their path relative to the folder."""
    texts = await place.files.buffers(place.folder)
    below = {
        text.path.relative_to(place.folder).as_posix(): text
        for text in texts
        if text.path != place.folder
    }
    if not below:
        return {}
    there = await listed(place, below)
    return {path: text for path, text in below.items() if path in there}


async def listed(place: SearchedFolder, paths: Iterable[str]) -> frozenset[str]:
    """Return those of the files that a walk would come upon."""
    wanted = _wanted(place.glob)
    above = await _rules_above(place)
    rules_by_folder: dict[str, FolderRules | None] = {}
    """The rules inside a folder; None: it is not walked into."""

    async def inside(folder: str) -> FolderRules | None:
        if folder not in rules_by_folder:
            rules_by_folder[folder] = await enter(folder)
        return rules_by_folder[folder]

    async def enter(folder: str) -> FolderRules | None:
        outer = above
        if folder:
            head, _, _ = folder[:-1].rpartition("/")
            outer = await inside(f"{head}/" if head else "")
            if outer is None or not _is_listed(folder, outer, place, wanted):
                return None
        return await _rules(place, folder, await _entries(place, folder), parent=outer)

    chosen: set[str] = set()
    for path in paths:
        head, _, _ = path.rpartition("/")
        rules = await inside(f"{head}/" if head else "")
        if rules is not None and _is_listed(path, rules, place, wanted):
            chosen.add(path)
    return frozenset(chosen)


def _is_listed(
    path: str, rules: FolderRules, place: SearchedFolder, wanted: Callable[[str], bool | None]
) -> bool:
    if path.rstrip("/").rpartition("/")[2] == GIT_FOLDER:
        return False
    verdict = wanted(path)
    return verdict if verdict is not None else not rules.ignores(place.prefix + path)


def _wanted(glob: str | None) -> Callable[[str], bool | None]:
    """Judge by the caller's glob alone; None: it says nothing."""
    if not glob:
        return lambda _: None
    only_folders = glob.endswith("/")
    fits = file_glob(glob.removeprefix("!"))

    def judge(path: str) -> bool | None:
        is_folder = path.endswith("/")
        if (is_folder or not only_folders) and fits(path.rstrip("/")):
            return not glob.startswith("!")
        return None if is_folder or glob.startswith("!") else False

    return judge


async def _rules_above(place: SearchedFolder) -> FolderRules | None:
    """Read the ignore files from the topmost folder down to the one above the searched one."""
    rules: FolderRules | None = None
    steps = place.folder.relative_to(place.top).parts
    for depth in range(len(steps)):
        folder = place.top.joinpath(*steps[:depth])
        prefix = "".join(f"{step}/" for step in steps[:depth])
        try:
            entries = await place.files.list(folder)
        except WorkspaceUnreachable:
            raise
        except WorkspaceError:
            continue
        rules = await folder_rules(
            place.files,
            folder,
            entries,
            prefix=prefix,
            parent=rules,
            in_repository=place.in_repository,
        )
    return rules


async def _rules(
    place: SearchedFolder,
    path: str,
    entries: tuple[DirectoryEntry, ...],
    *,
    parent: FolderRules | None,
) -> FolderRules:
    return await folder_rules(
        place.files,
        place.folder / path,
        entries,
        prefix=place.prefix + path,
        parent=parent,
        in_repository=place.in_repository,
    )


async def _is_there(files: Files, path: Path) -> bool:
    try:
        _ = await files.stat(path)
    except WorkspaceUnreachable:
        raise
    except WorkspaceError:
        return False
    return True


async def _entries(place: SearchedFolder, path: str) -> tuple[DirectoryEntry, ...]:
    try:
        return await place.files.list(place.folder / path)
    except WorkspaceUnreachable:
        raise
    except WorkspaceError:
        return ()  # it may not be read, or has gone meanwhile


def _is_file(entry: DirectoryEntry) -> bool:
    return entry.kind == "file" and not entry.is_link


def _is_folder(entry: DirectoryEntry) -> bool:
    return entry.kind == "folder" and not entry.is_link
