"""Divides a change into parts that a model can take in, and writes them out for it: pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.text import for_model
from agent_core.kernel.values import Value
from tiller_server.review.findings.result import ReviewedFile
from tiller_server.review.git.deleted_files import beginning_of
from tiller_server.review.git.diff import ChangedFile, GitDiffHunk

PART_CHARS: Final = 60_000
"""Some 15,000 tokens: room for the files around it, and short enough to be read with care."""
NUMBER_CHARS: Final = 8
"""Width of the number before each line, in characters."""
LINE_CHARS: Final = 2_000
"""Longest line in characters; a longer line is cut, since people seldom write such lines."""


class ReviewFileSlice(Value, frozen=True, kw_only=True):
    """A file of the change, or some of its hunks."""

    file: ChangedFile
    some: tuple[GitDiffHunk, ...] | None = None
    """None: all of it."""

    @property
    def hunks(self) -> tuple[GitDiffHunk, ...]:
        """Hunks to review; read anew at each use."""
        return self.file.hunks() if self.some is None else self.some


class ReviewChunk(Value, frozen=True, kw_only=True):
    """Pieces of the change that one run of the model reviews."""

    pieces: tuple[ReviewFileSlice, ...]

    def text(self) -> str:
        """Write it out for the model; made when it is needed, for a change may be large."""
        return "\n".join(written(piece) for piece in self.pieces)

    @property
    def deletes(self) -> bool:
        """Whether a deleted file is in it."""
        return any(piece.file.status == "deleted" for piece in self.pieces)

    def files(self) -> tuple[ReviewedFile, ...]:
        """Name the files in it."""
        return tuple(reviewed(piece.file) for piece in self.pieces)


def reviewed(file: ChangedFile) -> ReviewedFile:
    """Name a file for the report."""
    return ReviewedFile(
        path=file.path,
        old_path=file.old_path,
        additions=file.additions,
        deletions=file.deletions,
    )


def divide(
    files: Sequence[ChangedFile],
    *,
    hunks: Mapping[str, tuple[GitDiffHunk, ...]] | None = None,
    part_chars: int = PART_CHARS,
) -> tuple[ReviewChunk, ...]:
    """Group files into parts as long as there is room; a file that alone is too long is cut between hunks.

    Args:
        files: In the order in which they are read.
        hunks: By path, the hunks to review of each file; None: all hunks of all files.
        part_chars: Approximate limit of the text of a part; one line alone may be longer.
    """
    parts: list[ReviewChunk] = []
    open_pieces: list[ReviewFileSlice] = []
    size = 0
    for piece, length in _pieces(files, hunks, part_chars):
        if open_pieces and size + length > part_chars:
            parts.append(ReviewChunk(pieces=tuple(open_pieces)))
            open_pieces, size = [], 0
        open_pieces.append(piece)
        size += length
    if open_pieces:
        parts.append(ReviewChunk(pieces=tuple(open_pieces)))
    return tuple(parts)


def _pieces(
    files: Sequence[ChangedFile],
    hunks: Mapping[str, tuple[GitDiffHunk, ...]] | None,
    part_chars: int,
) -> Iterator[tuple[ReviewFileSlice, int]]:
    for file in files:
        if file.status == "deleted":
            if hunks is None or file.path in hunks:
                yield ReviewFileSlice(file=file), len(written(ReviewFileSlice(file=file)))
            continue
        length = len(file.patch) + NUMBER_CHARS * file.patch.count(b"\n") + len(file.path)
        if hunks is None and length <= part_chars:
            yield ReviewFileSlice(file=file), length
        else:
            wanted = file.hunks() if hunks is None else hunks.get(file.path, ())
            yield from _stretches(file, wanted, part_chars)


def _stretches(
    file: ChangedFile, hunks: Sequence[GitDiffHunk], part_chars: int
) -> Iterator[tuple[ReviewFileSlice, int]]:
    taken: list[GitDiffHunk] = []
    size = 0
    for hunk in (one for whole in hunks for one in _cut(whole, part_chars)):
        length = sum(_length(line) for line in hunk.lines)
        if taken and size + length > part_chars:
            yield ReviewFileSlice(file=file, some=tuple(taken)), size
            taken, size = [], 0
        taken.append(hunk)
        size += length
    if taken:
        yield ReviewFileSlice(file=file, some=tuple(taken)), size


def _length(line: str) -> int:
    return min(len(line), LINE_CHARS) + NUMBER_CHARS


def _cut(hunk: GitDiffHunk, part_chars: int) -> Iterator[GitDiffHunk]:
    """Cut a hunk that is longer than a part, a new file for one."""
    lines: list[str] = []
    size = 0
    old_line, new_line = hunk.old_line, hunk.new_line
    for line in hunk.lines:
        if lines and size + len(line) > part_chars:
            piece = _stretch(hunk, lines, old_line, new_line)
            yield piece
            old_line += sum(each[:1] in {" ", "-"} for each in lines)
            new_line += piece.new_count
            lines, size = [], 0
        lines.append(line)
        size += _length(line)
    yield _stretch(hunk, lines, old_line, new_line)


def _stretch(hunk: GitDiffHunk, lines: Sequence[str], old_line: int, new_line: int) -> GitDiffHunk:
    count = sum(line[:1] in {" ", "+"} for line in lines)
    return replace(hunk, old_line=old_line, new_line=new_line, new_count=count, lines=tuple(lines))


def written(piece: ReviewFileSlice) -> str:
    """Write a piece with the number of each line of the new side before it, and signs nobody sees written out."""
    file = piece.file
    if file.status == "deleted":
        return "\n".join(_deleted(file)) + "\n"
    name = for_model(file.path)
    was = f", before: {for_model(file.old_path)}" if file.old_path else ""
    lines = [f"=== {name} ({file.status}{was})"]
    for hunk in piece.hunks:
        lines.append(f"@@ from line {hunk.new_line} @@")
        lines.extend(_numbered(hunk))
    return "\n".join(lines) + "\n"


def _deleted(file: ChangedFile) -> Iterator[str]:
    """Write the beginning of a deleted file: it has no lines on the new side, so there are no numbers."""
    beginning = beginning_of(file)
    yield f"=== {for_model(file.path)} (deleted; this is what it held)"
    yield from (f"{'':>6} -{_shown(line)}" for line in beginning.lines)
    if beginning.more_lines:
        yield (
            f"[… {beginning.more_lines:,} more lines, {beginning.more_bytes:,} bytes, were deleted "
            "with it and are not shown]"
        )


def _numbered(hunk: GitDiffHunk) -> Iterator[str]:
    number = hunk.new_line
    for line in hunk.lines:
        sign, text = line[:1], _shown(line[1:])
        if sign in {" ", "+"}:
            yield f"{number:>6} {sign}{text}"
            number += 1
        else:
            yield f"{'':>6} {sign}{text}"


def _shown(line: str) -> str:
    text = line.rstrip("\r")
    if len(text) > LINE_CHARS:
        text = f"{text[:LINE_CHARS]}[… {len(text) - LINE_CHARS} more characters]"
    return for_model(text)
