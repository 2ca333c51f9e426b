"""Builds what takes the words of people on changes."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from agent_core.changes.history.hunk_tracker import FileNow
from agent_core.events import Event
from agent_core.kernel import Clock, uuid7
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.recorded_files import Author, RecordedFiles
from agent_core.session.changes.revert import TakingBack
from agent_core.session.changes.review import Rejected, Review
from agent_core.session.changes.review_messages import CUSTOM_TYPE, review_words
from agent_core.session.changes.review_queue import QueuedRejections
from agent_core.session.context import Place
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import Aside


def build_review(
    record: ChangeRecord,
    recorder: Recorder,
    aside: Aside,
    place: Place,
    *,
    clock: Clock,
    say: Callable[[Event], object],
    checkpoint: Callable[[], Awaitable[object]],
) -> Review:
    """Build it; files are those of the place at each use."""

    def recorded(author: Author) -> RecordedFiles:
        # What the agent may change is no question here: a person takes back what they see.
        return RecordedFiles(
            place.workspace.files, record, author=author, emit=say, now_ms=clock.now_ms
        )

    def new_id() -> str:
        return uuid7(clock.now_ms())

    async def at(path: Path, text: str | None) -> FileNow | None:
        return await record.at(path, text, is_there=text is not None)

    async def tell_model(rejected: Sequence[Rejected], note: str | None) -> None:
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=review_words(rejected, note)),),
            # Events have told people already.
            display=False,
            details={"files": [str(one.file.path) for one in rejected]},
            at_ms=clock.now_ms(),
        )
        await aside.accept(message, until="prompt")

    return Review(
        record,
        lambda: place.workspace.files,
        back=TakingBack(
            recorded,
            at=at,
            new_id=new_id,
            raw=lambda: place.raw,
            contents=record.contents,
        ),
        queue=QueuedRejections(recorder, clock=clock, new_id=new_id),
        clock=clock,
        say=say,
        checkpoint=checkpoint,
        tell_model=tell_model,
    )
