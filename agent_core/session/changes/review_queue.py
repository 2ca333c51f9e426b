"""Rejections that wait for the end of a run: written down, so that they outlive the process."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from agent_core.changes.decisions import QueuedRejection, encode_queued, encode_settled, queued_in
from agent_core.kernel import Clock
from agent_core.kernel.json import as_object
from agent_core.session.history.entries import REVIEW, review_entry
from agent_core.session.history.recorder import Recorder
from agent_core.transcript.entries import CustomEntry


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
        entries = recorder.transcript.entries
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
