"""Work-done progress: the display of long work in a client without an extension."""

from collections.abc import Callable
from typing import Final, TypeAlias

from tiller_server.lsp.transport.outbox import Lane

ProgressToken: TypeAlias = int | str

Notify: TypeAlias = Callable[[str, dict[str, object], Lane], bool]


class WorkDone:
    """One line of progress in the client: begin, reports, end."""

    def __init__(
        self, token: ProgressToken, *, notify: Notify, on_end: Callable[[ProgressToken], None]
    ) -> None:
        self.token: Final = token
        self._notify = notify
        self._on_end = on_end
        self._has_ended = False

    def begin(self, title: str, *, message: str | None = None, cancellable: bool = False) -> None:
        """Show the line."""
        value: dict[str, object] = {"kind": "begin", "title": title, "cancellable": cancellable}
        self._send(value, message, Lane.CONTROL)

    def report(self, message: str) -> None:
        """Change the text; left out when the client reads too slowly to see it."""
        self._send({"kind": "report"}, message, Lane.DELTA)

    def end(self, message: str | None = None) -> None:
        """End the progress in the client. Later calls send nothing."""
        self._send({"kind": "end"}, message, Lane.CONTROL)
        self._has_ended = True
        self._on_end(self.token)

    def _send(self, value: dict[str, object], message: str | None, lane: Lane) -> None:
        if self._has_ended:
            return
        if message is not None:
            value["message"] = message
        self._notify("$/progress", {"token": self.token, "value": value}, lane)


class WorkDoneTokens:
    """The progress that is being shown, by token. A token is forgotten when it ends."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._on_cancel: dict[ProgressToken, Callable[[], None]] = {}

    def __contains__(self, token: ProgressToken) -> bool:
        return token in self._on_cancel

    def open(self, token: ProgressToken, *, on_cancel: Callable[[], None]) -> WorkDone:
        """Return the progress of a token that the client knows.

        Args:
            token: One that the client minted, or has accepted.
            on_cancel: Called each time the user asks to cancel it.
        """
        self._on_cancel[token] = on_cancel
        return WorkDone(token, notify=self._notify, on_end=self._forget)

    def cancel(self, token: ProgressToken) -> None:
        """Pass on that the user cancelled; unknown tokens are nobody's."""
        on_cancel = self._on_cancel.get(token)
        if on_cancel is not None:
            on_cancel()

    def _forget(self, token: ProgressToken) -> None:
        self._on_cancel.pop(token, None)
