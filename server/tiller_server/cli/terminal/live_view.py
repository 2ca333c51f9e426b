"""Shows a run on a terminal: Markdown as it is written, tools as they run, and at the bottom what goes on and what it cost."""

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from agent_core.events import (
    BashEnded,
    BashOutput,
    BashStarted,
    Event,
    EventEnvelope,
    MessageDelta,
    MessageEnded,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    RunEnded,
    RunResult,
    ToolEnded,
    ToolOutputDelta,
    ToolRunning,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.kernel.visible_text import shown
from agent_core.messages import text_of
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.live_tools import BOLD, LiveTools
from tiller_server.cli.terminal.run_renderer import (
    DIM,
    GREEN,
    RED,
    TextOutput,
    around,
    summary,
    write_text,
)
from tiller_server.cli.terminal.status_area import Surface
from tiller_server.cli.terminal.status_line import StatusLine
from tiller_server.cli.terminal.text import clipped, styled


class LiveViewOptions(Value, frozen=True, kw_only=True):
    """Where each part of the output goes, and in which form."""

    colour: bool
    answer: TextOutput | None = None
    """Where the final answer goes too, as it is; None: nowhere, the terminal has it."""
    verbose: bool = False
    """Every whole answer goes there."""
    plain_side: TextOutput | None = None
    """Where everything around them goes instead; None: to the terminal."""
    you: Literal["shown", "hidden"] = "hidden"
    """Whether the user's own words are told, and each run's end: in a conversation they are."""


class LiveView(Struct, kw_only=True):
    """Words and everything around them on one terminal; or one of the two elsewhere."""

    screen: Surface
    status: StatusLine
    markdown: LiveMarkdown
    shape: LiveViewOptions
    location: Callable[[], str | None] = lambda: None
    _tools: LiveTools = msgspec.field(default_factory=LiveTools)
    _asked: set[str] = msgspec.field(default_factory=set)
    _wrote: Literal["nothing", "words", "side"] = "nothing"
    """Kind of the last output."""

    def begin(self, header: JsonObject) -> None:
        """Show which model answers where."""
        self.tell(f"{header.get('model') or 'no model'} in {header.get('cwd')}")

    def see(self, stamped: EventEnvelope) -> None:
        """Show an event; changes of the bottom lines alone are drawn at the next tick."""
        event = stamped.event
        self.status.see(event)
        match event:
            case MessageDelta(text=text, item=item):
                self.markdown.streamed.add(item)
                self._put(self.markdown.append(text))
            case MessageEnded():
                self._message(event)
            case BashStarted() | BashOutput() | BashEnded():
                for styled_line in self._tools.shell(event):
                    self.tell(*styled_line)
            case ToolRunning() | ToolOutputDelta() | ToolEnded():
                for styled_line in self._tools.tool(event):
                    self.tell(*styled_line)
            case _:
                self._around(event)

    def tick(self) -> None:
        """Draw the bottom anew: called some times a second, so that no word waits for the next."""
        if self._asked or not self.status.is_busy:
            self.screen.draw(())
            return
        note = [f"  {self._tools.note}"] if self._tools.note else []
        room = self.screen.columns - 1
        lines = (clipped(line, room) for line in (*note, self.status.line()))
        colour = self.shape.colour
        below = (styled(line, DIM, colour=colour) for line in lines)
        self.screen.draw((*self.markdown.tail(), *below))

    def interject(self, text: str) -> None:
        """Write a question, below which nothing is drawn until it is answered."""
        self.screen.close()
        if self.shape.plain_side is None:
            self.screen.above(text)
            return
        _ = self.shape.plain_side.write(text)
        _ = self.shape.plain_side.flush()

    def close(self) -> None:
        """Restore the terminal."""
        self.screen.close()

    def interim(self, text: str) -> None:
        """Write words that are not the final answer where they are wanted; the terminal has them."""
        if self.shape.answer is not None and self.shape.verbose:
            self.screen.close()
            write_text(self.shape.answer, text)

    def end(self, result: RunResult | None, answer: str) -> None:
        """Show what the run came to."""
        self._end_markdown()
        self.screen.close()
        if self.shape.answer is not None:
            write_text(self.shape.answer, answer)
        if result is None:
            return
        self._ended(result)
        location = self.location()
        if location is not None:
            self.tell(f"session: {location}")

    def tell(self, text: str, style: str = DIM) -> None:
        """Write something beside the words."""
        self._end_markdown()
        side = self.shape.plain_side
        if side is not None:
            _ = side.write(shown(text) + "\n")
            _ = side.flush()
            return
        gap = "\n" if self._wrote == "words" else ""
        self._wrote = "side"
        lines = (styled(one, style, colour=self.shape.colour) for one in shown(text).split("\n"))
        self.screen.above(gap + "".join(f"{line}\n" for line in lines))

    def _message(self, event: MessageEnded) -> None:
        match event:
            case MessageEnded(role="assistant", content=content, item=item):
                if item not in self.markdown.streamed:
                    self._put(self.markdown.append(text_of(content)))
                self._end_markdown()
            case MessageEnded(role="user", content=content) if self.shape.you == "shown":
                self.tell("> " + text_of(content[:1]).replace("\n", "\n  "), BOLD)
            case _:
                pass

    def _around(self, event: Event) -> None:
        match event:
            case PermissionRequested(request=request) | QuestionRequested(request=request):
                self._asked.add(request.request)
                self.screen.close()
            case PermissionResolved(request=request) | QuestionResolved(request=request):
                self._asked.discard(request)
            case RunEnded() if self.shape.you == "shown":
                if event.error is not None:
                    self.tell(f"{event.error.kind}: {event.error.message}", RED)
                self._ended(event)
            case _:
                if (notice := around(event)) is not None:
                    self.tell(*notice)

    def _ended(self, result: RunResult | RunEnded) -> None:
        style = GREEN if result.status == "completed" else RED
        self.tell(self.status.with_context(summary(result)), style)

    def _end_markdown(self) -> None:
        self._put(self.markdown.end())

    def _put(self, blocks: list[str]) -> None:
        for block in blocks:
            gap = "" if self._wrote == "nothing" else "\n"
            self._wrote = "words"
            self.screen.above(gap + block)
