"""Follows a review for a client: its cost, the places of findings, and a line of progress that can cancel it."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec import Struct

from agent_core.events import EventEnvelope, Failure, RunEnded, ToolRunning
from agent_core.kernel import RunId
from agent_core.messages import Usage
from agent_core.session import AgentSession
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.transport.progress import ProgressToken, WorkDone
from tiller_server.review.options import ReviewCancellation


class ReviewProgress(Struct, kw_only=True):
    """Notes what a client is told of a review."""

    usage: Usage = msgspec.field(default_factory=Usage)
    run: RunId | None = None
    error: Failure | None = None
    lines: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict[str, "Sequence[str]"])
    session: AgentSession | None = None
    stop: ReviewCancellation = msgspec.field(default_factory=ReviewCancellation)
    """Ends it also between two of its runs."""
    line: WorkDone | None = None

    def opened(self, session: AgentSession) -> None:
        """Keep it, so that it can be stopped."""
        self.session = session

    def part(self, number: int, count: int) -> None:
        """Report the part under review; a number beyond the count is the summary."""
        if self.line is not None:
            is_last = number > count
            self.line.report("writing the summary" if is_last else f"part {number} of {count}")

    def see(self, stamped: EventEnvelope) -> None:
        """Report what it looks at, and add up what it costs."""
        match stamped.event:
            case ToolRunning(title=title) if self.line is not None:
                self.line.report(title)
            case RunEnded(run=run, usage=usage, error=error):
                self.run, self.error = run, error
                self.usage = self.usage.plus(usage.tokens)
            case _:
                pass

    def texts(self, lines: Mapping[str, Sequence[str]]) -> None:
        """Keep the lines to place findings in."""
        self.lines = lines


@contextmanager
def review_line(
    client: ConnectedClient, token: ProgressToken | None, watcher: ReviewProgress
) -> Generator[None]:
    """Show a line of progress; cancelling it ends the review with what there is."""
    if token is None:
        yield
        return

    async def abort() -> None:
        watcher.stop.asked = True
        if watcher.session is not None:
            _ = await watcher.session.abort()

    line = client.connection.protocol.work_done.open(
        token, on_cancel=lambda: client.host.start(abort, what="the end of a review")
    )
    line.begin("Review", cancellable=True)
    watcher.line = line
    try:
        yield
    finally:
        line.end()
