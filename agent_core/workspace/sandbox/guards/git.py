"""The folders in which git keeps what belongs to a workspace, and the files in it that make git run programs."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.text import read_plain
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry

RUNS_PROGRAMS: Final = (
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "commondir",
    "gitdir",
)
"""Names in a git folder that say what git runs, or where it looks for that. `commondir` names another folder's config."""
UNFINISHED: Final = frozenset({"rebase-merge", "rebase-apply", "sequencer"})
"""Folders of what git was in the middle of: the next step may be a program."""
WILD: Final = (
    frozenset({"config.worktree", "commondir", "gitdir", "modules", "worktrees"}) | UNFINISHED
)
"""Names that a new repository does not have, and that lead git to other settings, repositories or programs."""
STEPS: Final = ("rebase-merge/git-rebase-todo", "rebase-merge/strategy", "sequencer/opts")
"""Files that define how git continues an unfinished operation."""
_STEP: Final = re.compile(r"[ \t]*(?:exec|x)[ \t]|[ \t]*strategy[ \t]*=", re.IGNORECASE)
_STRATEGY: Final = re.compile(
    r"(?:[ \t]*strategy[ \t]*=)?[ \t]*(?:ort|recursive|resolve|octopus|ours|subtree)[ \t]*"
)
MOST_BYTES: Final = 65_536
NEUTRAL_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n"
TAME_KEYS: Final = frozenset(
    {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "symlinks"),
        *("objectformat", "refstorage", "autocrlf", "eol", "safecrlf"),
        *("precomposeunicode", "url", "fetch", "remote", "merge", "name", "email", "active", "defaultbranch"),
    }
)  # fmt: skip
"""Keys of a new repository that make git run nothing."""
TAME_URL: Final = re.compile(r"(https?://|ssh://|git://|git@|/|\./|\.\./|file://)[^\s]*")


class GitFolder(Value, frozen=True, kw_only=True):
    """A folder that git writes to when it works for a workspace."""

    path: Path
    """Real."""
    guarded: tuple[Path, ...]
    """Existing entries of the folder that must not be changed."""


def git_folders(root: Path) -> tuple[GitFolder, ...]:
    """Find the git folders of a root: its own, or those that a worktree or submodule names. Blocking.

    A folder outside of the root counts only if it names this root back. Else a file that came with the project could
    open somebody else's repository.
    """
    at = root / ".git"
    if at.is_symlink():
        real = _real(at)
        return (_folder(real),) if real is not None and _is_inside(real, root) else ()
    if at.is_dir():
        return (_folder(at),)
    named = _folder_named_by(at)
    if named is None:
        return ()
    if not _is_inside(named, root) and not _names_back(named, at, root):
        return ()
    common = _common(named)
    folders = [_folder(named)]
    if common is not None and common != named:
        folders.insert(0, _folder(common))
    return tuple(folders)


def _folder(path: Path) -> GitFolder:
    there = (path / name for name in RUNS_PROGRAMS)
    return GitFolder(path=path, guarded=tuple(one for one in there if _exists(one)))


def is_tame(folder: Path) -> bool:
    """Return whether a repository that has just been made makes git run nothing. Blocking; no when in doubt."""
    try:
        return not folder.is_symlink() and folder.is_dir() and _holds_nothing_wild(folder)
    except (OSError, ValueError):
        return False


def _holds_nothing_wild(folder: Path) -> bool:
    inside = {one.name: one for one in folder.iterdir()}
    # What a link leads to may become something else.
    if any(one.is_symlink() for one in inside.values()) or not WILD.isdisjoint(inside):
        return False
    hooks = folder / "hooks"
    names = [one.name for one in hooks.iterdir()] if hooks.is_dir() else []
    if not is_tame_hooks(names) or _exists(folder / "info" / "attributes"):
        return False
    if "config" in inside and os.lstat(folder / "config").st_nlink != 1:
        return False  # under another name it could be changed later
    text = git_text(folder / "config") if "config" in inside else ""
    return not text or neutral_config(text) == text


def is_tame_hooks(names: Iterable[str]) -> bool:
    """Return whether git runs none of the files in a folder of hooks, by their names."""
    return all(name.endswith(".sample") for name in names)


def neutral_config(text: str) -> str:
    """Return the lines of a git configuration that make git run nothing, as a new repository has them.

    All of it when nothing else is in it; never without the version of the format, which git wants.
    """
    kept: list[str] = []
    is_continued = is_tame_section = False
    # Git ends lines at this character alone.
    for line in text.split("\n"):
        bare, was_continued = line.strip(" \t\r"), is_continued
        is_continued = bare.endswith("\\")
        if bare.startswith("["):
            is_tame_section = _is_tame_line(bare)
        is_setting = bool(bare) and bare[0] not in "#;["
        if (
            is_continued
            or was_continued
            or (is_setting and not is_tame_section)
            or not bare.isprintable()
        ):
            continue
        if _is_tame_line(bare):
            kept.append(line)
    neutral = "\n".join(kept)
    return neutral if "repositoryformatversion" in neutral else NEUTRAL_CONFIG + neutral


def _is_tame_line(line: str) -> bool:
    if not line or line.startswith(("#", ";")):
        return True
    if line.startswith("["):
        return (
            re.fullmatch(r'\[(core|user|init|extensions|(remote|branch) "[\w./-]+")\]', line)
            is not None
        )
    key, _, value = (part.strip() for part in line.partition("="))
    if key.lower() not in TAME_KEYS or line.endswith("\\"):
        return False
    return key.lower() != "url" or TAME_URL.fullmatch(value) is not None


def _folder_named_by(file: Path) -> Path | None:
    """Return the folder that a `.git` file names."""
    with suppress(OSError, ValueError):
        text = git_text(file)
        if text.startswith("gitdir:"):
            return _real(file.parent / text.removeprefix("gitdir:").strip())
    return None


def _names_back(folder: Path, file: Path, root: Path) -> bool:
    """Return whether a git folder belongs to this root by its own word."""
    with suppress(OSError, ValueError):
        back = git_text(folder / "gitdir").strip()
        return bool(back) and _real((folder / back).parent) == root and Path(back).name == file.name
    with suppress(OSError, ValueError):
        for line in git_text(folder / "config").splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            if key == "worktree":
                return _real(folder / value) == root
    return False


def _common(folder: Path) -> Path | None:
    """Return the folder of the repository that a worktree belongs to."""
    with suppress(OSError, ValueError):
        common = _real(folder / git_text(folder / "commondir").strip())
        # git makes worktrees nowhere else; another place would be somebody's invention.
        if common is not None and folder.parent == common / "worktrees":
            return common
    return None


def unfinished_programs(folders: Iterable[Path]) -> frozenset[tuple[Path, str]]:
    """Return the steps of what git was in the middle of that run programs, each with its file. Blocking."""
    found: set[tuple[Path, str]] = set()
    for folder in folders:
        for path in (folder / name for name in STEPS):
            try:
                lines = git_text(path).split("\n")
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                lines = ["exec unreadable"]
            is_strategy = path.name == "strategy"
            found.update(
                (path, line)
                for line in lines
                if (_STEP.match(line) or (is_strategy and line)) and not _STRATEGY.fullmatch(line)
            )
    return frozenset(found)


def git_text(path: Path) -> str:
    """Return the text of a small file of git, also behind a link, as git reads it.

    Raises:
        OSError: It is not there.
        ValueError: It is no plain file, or too long: its end would count for git and not for us.
    """
    content = read_plain(path, most_bytes=MOST_BYTES, follows_links=True)
    return content.decode("utf-8", "surrogateescape")


def _real(path: Path) -> Path | None:
    with suppress(OSError, RuntimeError):
        return path.resolve(strict=True)
    return None


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _is_inside(path: Path, root: Path) -> bool:
    return path != root and path.is_relative_to(root)


MOST_INCLUDES: Final = 32
"""Files of settings of one repository that are followed."""
GIT_FOLDER: Final = ".git"
_SETTING: Final = re.compile(
    r"""^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(?P<key>[a-z][a-z0-9-]*)[ \t]*=[ \t]*(?P<value>(?:\\\n|[^\n])+)""",
    re.IGNORECASE | re.MULTILINE,
)
_PROGRAM_KEYS: Final = re.compile(
    r"""textconv|clean|smudge|process|driver|command|cmd|external|fsmonitor|editor|pager|program|askpass|sshcommand
    |helper|gitproxy|.*hook|alternaterefscommand|uploadpack|receivepack|path""",
    re.IGNORECASE | re.VERBOSE,
)
"""Keys whose value git runs as a command line, or as a program (`merge.tool.path`)."""
Setting = tuple[str, str]
_WORD: Final = re.compile(r"[^\s\"'`;|&()<>$!=\\]+")


class GitPrograms(Value, frozen=True, kw_only=True):
    """Places in the roots, real."""

    there: frozenset[Path]
    """Files, and folders of hooks, that are there."""
    vacant: frozenset[Path]
    """Places where nothing exists: git would run or read a file created there."""
    problem: str | None = None
    """Why not all of them are known; None: they are."""


class _NotRead(ValueError):
    """A file of settings that git reads and that was not read."""


def git_programs(
    entries: Mapping[str, GuardedEntry], *, roots: Sequence[Path], settings: Sequence[Path] = ()
) -> GitPrograms:
    """Find the places that the repositories in some roots and around them direct git to.

    Args:
        entries: Entries of the index of the roots.
        roots: Absolute and resolved.
        settings: The user's own settings files; relative paths in them apply to every repository.
    """
    named: set[Path] = set()
    try:
        _, own = _settings_of(settings)
        for top, folders in _repositories(entries, roots):
            named.update(_programs_named_by(top, folders))
            named.update(place for key, value in own for place in _places(key, value, top))
    except _NotRead as error:
        return GitPrograms(there=frozenset(), vacant=frozenset(), problem=str(error))
    real = {Path(os.path.realpath(place)) for place in named}
    inside = {place for place in real if any(root in place.parents for root in roots)}
    there = frozenset(place for place in inside if os.path.lexists(place))
    return GitPrograms(there=there, vacant=frozenset(inside - there))


def first_made(place: Path, roots: Iterable[Path]) -> Path | None:
    """Return what stands at a place that was vacant, or the link that leads there by now; None: neither."""
    around = [root for root in roots if root in place.parents]
    if not around:
        return None
    at = max(around, key=lambda root: len(root.parts))
    for part in place.relative_to(at).parts:
        at /= part
        try:
            found = os.lstat(at)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return at
    return at


def _repositories(
    entries: Mapping[str, GuardedEntry], roots: Sequence[Path]
) -> Iterator[tuple[Path, Sequence[Path]]]:
    """Yield each working tree with its git folders: those in the roots and those that the roots lie in."""
    for name, entry in entries.items():
        if entry.kind == "git":
            yield _working_tree(Path(name).parent)
        elif entry.kind == "repository":
            yield Path(name), (Path(name),)
    for root in roots:
        for parent in root.parents:
            if os.path.lexists(parent / GIT_FOLDER):
                yield _working_tree(parent)
                break


def _working_tree(top: Path) -> tuple[Path, Sequence[Path]]:
    return top, [folder.path for folder in git_folders(top)]


def _programs_named_by(top: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """Yield what the hooks and settings of a repository name."""
    for folder in folders:
        hooks = folder / "hooks"
        with suppress(OSError):
            yield from (one for one in (hooks, *hooks.iterdir()) if one.is_symlink())
        configs = [folder / name for name in ("config", "config.worktree")]
        # A link to settings may lead into the workspace, as may one that settings name.
        yield from (one for one in configs if one.is_symlink())
        files, settings = _settings_of(configs)
        yield from files[len(configs) :]
        for key, value in settings:
            yield from _places(key, value, top)


def _settings_of(given: Iterable[Path]) -> tuple[Sequence[Path], Sequence[Setting]]:
    """Return files of settings with those that they include in turn, there or not, and all that they set.

    Raises:
        _NotRead: One is too long, or there are too many.
    """
    files, settings = [*given], list[Setting]()
    for file in files:
        if len(files) > MOST_INCLUDES:
            message = f"git reads more than {MOST_INCLUDES} files of settings for it"
            raise _NotRead(message)
        for key, value in _settings(_text(file)):
            settings.append((key, value))
            if key == "path":
                named = file.parent / os.path.expanduser(value.strip('"'))  # noqa: PTH111 - also without a home
                files += [named] if named not in files else []
    return files, settings


def _text(file: Path) -> str:
    """Return the text of a file of settings; of one that is not there, or is no file (`/dev/null`), an empty one."""
    try:
        return git_text(file)
    except OSError:
        return ""
    except ValueError as error:
        if not file.is_file():
            return ""
        message = f"{file}, from which git takes settings for it, is too long to be read"
        raise _NotRead(message) from error


@lru_cache(maxsize=256)
def _settings(text: str) -> tuple[Setting, ...]:
    """Return the settings of a text that may lead to a file, with keys in lower case and without their sections. Pure."""
    return tuple(
        (match["key"].lower(), match["value"].strip())
        for match in _SETTING.finditer(text)
        if match["value"].strip('"').startswith("!")
        or match["key"].lower() == "hookspath"
        or _PROGRAM_KEYS.fullmatch(match["key"])
    )


def _places(key: str, value: str, top: Path) -> Iterator[Path]:
    """Yield where a setting leads when git works in a working tree."""
    if key == "hookspath":
        folder = top / value.strip('"')
        yield folder
        with suppress(OSError):
            yield from (one for one in folder.iterdir() if one.is_symlink())
        return
    for at, match in enumerate(_WORD.finditer(value)):
        word = match[0]
        place = top / word
        # A first word without a slash is looked for on the PATH; an option may end in a path, but is none.
        if "/" in word and not word.startswith(("-", "~")):
            if not place.is_dir():
                yield place
        elif at and place.is_file():
            yield place
