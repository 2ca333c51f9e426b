"""Separation of the final answer of a run from earlier text of the model and from the text of failed attempts."""

from msgspec import Struct

from agent_core.events import (
    Event,
    MessageEnded,
    RunEnded,
    RunResult,
    ToolRunning,
    TurnEnded,
    TurnStarted,
)
from agent_core.messages import text_of

BROKEN = "error"


class FinalAnswer(Struct):
    """The whole answer that nothing has followed so far."""

    _text: str = ""
    _status: str = "completed"

    def see(self, event: Event) -> str:
        """Follow an event; returns words that turn out not to be the final answer, empty if none do."""
        earlier = ""
        match event:
            case MessageEnded(role="assistant", content=content):
                earlier, self._text = self._text, text_of(content)
            case ToolRunning() | TurnStarted():
                earlier, self._text = self._text, ""
            case TurnEnded(stop_reason=reason) if reason == BROKEN:
                self._text = ""
            case RunEnded(status=status):
                self._status = status
            case _:
                pass
        return earlier

    def close(self, result: RunResult | None) -> tuple[str, str]:
        """Return the final answer and the text that is not part of it; a run that did not complete has no answer.

        Args:
            result: Result of the run; None: a command ran, which may have had runs of its own.
        """
        if self._status != "completed":
            return "", self._text
        return (self._text if result is None else result.text), ""
