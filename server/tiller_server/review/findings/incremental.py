"""Continuation of an earlier review: the hunks to read again, and the findings that still hold."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.git.client import GitFailed
from tiller_server.review.findings.quote_location import QuoteLocation
from tiller_server.review.findings.relocation import moved
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.findings.verification import NewSide, in_one_hunk
from tiller_server.review.git.change_set import ReviewChangeSet, read_diff
from tiller_server.review.git.diff import ChangedFile, GitDiffHunk
from tiller_server.review.git.head_files import HeadFiles
from tiller_server.review.git.revisions import Revisions


class ChangesSince(Value, frozen=True, kw_only=True):
    """Changes since an earlier review."""

    commit: str
    changed: Mapping[str, ChangedFile]
    """By new name."""
    deleted: frozenset[str]
    """Names of files that are gone since."""
    moved: Mapping[str, str]
    """Old name to new name."""
    read: frozenset[str]
    """Files that the earlier review has read, by their present names."""


async def find_since(revisions: Revisions, earlier: Review) -> ChangesSince | None:
    """Compare the head with the one that was reviewed; None when that is not there any more."""
    commit = earlier.header.head.sha
    try:
        files = await read_diff(revisions.git, commit, revisions.head.sha)
    except GitFailed:
        return None
    renamed = {file.old_path: file.path for file in files if file.old_path is not None}
    return ChangesSince(
        commit=commit,
        changed={file.path: file for file in files if file.status != "deleted"},
        deleted=frozenset(file.path for file in files if file.status == "deleted"),
        moved=renamed,
        read=frozenset(renamed.get(file.path, file.path) for file in earlier.files),
    )


def hunks_to_read(
    change: ReviewChangeSet, since: ChangesSince
) -> dict[str, tuple[GitDiffHunk, ...]]:
    """Return by path the hunks to look at: all of what was never read, of the rest those with a line that is newer."""
    found: dict[str, tuple[GitDiffHunk, ...]] = {}
    for file in change.files:
        hunks = file.hunks()
        if file.path in since.read and file.path not in since.deleted:
            newer = since.changed.get(file.path)
            lines = frozenset[int]() if newer is None else _touched(newer)
            hunks = tuple(hunk for hunk in hunks if any(hunk.shows(line) for line in lines))
        if hunks:
            found[file.path] = hunks
    return found


def _touched(file: ChangedFile) -> frozenset[int]:
    """Return the lines of the new side that were added, and those beside which one was taken away."""
    lines: set[int] = set()
    for hunk in file.hunks():
        number = hunk.new_line
        for line in hunk.lines:
            if line[:1] == "+":
                lines.add(number)
            elif line[:1] == "-":
                lines |= {number - 1, number}
            number += line[:1] in {" ", "+"}
    return frozenset(lines)


async def persisting_findings(
    findings: Sequence[Finding], *, since: ChangesSince | None, files: HeadFiles
) -> tuple[Finding, ...]:
    """Return the findings of an earlier review whose evidence stands in the change as it is now, where it stands now."""
    renamed: Mapping[str, str] = {} if since is None else since.moved
    stand: list[Finding] = []
    for finding in findings:
        path = renamed.get(finding.path, finding.path)
        there = await files.side(path) if path in files.paths else None
        found = None if there is None else placed(finding, there)
        if found is not None:
            stand.append(found)
    return tuple(stand)


def placed(finding: Finding, there: NewSide) -> Finding | None:
    """Return an earlier finding, same fingerprint, at its evidence's present place; None when that is gone. Pure."""
    now = moved(finding, there.lines)
    if now is None:
        return None
    place = QuoteLocation(line=now.line, end_line=now.end_line)
    return replace(
        now,
        path=there.path,
        in_diff=in_one_hunk(there.hunks, place),
    )
