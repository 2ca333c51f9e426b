"""Review of changes by people: verdicts, their order, and what the model is told of them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from anyio import Lock
from msgspec import Struct

from agent_core.changes.hunks import FileReview, Hunk
from agent_core.changes.values import (
    HunkAction,
    HunkDecider,
    HunkDecision,
    Op,
    QueuedRejection,
    encode_queued,
    encode_settled,
    queued_in,
)
from agent_core.events import DocumentChange, EditRejected, Event
from agent_core.kernel import Clock, uuid7
from agent_core.kernel.errors import UsageError, WorkspaceError
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.changes.revert import Reverter
from agent_core.session.context import WorkspaceContext
from agent_core.session.history.entries import REVIEW, review_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.transcript.entries import CustomEntry
from agent_core.workspace import FileBytes, Files, FileText
from agent_core.workspace.diff.minimal_edits import line_number0


class QueuedRejections:
    """Those of one session. The only writer of what its file says of them."""

    def __init__(self, recorder: Recorder, *, clock: Clock, new_id: Callable[[], str]) -> None:
        """Read what the session's file holds.

        Args:
            recorder: Writes entries.
            clock: For the time of each.
            new_id: Makes ids.
        """
        self._recorder = recorder
        self._clock = clock
        self._new_id = new_id
        entries = recorder.transcript.records
        said = [one for one in entries if isinstance(one, CustomEntry)]
        self._left = queued_in(as_object(one.data) for one in said if one.custom_type == REVIEW)

    def take_left(self) -> Sequence[QueuedRejection]:
        """Return the rejections that an earlier process has left, once: the caller does and settles them."""
        left, self._left = self._left, {}
        return tuple(left.values())

    async def put(
        self, path: Path, hunks: Iterable[str], *, whole: bool, note: str | None
    ) -> QueuedRejection:
        """Keep one before it is waited for."""
        queued = QueuedRejection(
            id=self._new_id(),
            path=path,
            hunks=tuple(hunks),
            whole=whole,
            note=note,
            at_ms=self._clock.now_ms(),
        )
        _ = await self._recorder.keep(review_entry(encode_queued(queued)))
        return queued

    async def settle(self, queued: QueuedRejection, status: str) -> None:
        """Keep what became of one; it waits no more."""
        _ = await self._recorder.keep(review_entry(encode_settled(queued, status)))


MOST_NOTE_BYTES: Final = 16_384
MOST_WISHES: Final = 1_000

ReviewStatus: TypeAlias = Literal["done", "conflict", "gone"]
"""`conflict`: another client decided, or the text was changed. `gone`: the hunk does not exist any more."""


class ReviewRequest(Value, frozen=True, kw_only=True):
    """Requested decision of the user on a hunk, a whole file, or a change set; exactly one of the three is set."""

    action: HunkAction
    hunk: str | None = None
    file: Path | None = None
    change_set: str | None = None

    @property
    def target(self) -> str:
        """Target of the wish: the id of the hunk or of the change set, or the path of the file."""
        return self.hunk or self.change_set or str(self.file)


class ReviewResult(Value, frozen=True, kw_only=True):
    """Result of a wish."""

    request: ReviewRequest
    status: ReviewStatus
    why: str | None = None


class RejectedChange(Value, frozen=True, kw_only=True):
    """Something that was taken back."""

    file: FileReview
    """As it was before."""
    hunks: tuple[Hunk, ...]
    whole: bool


ChangeSetLookup: TypeAlias = Callable[[str], Callable[[FileReview], FileReview | None] | None]
WaitLookup: TypeAlias = Callable[[Path], Callable[[], Awaitable[object]] | None]


class _Batch(Struct, kw_only=True):
    """Wishes of one request, and their results so far."""

    wishes: Sequence[ReviewRequest]
    note: str | None
    outcomes: dict[int, ReviewResult] = msgspec.field(default_factory=dict)
    rejected: list[RejectedChange] = msgspec.field(default_factory=list)

    def answer(self, numbers: Iterable[int], status: ReviewStatus, why: str | None) -> None:
        """Note what became of wishes; of several hunks the worst counts."""
        for at in numbers:
            previous = self.outcomes.get(at)
            if previous is None or _WORSE[status] > _WORSE[previous.status]:
                self.outcomes[at] = ReviewResult(request=self.wishes[at], status=status, why=why)

    def worst(self, job: "_FileTask") -> ReviewStatus:
        """Return what became of a file, all in all."""
        numbers = {at for own in job.hunks.values() for at in own} | set(job.whole)
        found = {self.outcomes[at].status for at in numbers if at in self.outcomes}
        return "conflict" if "conflict" in found else "done" if found == {"done"} else "gone"

    def give_up(self, job: "_FileTask", status: ReviewStatus, why: str) -> None:
        """Answer what was not answered yet."""
        numbers = {at for own in job.hunks.values() for at in own} | set(job.whole)
        self.answer(numbers - self.outcomes.keys(), status, why)


_WORSE: Final[Mapping[ReviewStatus, int]] = {"done": 0, "gone": 1, "conflict": 2}


class _FileTask(Struct, kw_only=True):
    """Work on one file."""

    path: Path
    hunks: dict[str, list[int]] = msgspec.field(default_factory=dict)
    """Numbers of the wishes, by hunk."""
    whole: list[int] = msgspec.field(default_factory=list)
    """Numbers of the wishes that are about the whole file."""


class _Resolved(Struct, kw_only=True):
    """A file of which something is to be judged, as it is at that moment."""

    job: _FileTask
    now: FileReview
    verdict: HunkDecision | None
    """None: nothing of it is left to be judged."""
    trouble: str | None = None
    """Why it could not be done."""

    def answer(self, action: HunkAction, round_: _Batch) -> None:
        """Report what became of the wishes."""
        ids, whole = (self.verdict.hunks, self.verdict.whole) if self.verdict else ((), False)
        states = {one.id: one.state for one in self.now.hunks}
        for hunk, numbers in self.job.hunks.items():
            status = _status(action, states.get(hunk), done=hunk in ids, trouble=self.trouble)
            round_.answer(numbers, status, self.trouble)
        if self.job.whole and not self.job.hunks:
            nothing_left = self.now.whole is None
            status = _status(
                action, self.now.whole, done=whole or nothing_left, trouble=self.trouble
            )
            round_.answer(self.job.whole, status, self.trouble)


class ChangeReviewer:
    """Reviewer of changes: carries out people's decisions, one after the other."""

    def __init__(
        self,
        record: ChangeRecord,
        files: Callable[[], Files],
        *,
        reverter: Reverter,
        queue: QueuedRejections,
        clock: Clock,
        publish: Callable[[Event], object],
        checkpoint: Callable[[], Awaitable[object]],
        tell_model: Callable[[Sequence[RejectedChange], str | None], Awaitable[None]],
    ) -> None:
        """Begin.

        Args:
            record: Keeps what is decided.
            files: Those of the workspace, as they are now.
            reverter: Takes hunks back.
            queue: Keeps what must wait.
            clock: For the time of verdicts.
            publish: Tells events.
            checkpoint: Makes the checkpoint that takes a rejection back; awaited before something is taken out.
            tell_model: Lays words for the model aside.
        """
        self._record = record
        self._files = files
        self._reverter = reverter
        self._clock = clock
        self._publish = publish
        self._checkpoint = checkpoint
        self._tell_model = tell_model
        self._turn = Lock()
        self._queue = queue

    async def now(self, path: Path) -> FileReview | None:
        """Return a changed file as it is at this moment, in its editor or on the disk; None: the session never changed it."""
        found = await self.look(path)
        text = found.text if isinstance(found, FileText) else None
        return await self._record.at(path, text, is_there=found is not None)

    async def look(self, path: Path) -> FileText | FileBytes | None:
        """Read a file; None: nothing is there."""
        try:
            return await self._files().read(path)
        except WorkspaceError:
            # Nothing there, a folder, or the system says no: in any case nothing of the file's text is.
            return None

    async def all(self) -> tuple[FileReview, ...]:
        """Return all changed files as they are at this moment."""
        found = [await self.now(file.path) for file in await self._record.files()]
        return tuple(one for one in found if one is not None)

    async def decide(
        self,
        wishes: Sequence[ReviewRequest],
        *,
        note: str | None,
        sets: ChangeSetLookup,
        waits: WaitLookup,
    ) -> tuple[ReviewResult, ...]:
        """Do what people want, as far as it can be done.

        Args:
            wishes: In their order; of two about the same hunk the first counts.
            note: For the model.
            sets: Gives, for the id of a change set, what of a file belongs to it; None: there is no such set.
            waits: Gives what to wait for before something is taken out of a file; None: nothing.
        """
        round_ = _Batch(wishes=wishes, note=note)
        later: list[tuple[Callable[[], Awaitable[object]], _FileTask]] = []
        for action, jobs in groupby(await self._jobs(round_, sets), _action_of):
            at_once: list[_FileTask] = []
            for _, job in jobs:
                wait = waits(job.path) if action == "reject" else None
                if wait is None:
                    at_once.append(job)
                else:
                    later.append((wait, job))
            await self._do(action, at_once, round_)
        is_done = any(one.status == "done" for one in round_.outcomes.values())
        if round_.rejected or (note and is_done):
            await self._tell_model(round_.rejected, note)
            round_.rejected = []
        await self._do_later(later, round_)
        if round_.rejected:
            await self._tell_model(round_.rejected, note)
        return tuple(round_.outcomes[at] for at in range(len(wishes)))

    async def accept(self, path: Path, ids: Iterable[str], *, whole: bool, by: HunkDecider) -> None:
        """Write down that hunks of a file are accepted."""
        await self._record.judge(self._verdict(path, "accept", tuple(ids), whole=whole, by=by))

    async def take_up(self) -> Sequence[tuple[QueuedRejection, ReviewResult]]:
        """Do the rejections that waited for the end of a run when a process died; says what became of each."""
        ends: list[tuple[QueuedRejection, ReviewResult]] = []
        for queued in self._queue.take_left():
            wish = ReviewRequest(action="reject", file=queued.path)
            round_ = _Batch(wishes=(wish,), note=queued.note)
            hunks = {one: [0] for one in queued.hunks}
            job = _FileTask(path=queued.path, hunks=hunks, whole=[0] * queued.whole)
            await self._do("reject", [job], round_)
            if round_.rejected:
                await self._tell_model(round_.rejected, queued.note)
            outcome = round_.outcomes.get(0, ReviewResult(request=wish, status="gone"))
            await self._queue.settle(queued, outcome.status)
            ends.append((queued, outcome))
        return ends

    # ------------------------------------------------------------------ which hunks are meant

    async def _jobs(
        self, round_: _Batch, sets: ChangeSetLookup
    ) -> list[tuple[HunkAction, _FileTask]]:
        """Return the work to do, by action and file; answer a target that is unknown at once."""
        files = await self._record.files()
        jobs: dict[tuple[HunkAction, Path], _FileTask] = {}
        for at, wish in enumerate(round_.wishes):
            choose = sets(wish.change_set) if wish.change_set is not None else None
            found = [
                (file, ids) for file in files if (ids := _chosen(wish, file, choose)) is not None
            ]
            for file, ids in found:
                job = jobs.setdefault((wish.action, file.path), _FileTask(path=file.path))
                for one in ids:
                    job.hunks.setdefault(one, []).append(at)
                if wish.hunk is None:
                    job.whole.append(at)
            if not found:
                why = f"this session has no hunk, file or change set {wish.target[:200]!r}"
                round_.answer([at], "gone", why)
        return [(action, job) for (action, _), job in jobs.items()]

    # ------------------------------------------------------------------ doing it

    async def _do_later(
        self, later: Sequence[tuple[Callable[[], Awaitable[object]], _FileTask]], round_: _Batch
    ) -> None:
        """Do what must wait; written down before, for whoever asked may be gone by then, and so may this process."""
        queued = [
            await self._queue.put(job.path, job.hunks, whole=bool(job.whole), note=round_.note)
            for _, job in later
        ]
        for one, (wait, job) in zip(queued, later, strict=True):
            _ = await wait()
            await self._do("reject", [job], round_)
            await self._queue.settle(one, round_.worst(job))

    async def _do(self, action: HunkAction, jobs: Sequence[_FileTask], round_: _Batch) -> None:
        async with self._turn:
            due = [one for job in jobs if (one := await self._due(action, job, round_)) is not None]
            if action == "reject":
                await self._reject([one for one in due if one.verdict is not None], round_)
            else:
                for one in due:
                    if one.verdict is not None:
                        await self._record.judge(one.verdict)
        for one in due:
            one.answer(action, round_)

    async def _due(self, action: HunkAction, job: _FileTask, round_: _Batch) -> _Resolved | None:
        """Return what a file is at this moment, and what of it is to be judged."""
        now = await self.now(job.path)
        if now is None:
            round_.give_up(job, "gone", "the file is not known any more")
            return None
        ids = tuple(one.id for one in now.hunks if one.id in job.hunks and one.is_pending)
        whole = _whole(now, ids, is_named=bool(job.whole))
        if not ids and not whole:
            return _Resolved(job=job, now=now, verdict=None)
        verdict = self._verdict(job.path, action, ids, whole=whole, note=round_.note)
        return _Resolved(job=job, now=now, verdict=verdict)

    async def _reject(self, due: Sequence[_Resolved], round_: _Batch) -> None:
        rejections = [(one.now, one.verdict) for one in due if one.verdict is not None]
        if not rejections:
            return
        _ = await self._checkpoint()
        troubles = await self._reverter.revert_all(rejections, self.look)
        for one, (now, verdict), trouble in zip(due, rejections, troubles, strict=True):
            one.trouble = trouble
            if trouble is None:
                hunks = tuple(hunk for hunk in now.hunks if hunk.id in verdict.hunks)
                round_.rejected.append(RejectedChange(file=now, hunks=hunks, whole=verdict.whole))
                self._publish_rejected(now, hunks)

    def _verdict(
        self,
        path: Path,
        action: HunkAction,
        hunks: tuple[str, ...],
        *,
        whole: bool,
        by: HunkDecider = "user",
        note: str | None = None,
    ) -> HunkDecision:
        return HunkDecision(
            path=path,
            action=action,
            hunks=hunks,
            whole=whole,
            by=by,
            note=note,
            at_ms=self._clock.now_ms(),
        )

    def _publish_rejected(self, file: FileReview, hunks: Sequence[Hunk]) -> None:
        """Publish, for each edit, which of its hunks were rejected."""
        edits: dict[str, list[Hunk]] = {}
        for one in hunks:
            edits.setdefault(one.maker.edit, []).append(one)
        if not hunks and file.maker is not None:
            edits[file.maker.edit] = []
        for edit, own in edits.items():
            change = DocumentChange(
                path=file.path,
                status="refused",
                hunks=tuple(one.id for one in own) or None,
                why="the user rejected it",
            )
            call = own[0].maker.call if own else file.maker and file.maker.call
            _ = self._publish(
                EditRejected(run=None, edit=edit, call=call or None, documents=(change,))
            )


def check_requests(wishes: Sequence[ReviewRequest], note: str | None) -> None:
    """Check that decisions fit the limits.

    Raises:
        UsageError: The note is too long, or there are too many wishes.
    """
    if note is not None and (size := len(note.encode("utf-8", "surrogatepass"))) > MOST_NOTE_BYTES:
        message = f"the note has {size} bytes, at most {MOST_NOTE_BYTES} fit; shorten it, nothing was decided"
        raise UsageError(message)
    if len(wishes) > MOST_WISHES:
        message = f"{len(wishes)} decisions at once, at most {MOST_WISHES}; name a file or the change set instead"
        raise UsageError(message)


def _action_of(job: tuple[HunkAction, _FileTask]) -> HunkAction:
    return job[0]


def _chosen(
    wish: ReviewRequest, file: FileReview, choose: Callable[[FileReview], FileReview | None] | None
) -> Sequence[str] | None:
    """Return the hunks of a file that a wish is about; None: it is about another."""
    if wish.hunk is not None:
        return [wish.hunk] if any(one.id == wish.hunk for one in file.hunks) else None
    if wish.file is not None:
        return [one.id for one in file.hunks if one.is_pending] if file.path == wish.file else None
    part = None if choose is None else choose(file)
    return None if part is None else [one.id for one in part.hunks if one.is_pending]


def _whole(now: FileReview, ids: Sequence[str], *, is_named: bool) -> bool:
    """Return whether the file itself is meant: by name, or because it came or went with these hunks and nothing else."""
    is_left = any(one.id not in ids and one.state != "rejected" for one in now.hunks)
    if now.whole != "pending" or is_left:
        return False
    return is_named or (bool(ids) and now.op in {"add", "delete"})


def _status(
    action: HunkAction, state: str | None, *, done: bool, trouble: str | None
) -> ReviewStatus:
    if done:
        return "done" if trouble is None else "conflict"
    if state in {None, "orphaned"}:
        return "gone"
    if action == "reject":
        return "done" if state == "rejected" else "conflict"
    return "done" if state in {"accepted", "userEdited"} else "conflict"


CUSTOM_TYPE: Final = "tiller.review"
SHOWN_CHARS: Final = 2_000
"""How much of what was rejected is repeated; the model wrote it and can read the file."""
SHOWN_HUNKS: Final = 20


def rejection_message(rejected: Sequence[RejectedChange], note: str | None) -> str:
    """Return what was rejected, and what the user said to it."""
    if not rejected:
        return f"The user looked at your changes and notes: {note}"
    lines: list[str] = [
        "The user rejected some of your changes. They were taken out of the files again; do not make them again unasked."
    ]
    left = SHOWN_CHARS
    places = [(one, hunk) for one in rejected for hunk in one.hunks or (None,)]
    for one, hunk in places[:SHOWN_HUNKS]:
        location = _place(one, hunk)
        shown = "" if hunk is None or left <= 0 else _rows(hunk, left)
        left -= len(shown)
        lines.append(f"{location}{shown}")
    if len(places) > SHOWN_HUNKS:
        lines.append(f"- and {len(places) - SHOWN_HUNKS} more")
    if note:
        lines.append(f"The user's note: {note}")
    return "\n".join(lines)


def _place(one: RejectedChange, hunk: Hunk | None) -> str:
    file = one.file
    if one.whole:
        return f"- {file.path}: {_WHOLE[file.op]}"
    if hunk is None:
        return f"- {file.path}"
    return f"- {file.path}, line {_line(file, hunk)}"


def _line(file: FileReview, hunk: Hunk) -> int:
    return line_number0(file.text or "", hunk.start) + 1


def _rows(hunk: Hunk, limit: int) -> str:
    rows = [f"-{row}" for row in hunk.old.splitlines()] + [
        f"+{row}" for row in hunk.new.splitlines()
    ]
    text = "\n".join(rows)
    cut = f"{text[:limit]}\n… (shortened)" if len(text) > limit else text
    return f"\n{cut}"


_WHOLE: Final[Mapping[Op, str]] = {
    "add": "the new file was removed",
    "delete": "the deleted file is back",
    "move": "the file has its old name again",
    "modify": "the file is as it was before",
}


def build_reviewer(
    record: ChangeRecord,
    recorder: Recorder,
    deferred: DeferredMessages,
    workspace: WorkspaceContext,
    *,
    clock: Clock,
    publish: Callable[[Event], object],
    checkpoint: Callable[[], Awaitable[object]],
) -> ChangeReviewer:
    """Build it; files are those of the workspace at each use."""

    def recorded(author: ChangeOrigin) -> RecordedFiles:
        # What the agent may change is no question here: a person takes back what they see.
        return RecordedFiles(
            workspace.workspace.files, record, author=author, publish=publish, now_ms=clock.now_ms
        )

    def new_id() -> str:
        return uuid7(clock.now_ms())

    async def at(path: Path, text: str | None) -> FileReview | None:
        return await record.at(path, text, is_there=text is not None)

    async def tell_model(rejected: Sequence[RejectedChange], note: str | None) -> None:
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=rejection_message(rejected, note)),),
            # Events have told people already.
            display=False,
            details={"files": [str(one.file.path) for one in rejected]},
            at_ms=clock.now_ms(),
        )
        await deferred.accept(message, flush_at="prompt")

    return ChangeReviewer(
        record,
        lambda: workspace.workspace.files,
        reverter=Reverter(
            recorded,
            at=at,
            new_id=new_id,
            raw=lambda: workspace.raw,
            contents=record.contents,
        ),
        queue=QueuedRejections(recorder, clock=clock, new_id=new_id),
        clock=clock,
        publish=publish,
        checkpoint=checkpoint,
        tell_model=tell_model,
    )
