"""Builds what takes the words of people on changes."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from agent_core.changes.history.hunk_tracker import FileReview
from agent_core.events import Event
from agent_core.kernel import Clock, uuid7
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.recorded_files import ChangeOrigin, RecordedFiles
from agent_core.session.changes.revert import Reverter
from agent_core.session.changes.review import ChangeReviewer, RejectedChange
from agent_core.session.changes.review_messages import CUSTOM_TYPE, rejection_message
from agent_core.session.changes.review_queue import QueuedRejections
from agent_core.session.context import WorkspaceContext
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages


def build_review(
    record: ChangeRecord,
    recorder: Recorder,
    deferred: DeferredMessages,
    place: WorkspaceContext,
    *,
    clock: Clock,
    publish: Callable[[Event], object],
    checkpoint: Callable[[], Awaitable[object]],
) -> ChangeReviewer:
    """Build it; files are those of the place at each use."""

    def recorded(author: ChangeOrigin) -> RecordedFiles:
        # What the agent may change is no question here: a person takes back what they see.
        return RecordedFiles(
            place.workspace.files, record, author=author, publish=publish, now_ms=clock.now_ms
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
        lambda: place.workspace.files,
        reverter=Reverter(
            recorded,
            at=at,
            new_id=new_id,
            raw=lambda: place.raw,
            contents=record.contents,
        ),
        queue=QueuedRejections(recorder, clock=clock, new_id=new_id),
        clock=clock,
        publish=publish,
        checkpoint=checkpoint,
        tell_model=tell_model,
    )
