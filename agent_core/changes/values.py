"""Values of changes: versions of a file, verified changes, verdicts on hunks and counts, with their JSON; pure."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from msgspec.structs import replace

from agent_core.kernel import EntryId, JsonObject, JsonValue, RunId, ToolCallId
from agent_core.kernel.errors import NotText, StorageError
from agent_core.kernel.json import as_object
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.files.text import MARKS, encode_text, sha256_of


class BlobStore(Protocol):
    """Content-addressed store of bytes. Stored content is never altered."""

    async def put(self, data: bytes) -> str:
        """Keep bytes and give their SHA-256 in hex; the same bytes are kept once.

        Raises:
            StorageError: They could not be written.
        """
        ...

    async def get(self, key: str) -> bytes | None:
        """Return what is kept; None: nothing is, or it is damaged."""
        ...

    async def sync(self, keys: Collection[str]) -> None:
        """Make what is kept under some keys survive a power cut; until then a hash tells what did not."""
        ...


Op: TypeAlias = Literal["add", "modify", "delete", "move"]
ChangeSource: TypeAlias = Literal["tool", "process", "restore", "reject"]
"""`tool`: a tool wrote through the workspace. `process`: a command of a tool made the change, detected by scans before
and after. `restore` and `reject`: a revert by a client."""


class FileVersion(Value, frozen=True, kw_only=True):
    """A file as it was at one moment."""

    sha256: str
    """As the workspace gives it: of the bytes on disk, or of a buffer's text in UTF-8."""
    content: str | None
    """Key under which its bytes are kept (`BlobStore`); None: they are not, for size or because nobody saw them."""
    size: int
    """In bytes."""
    is_text: bool = True
    encoding: str = "utf-8"
    bom: bool = False
    saved: bool = True
    """False: it was only in an editor."""


class Change(Value, frozen=True, kw_only=True):
    """A verified change of one file. Changes are told in their order and never altered."""

    id: str
    """Of the edit; several files may be changed by one."""
    run: RunId | None
    """None: outside any run, as when a person rejects a hunk."""
    call: ToolCallId | None
    by: ChangeSource
    op: Op
    path: Path
    """Absolute and resolved; where it is afterwards, of a deletion where it was."""
    source: Path | None = None
    """Where a moved file was."""
    before: FileVersion | None
    """None: there was nothing."""
    after: FileVersion | None
    """None: nothing is there any more."""
    at_ms: int
    maybe_user_edit: bool = False
    """It happened while a command ran, and an editor had the file open: it may be the user's own."""
    ignored: bool = False
    """A command deleted a file, or a folder with all that was in it, that git ignores: nothing to review, and no copy."""

    @property
    def is_lost(self) -> bool:
        """Whether what was there before cannot be brought back."""
        return self.before is not None and self.before.content is None


class Checkpoint(Value, frozen=True, kw_only=True):
    """A moment to which files and conversation can be taken back: before a run's first change, a restore, a rejection."""

    id: str
    run: RunId | None
    """The run whose first change follows; None: a restore or a rejection follows, which this one takes back."""
    at_ms: int
    changes: int
    """How many changes of this session came before it."""
    leaf: EntryId | None
    """The last entry of the conversation before the run's words."""
    restores: str | None = None
    """The checkpoint to which the restore that follows takes all files back; None: no restore follows, or one of some
    files only."""


def runs_to_undo(checkpoints: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of runs that no restore has gone back over, oldest first.

    A restore to the checkpoint of an earlier restore brings the runs back that the earlier one went over.

    Args:
        checkpoints: All of a session, oldest first.
    """
    left: tuple[Checkpoint, ...] = ()
    left_before: dict[str, tuple[Checkpoint, ...]] = {}
    for checkpoint in checkpoints:
        left_before[checkpoint.id] = left
        if checkpoint.run is not None:
            left = (*left, checkpoint)
        elif checkpoint.restores is not None:
            left = left_before.get(checkpoint.restores, left)
    return left


MOST_BYTES = 10_485_760
"""Larger files are noted by their hash alone."""


def same_version(one: FileVersion | None, other: FileVersion | None) -> bool:
    """Return whether a file held the same; a buffer's hash and a disk's differ where the encoding is not UTF-8."""
    if one is None or other is None:
        return one is other
    return one.sha256 == other.sha256 or (one.content is not None and one.content == other.content)


def text_of(version: FileVersion, data: bytes) -> str | None:
    """Return the text of a version from its bytes, without a byte order mark; None: it is none."""
    if not version.is_text:
        return None
    if version.bom:
        mark = next((mark for mark, name in MARKS if name == version.encoding), b"")
        data = data.removeprefix(mark)
    try:
        return data.decode(version.encoding)
    except (UnicodeDecodeError, LookupError):
        return None


async def stored_bytes(version: FileVersion, contents: BlobStore) -> bytes | None:
    """Return the bytes of a version; None: they were not kept, or are damaged."""
    return None if version.content is None else await contents.get(version.content)


async def stored_text(version: FileVersion, contents: BlobStore) -> str | None:
    """Return the text of a version; None: it is none, or was not kept."""
    data = await stored_bytes(version, contents) if version.is_text else None
    return None if data is None else await run_in_thread(text_of, version, data)


async def look_at(found: FileText | FileBytes) -> FileVersion:
    """Describe a file as it is now; `content` is the key under which its bytes would be kept."""
    return (await run_in_thread(_described, found))[0]


async def keep(found: FileText | FileBytes, contents: BlobStore) -> FileVersion:
    """Describe a file and keep its bytes: as the disk has them, or would have them if an editor saved now.

    When they are too many, or the disk refuses, they are not kept, and whoever wants to go back there is told: the
    change itself has happened.
    """
    version, data = await run_in_thread(_described, found)
    if len(data) > MOST_BYTES:
        return replace(version, content=None)
    try:
        return replace(version, content=await contents.put(data))
    except StorageError:
        return replace(version, content=None)


def _described(found: FileText | FileBytes) -> tuple[FileVersion, bytes]:
    if isinstance(found, FileBytes):
        version = FileVersion(
            sha256=found.sha256, content=found.sha256, size=len(found.data), is_text=False
        )
        return version, found.data
    encoding, bom = found.encoding, found.bom
    try:
        data = encode_text(found.text, encoding=encoding, bom=bom)
    except NotText:
        # A buffer may hold what its file's encoding cannot.
        data, encoding, bom = found.text.encode(), "utf-8", False
    version = FileVersion(
        sha256=found.sha256,
        content=found.sha256 if found.source == "disk" else sha256_of(data),
        size=len(data),
        encoding=encoding,
        bom=bom,
        saved=not found.dirty,
    )
    return version, data


HunkAction: TypeAlias = Literal["accept", "reject", "reviewed"]
"""`reviewed`: the user has seen it and keeps it, which has the same effect as `accept`."""
HunkDecider: TypeAlias = Literal["user", "git"]
"""`git`: it was committed."""

ACTIONS: Final[Mapping[str, HunkAction]] = {
    "accept": "accept",
    "reject": "reject",
    "reviewed": "reviewed",
}


class HunkDecision(Value, frozen=True, kw_only=True):
    """A word on some hunks of one file."""

    path: Path
    """Where the file was then."""
    action: HunkAction
    hunks: tuple[str, ...]
    whole: bool = False
    """Also on that the file came, went or moved, and on what is no text."""
    edit: str | None = None
    """The edit that took them back; it follows."""
    by: HunkDecider = "user"
    note: str | None = None
    at_ms: int = 0


def encode_decision(verdict: HunkDecision) -> dict[str, JsonValue]:
    """Write a verdict."""
    fields: dict[str, JsonValue] = {
        "path": str(verdict.path),
        "action": verdict.action,
        "hunks": list(verdict.hunks),
        "by": verdict.by,
        "at": verdict.at_ms,
    }
    if verdict.whole:
        fields["whole"] = True
    if verdict.edit is not None:
        fields["edit"] = verdict.edit
    if verdict.note is not None:
        fields["note"] = verdict.note
    return fields


def decode_decision(data: JsonObject) -> HunkDecision | None:
    """Read a verdict; None: it makes no sense, or a later version wrote it."""
    path, action, hunks = data.get("path"), ACTIONS.get(str(data.get("action"))), data.get("hunks")
    if not isinstance(path, str) or action is None or not isinstance(hunks, list | tuple):
        return None
    edit, note, at_ms = data.get("edit"), data.get("note"), data.get("at")
    return HunkDecision(
        path=Path(path),
        action=action,
        hunks=tuple(one for one in hunks if isinstance(one, str)),
        whole=data.get("whole") is True,
        edit=edit if isinstance(edit, str) else None,
        by="git" if data.get("by") == "git" else "user",
        note=note if isinstance(note, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
    )


class QueuedRejection(Value, frozen=True, kw_only=True):
    """A rejection that waits for the end of a run, and for the next process if this one dies first."""

    id: str
    path: Path
    hunks: tuple[str, ...]
    whole: bool = False
    """The file is meant, with all that waits in it."""
    note: str | None = None
    at_ms: int = 0


def encode_queued(queued: QueuedRejection) -> dict[str, JsonValue]:
    """Write a rejection that waits."""
    fields: dict[str, JsonValue] = {
        "state": "queued",
        "id": queued.id,
        "path": str(queued.path),
        "hunks": list(queued.hunks),
        "at": queued.at_ms,
    }
    if queued.whole:
        fields["whole"] = True
    if queued.note is not None:
        fields["note"] = queued.note
    return fields


def encode_settled(queued: QueuedRejection, status: str) -> dict[str, JsonValue]:
    """Write what became of one."""
    return {"state": "settled", "id": queued.id, "status": status}


def queued_in(entries: Iterable[JsonObject]) -> dict[str, QueuedRejection]:
    """Find the rejections that still wait, by id, in what a session's file says of reviews."""
    found: dict[str, QueuedRejection] = {}
    for data in entries:
        match data.get("state"), data.get("id"):
            case "queued", str(one):
                if (queued := _queued(one, data)) is not None:
                    found[one] = queued
            case "settled", str(one):
                _ = found.pop(one, None)
            case _:
                continue
    return found


def _queued(one: str, data: JsonObject) -> QueuedRejection | None:
    path, hunks = data.get("path"), data.get("hunks")
    if not isinstance(path, str) or not isinstance(hunks, list | tuple):
        return None
    note, at_ms = data.get("note"), data.get("at")
    return QueuedRejection(
        id=one,
        path=Path(path),
        hunks=tuple(hunk for hunk in hunks if isinstance(hunk, str)),
        whole=data.get("whole") is True,
        note=note if isinstance(note, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
    )


class LineCounts(Value, frozen=True, kw_only=True):
    """Files, lines and hunks."""

    files: int = 0
    additions: int = 0
    deletions: int = 0
    unreviewed: int = 0

    def plus(self, other: "LineCounts", *, times: int = 1) -> "LineCounts":
        """Add, or with -1 take away."""
        return LineCounts(
            files=self.files + times * other.files,
            additions=self.additions + times * other.additions,
            deletions=self.deletions + times * other.deletions,
            unreviewed=self.unreviewed + times * other.unreviewed,
        )


def line_count(text: str) -> int:
    """Count lines as patches do; a last one without an end is one."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def encode_counts(counts: LineCounts) -> dict[str, JsonValue]:
    """Write what waits in a file, as the entries of the session's file carry it."""
    return {
        "files": counts.files,
        "additions": counts.additions,
        "deletions": counts.deletions,
        "unreviewed": counts.unreviewed,
    }


def counts_in(data: JsonObject) -> LineCounts | None:
    """Read what an entry says; None: it says nothing that makes sense."""
    counts = as_object(data.get("counts"))
    numbers = [counts.get(name) for name in ("files", "additions", "deletions", "unreviewed")]
    match numbers:
        case [int(files), int(additions), int(deletions), int(unreviewed)] if (
            min(files, additions, deletions, unreviewed) >= 0
        ):
            return LineCounts(
                files=files, additions=additions, deletions=deletions, unreviewed=unreviewed
            )
        case _:
            return None


_OPS: Final[Mapping[str, Op]] = {
    "add": "add",
    "modify": "modify",
    "delete": "delete",
    "move": "move",
}
_DOERS: Final[Mapping[str, ChangeSource]] = {
    "tool": "tool",
    "process": "process",
    "restore": "restore",
    "reject": "reject",
}


def encode_change(change: Change) -> dict[str, JsonValue]:
    """Encode a change as JSON; fields that are None or False are left out."""
    fields: dict[str, JsonValue] = {
        "edit": change.id,
        "run": change.run,
        "call": change.call,
        "by": change.by,
        "op": change.op,
        "path": str(change.path),
        "source": None if change.source is None else str(change.source),
        "before": None if change.before is None else _version(change.before),
        "after": None if change.after is None else _version(change.after),
        "at": change.at_ms,
        "doubtful": change.maybe_user_edit or None,
        "ignored": change.ignored or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_change(data: JsonObject) -> Change | None:
    """Read a change; None: it makes no sense, or a later version wrote it."""
    edit, path = data.get("edit"), data.get("path")
    op, by = _OPS.get(str(data.get("op"))), _DOERS.get(str(data.get("by")))
    if not isinstance(edit, str) or not isinstance(path, str) or op is None or by is None:
        return None
    run, call, source, at_ms = (data.get(name) for name in ("run", "call", "source", "at"))
    return Change(
        id=edit,
        run=RunId(run) if isinstance(run, str) else None,
        call=ToolCallId(call) if isinstance(call, str) else None,
        by=by,
        op=op,
        path=Path(path),
        source=Path(source) if isinstance(source, str) else None,
        before=_read_version(data.get("before")),
        after=_read_version(data.get("after")),
        at_ms=at_ms if isinstance(at_ms, int) else 0,
        maybe_user_edit=data.get("doubtful") is True,
        ignored=data.get("ignored") is True,
    )


def _version(one: FileVersion) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {"sha256": one.sha256, "size": one.size}
    if one.content is not None:
        fields["content"] = one.content
    if not one.is_text:
        fields["text"] = False
    if one.encoding != "utf-8":
        fields["encoding"] = one.encoding
    if one.bom:
        fields["bom"] = True
    if not one.saved:
        fields["saved"] = False
    return fields


def _read_version(value: JsonValue) -> FileVersion | None:
    data = as_object(value)
    sha256, content, size = data.get("sha256"), data.get("content"), data.get("size")
    encoding = data.get("encoding")
    if not isinstance(sha256, str):
        return None
    return FileVersion(
        sha256=sha256,
        content=content if isinstance(content, str) else None,
        size=size if isinstance(size, int) else 0,
        is_text=data.get("text") is not False,
        encoding=encoding if isinstance(encoding, str) else "utf-8",
        bom=data.get("bom") is True,
        saved=data.get("saved") is not False,
    )


def encode_checkpoint(one: Checkpoint) -> dict[str, JsonValue]:
    """Encode a checkpoint as JSON; fields that are None are left out."""
    fields: dict[str, JsonValue] = {
        "checkpoint": one.id,
        "run": one.run,
        "at": one.at_ms,
        "changes": one.changes,
        "leaf": one.leaf,
        "restores": one.restores,
    }
    return {name: value for name, value in fields.items() if value is not None}


def decode_checkpoint(data: JsonObject, *, changes: int) -> Checkpoint | None:
    """Decode a checkpoint; None: the data is not a valid checkpoint.

    Args:
        data: The encoded checkpoint.
        changes: Number of changes read before it. The number in the file is only informative: after damage to a line
            the two differ, and a change that cannot be read cannot be reverted.
    """
    checkpoint, run, at_ms, leaf = (data.get(name) for name in ("checkpoint", "run", "at", "leaf"))
    restores = data.get("restores")
    if not isinstance(checkpoint, str):
        return None
    return Checkpoint(
        id=checkpoint,
        run=RunId(run) if isinstance(run, str) else None,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
        changes=changes,
        leaf=EntryId(leaf) if isinstance(leaf, str) else None,
        restores=restores if isinstance(restores, str) else None,
    )
