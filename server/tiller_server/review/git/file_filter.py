"""Selection of the files of a change that need no review. Pure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.protected_names import is_secret
from tiller_server.review.findings.result import LeftOut
from tiller_server.review.git.deleted_files import within_bounds
from tiller_server.review.git.diff import ChangedFile, GitFileStatus

LOCK_FILES: Final = frozenset(
    [
        "bun.lock",
        "bun.lockb",
        "cargo.lock",
        "composer.lock",
        "flake.lock",
        "gemfile.lock",
        "go.sum",
        "gradle.lockfile",
        "mix.lock",
        "npm-shrinkwrap.json",
        "package-lock.json",
        "package.resolved",
        "pdm.lock",
        "pipfile.lock",
        "pixi.lock",
        "pnpm-lock.yaml",
        "podfile.lock",
        "poetry.lock",
        "pubspec.lock",
        "uv.lock",
        "yarn.lock",
    ]
)
VENDORED: Final = frozenset(
    ["bower_components", "node_modules", "third_party", "third-party", "vendor", "vendored"]
)
GENERATED_NAME: Final = re.compile(
    r"""
    (?:\.min\.(?:js|css)|\.(?:js|css)\.map|_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h)|\.g\.dart|\.designer\.cs
    |\.generated\.\w+|\.snap)$
    """,
    re.IGNORECASE | re.VERBOSE,
)
GENERATED_MARK: Final = re.compile(
    r"@generated\b|\bcode generated\b.*\bdo not edit\b|\bautomatically generated\b.*\bdo not (?:edit|modify)\b",
    re.IGNORECASE,
)
MARK_LINES: Final = 5
"""Of a new file so many lines are looked at for words that say it was generated."""
MOST_LINES: Final = 4_000
"""A file with more changed lines is no work of a person, or nothing that can be judged at once."""
UNWRITTEN: Final[Mapping[GitFileStatus, str]] = {
    "renamed": "renamed only",
    "deleted": "deleted, was empty",
}
_TOP: Final = Path("/top")
"""Stands for the repository: only names below it count."""
YES: Final = frozenset({"set", "true"})
NO: Final = frozenset({"unset", "false"})


class ReviewFileFilter(Value, frozen=True, kw_only=True):
    """Which files the caller wants; globs as in `src/**`, a folder means all below it."""

    paths: tuple[str, ...] = ()
    """Only these; empty: all."""
    excluded: tuple[str, ...] = ()
    most_lines: int = MOST_LINES


def sort_out(
    files: Sequence[ChangedFile],
    *,
    attributes: Mapping[str, Mapping[str, str]],
    scope: ReviewFileFilter,
) -> tuple[tuple[ChangedFile, ...], tuple[LeftOut, ...]]:
    """Divide the files into those to review and those to leave out, each of the latter with its reason.

    Args:
        files: The whole change.
        attributes: By path what `.gitattributes` of the base says; `-linguist-generated` brings a file back in.
        scope: Paths and limits that the caller wants.
    """
    wanted: list[ChangedFile] = []
    left_out: list[LeftOut] = []
    for file in files:
        reason = _reason(file, attributes.get(file.path, {}), scope)
        if reason is None:
            wanted.append(file)
        else:
            left_out.append(LeftOut(path=printable(file.path), reason=reason))
    shown, over = within_bounds(wanted)
    return shown, (*left_out, *over)


def printable(path: str) -> str:
    """Return a name that any report can hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _reason(
    file: ChangedFile, attributes: Mapping[str, str], scope: ReviewFileFilter
) -> str | None:
    for why in (
        _unreadable(file),
        _unwanted(file, scope),
        _secret(file),
        _made_by_programs(file, attributes),
    ):
        if why is not None:
            return why
    # Of a deleted file only the beginning is read.
    if file.churn > scope.most_lines and file.status != "deleted":
        return f"too large: {file.churn:,} changed lines, at most {scope.most_lines:,} are read"
    return None


def _unreadable(file: ChangedFile) -> str | None:
    if not file.path.isascii() and printable(file.path) != file.path:
        return "its name is not UTF-8"
    if file.kind == "submodule":
        return f"submodule: {file.old_blob[:12]} → {file.new_blob[:12]}"
    if file.kind == "binary":
        return "binary"
    return None


def _unwanted(file: ChangedFile, scope: ReviewFileFilter) -> str | None:
    if scope.paths and not any(_matches(file.path, glob) for glob in scope.paths):
        return "not asked for"
    if any(_matches(file.path, glob) for glob in scope.excluded):
        return "excluded"
    if not file.patch:
        return UNWRITTEN.get(file.status, "mode only, or empty")
    return None


def _secret(file: ChangedFile) -> str | None:
    """Return why a file is hidden from the model: a diff shows no file that tools read only after a question."""
    names = (name for name in (file.path, file.old_path) if name is not None)
    found = (is_secret(_TOP / name, roots=(_TOP,)) for name in names)
    return next((f"{why}, so the model is not shown it" for why in found if why is not None), None)


def _made_by_programs(file: ChangedFile, attributes: Mapping[str, str]) -> str | None:
    said = {word: attributes.get(f"linguist-{word}", "") for word in ("generated", "vendored")}
    if attributes.get("diff") == "unset":
        said["binary"] = "set"
    for word, value in said.items():
        if value in YES:
            return f"{word} (.gitattributes)"
    return None if NO & set(said.values()) else _by_looks(file)


def _by_looks(file: ChangedFile) -> str | None:
    name = PurePosixPath(file.path)
    if name.name.lower() in LOCK_FILES:
        return "lock file"
    if VENDORED & {part.lower() for part in name.parent.parts}:
        return "vendored"
    if GENERATED_NAME.search(name.name) or _says_so(file):
        return "generated"
    return None


def _says_so(file: ChangedFile) -> bool:
    # Of a file that was there before, its author cannot make a change unseen by writing such words.
    if file.status != "added":
        return False
    beginning = file.patch[:4096].decode("utf-8", "replace").split("\n")[1 : 1 + MARK_LINES]
    return any(GENERATED_MARK.search(line) for line in beginning)


def _matches(path: str, glob: str) -> bool:
    folder = glob.rstrip("/")
    if path == folder or path.startswith(f"{folder}/") or folder == ".":
        return True
    return _pattern(folder).fullmatch(path) is not None


def _pattern(glob: str) -> re.Pattern[str]:
    """Read a glob: `**` crosses folders, `*` and `?` do not."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    said = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(said.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)
