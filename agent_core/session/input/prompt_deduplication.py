"""Deduplication of prompts: the ids that clients gave their messages are idempotency keys."""

from collections.abc import Mapping

import anyio

from agent_core.kernel import MessageId, RunId


class MessageIndex:
    """Registry of the run that each message started or joined; an id is known once the file has its message."""

    def __init__(self, runs: Mapping[MessageId, RunId | None] | None = None) -> None:
        self._runs = dict(runs or {})
        self._arriving: dict[MessageId, anyio.Event] = {}

    def run_of(self, message_id: MessageId) -> RunId | None:
        """Return the run of a message; None: its words wait for one that nobody knows yet."""
        return self._runs.get(message_id)

    async def is_recorded(self, message_id: MessageId | None) -> bool:
        """Return whether a message is known; while its words are being written, wait for the outcome."""
        if message_id is None:
            return False
        while (arriving := self._arriving.get(message_id)) is not None:
            await arriving.wait()
        return message_id in self._runs

    def begin(self, message_id: MessageId | None) -> None:
        """Report that words are about to be written; say `arrived` when that is over, however it went."""
        if message_id is not None:
            self._arriving[message_id] = anyio.Event()

    def end(self, message_id: MessageId | None) -> None:
        """Report that the words are written, after `record`, or could not be."""
        if message_id is not None:
            self._arriving.pop(message_id).set()

    def record(self, message_id: MessageId | None, run: RunId | None) -> None:
        """Record the run that a message began or joined."""
        if message_id is not None:
            self._runs[message_id] = run


def retry_id(run: RunId) -> MessageId:
    """Return the id under which the retry of a run is known: a run is retried once."""
    return MessageId(f"tiller.retry:{run}")
