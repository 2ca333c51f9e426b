"""Reads what `git diff` says as values: pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from agent_core.kernel.values import Value

GitFileStatus = Literal["added", "modified", "deleted", "renamed", "copied", "retyped"]
FileKind = Literal["text", "binary", "submodule", "symlink"]

DIFF: Final = (
    "diff",
    "-z",
    "--raw",
    "--patch",
    "--no-abbrev",
    "--full-index",
    "--find-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--unified=3",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
"""One run of Git gives the list and the text; counting lines as well would have it compare everything twice."""
HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
BINARY: Final = b"\nBinary files "
STATUSES: Final[Mapping[str, GitFileStatus]] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "retyped",
}
SUBMODULE_MODE: Final = "160000"
SYMLINK_MODE: Final = "120000"
NO_MODE: Final = "000000"


class GitDiffHunk(Value, frozen=True, kw_only=True):
    """A stretch of changed lines with three around it."""

    old_line: int
    new_line: int
    """The first line on the new side; 0 when that side is empty."""
    new_count: int
    lines: tuple[str, ...]
    """Each begins with a space, `+`, `-` or a backslash."""

    def shows(self, line: int) -> bool:
        """Return whether a line of the new side is in it."""
        return self.new_line <= line < self.new_line + self.new_count


class ChangedFile(Value, frozen=True, kw_only=True):
    """One file of a diff."""

    path: str
    """The name on the new side; of a deleted file, that on the old one. Bytes that are no UTF-8 are surrogates."""
    old_path: str | None
    """The name on the old side, when it was another."""
    status: GitFileStatus
    kind: FileKind
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str
    additions: int
    deletions: int
    patch: bytes
    """From the first hunk on; empty when there is none."""

    @property
    def churn(self) -> int:
        """How many lines changed."""
        return self.additions + self.deletions

    def hunks(self) -> tuple[GitDiffHunk, ...]:
        """Read the text of the change. Bytes that are no UTF-8 become U+FFFD."""
        return tuple(read_hunks(self.patch))


def parse_diff(output: bytes) -> tuple[ChangedFile, ...]:
    """Read the output of `DIFF`."""
    listing, _, text = output.partition(b"\0\0")
    tokens = iter(listing.rstrip(b"\0").split(b"\0") if listing else ())
    raw: list[tuple[list[str], tuple[str, str | None]]] = []
    for token in tokens:
        facts = token[1:].decode("ascii").split(" ")
        raw.append((facts, _names(facts[4], tokens)))
    patches = _by_file(text)
    return tuple(_file(facts, names, patches) for facts, names in raw)


def _names(status: str, tokens: Iterator[bytes]) -> tuple[str, str | None]:
    first = _path(next(tokens))
    if status[0] not in "RC":
        return first, None
    return _path(next(tokens)), first


def _path(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _by_file(text: bytes) -> Iterator[bytes]:
    """Return the part of each file, in order; only a header of Git begins a line with `diff`."""
    return iter((b"\n" + text).split(b"\ndiff --git ")[1:])


def _file(
    facts: Sequence[str],
    names: tuple[str, str | None],
    patches: Iterator[bytes],
) -> ChangedFile:
    old_mode, new_mode, old_blob, new_blob, status = facts
    part = next(patches, b"")
    if status[0] == "T":
        part = next(patches, b"")  # one part takes the old kind away, the next brings the new one
    begin = HUNK.search(part)
    patch = b"" if begin is None else part[begin.start() :]
    path, old_path = names
    return ChangedFile(
        path=path,
        old_path=old_path,
        status=STATUSES.get(status[0], "modified"),
        kind=_kind(
            old_mode if new_mode == NO_MODE else new_mode,
            is_binary=begin is None and BINARY in part,
        ),
        old_mode=old_mode,
        new_mode=new_mode,
        old_blob=old_blob,
        new_blob=new_blob,
        additions=patch.count(b"\n+"),
        deletions=patch.count(b"\n-"),
        patch=patch,
    )


def _kind(mode: str, *, is_binary: bool) -> FileKind:
    if mode == SUBMODULE_MODE:
        return "submodule"
    if mode == SYMLINK_MODE:
        return "symlink"
    return "binary" if is_binary else "text"


def read_hunks(patch: bytes) -> Iterator[GitDiffHunk]:
    """Read the hunks of one file's patch. Bytes that are no UTF-8 become U+FFFD."""
    heads = list(HUNK.finditer(patch))
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(patch)
        _, _, body = patch[head.start() : end].partition(b"\n")
        lines = body.decode("utf-8", "replace").split("\n")
        if lines and not lines[-1]:
            del lines[-1]
        yield GitDiffHunk(
            old_line=int(head[1]),
            new_line=int(head[3]),
            new_count=1 if head[4] is None else int(head[4]),
            lines=tuple(lines),
        )
