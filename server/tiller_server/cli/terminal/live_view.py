"""Shows a run on a terminal: Markdown as it is written, tools as they run, and at the bottom what goes on and what it cost."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

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
    TaskEnded,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.text import PlainStream, one_line, shown
from agent_core.kernel.values import Value
from agent_core.messages import text_of
from tiller_server.cli.terminal.live_markdown import LiveMarkdown
from tiller_server.cli.terminal.run_renderer import (
    DIM,
    GREEN,
    MARKS,
    RED,
    YELLOW,
    TextOutput,
    around,
    merge_hint,
    summary,
    tool_line,
    write_text,
)
from tiller_server.cli.terminal.status_area import Surface
from tiller_server.cli.terminal.status_line import StatusLine
from tiller_server.cli.terminal.text import VERBATIM, clipped, styled, wrapped
from tiller_server.cli.terminal.tool_outputs import ToolOutputs

BOLD: Final = "1"
PLAIN: Final = "0"
KEPT_CHARS: Final = 1_000
StyledLine = tuple[str, str]
"""A line, and its style."""

MOST_LINES: Final = 16
MOST_ECHOED: Final = 10
"""Lines of a prompt."""
WRAPPED: Final = frozenset({DIM, YELLOW, RED, GREEN})
"""Styles of our own lines, as opposed to lines of files and commands."""
PLAN_HINT: Final = "The plan waits for your answer: /plan, or /plan TEXT to have it changed."
TODO_MARKS: Final[Mapping[str, StyledLine]] = {
    "pending": ("\N{BALLOT BOX}", PLAIN),
    "active": ("\N{BLACK RIGHT-POINTING TRIANGLE}", BOLD),
    "done": ("\N{BALLOT BOX WITH CHECK}", DIM),
    "cancelled": ("\N{MULTIPLICATION SIGN}", DIM),
}
"""Mark and style of a step by its status."""
ADDED: Final = "32"
REMOVED: Final = "31"
AROUND: Final = "2"


class _Running(Struct):
    title: str
    plain: PlainStream = msgspec.field(default_factory=PlainStream)
    end: str = ""


class _LiveTools(Struct):
    """Follows what runs."""

    note: str = ""
    """The last line with words of what grew or printed something last; empty when that is over."""
    outputs: ToolOutputs = msgspec.field(default_factory=ToolOutputs)
    _running: dict[str, _Running] = msgspec.field(default_factory=dict)
    _command: PlainStream = msgspec.field(default_factory=PlainStream)

    def tool(
        self, event: ToolInputDelta | ToolRunning | ToolOutputDelta | ToolEnded
    ) -> Iterator[StyledLine]:
        """Update the state from a tool event; yield the lines to show."""
        match event:
            case ToolInputDelta(partial=partial):
                if partial is not None:
                    self.note = _newest_line(partial)
            case ToolRunning(item=item, title=title):
                self._running[item] = _Running(title)
                self.note = ""
            case ToolOutputDelta(item=item, text=text):
                if (running := self._running.get(item)) is not None:
                    self.note = _last_line(running, text)
            case ToolEnded(item=item):
                self.note = ""
                running = self._running.pop(item, None)
                title = running.title if running else event.name
                below = [
                    *_changed_lines(event.details),
                    *_todo_lines(event.details),
                    *_view_lines(event.details),
                ]
                below = below or [*self.outputs.keep(event, title)]
                is_ok = event.status == "ok"
                # The last line of what a command put out says how it failed.
                headline = (
                    tool_line(event, title=title)
                    if is_ok or not below
                    else f"{MARKS[event.status]} {title}"
                )
                yield headline, DIM if is_ok else YELLOW
                for line, style in below:
                    yield f"  {line}", style

    def shell(self, event: BashStarted | BashOutput | BashEnded) -> Iterator[StyledLine]:
        """Update the state from an event of the user's own command; yield the lines to show."""
        match event:
            case BashStarted(command=command):
                self._command = PlainStream()
                yield f"$ {command}", BOLD
            case BashOutput(text=text):
                if lines := self._command.push(text).rstrip("\n"):
                    yield lines, PLAIN
            case BashEnded(cancelled=True):
                yield f"{MARKS['cancelled']} cancelled", YELLOW
            case BashEnded(exit_code=0):
                yield MARKS["ok"], DIM
            case BashEnded(exit_code=code):
                yield f"{MARKS['error']} exit code {code}", YELLOW


def quoted(text: str) -> str:
    """Return the user's words as they are echoed: of a long text the beginning."""
    lines = text.split("\n")
    left_out = len(lines) - MOST_ECHOED
    if left_out > 1:
        lines = [*lines[:MOST_ECHOED], f"… {left_out} more lines"]
    return "> " + "\n  ".join(lines)


def _last_line(running: _Running, text: str) -> str:
    running.end = (running.end + running.plain.push(text))[-KEPT_CHARS:]
    return _last_text_line(running.end)


def _last_text_line(text: str) -> str:
    lines = (one_line(line) for line in reversed(text.splitlines()))
    return next((line for line in lines if line), "")


def _newest_line(arguments: JsonObject) -> str:
    """Return the last line of the new text of a file, or of a command of several lines, that the model writes."""
    edits = arguments.get("edits")
    edit = as_object(edits[-1]) if isinstance(edits, list) and edits else arguments
    for key in ("content", "newText", "oldText"):
        if isinstance(text := edit.get(key), str):
            return f"{'-' if key == 'oldText' else '+'} {_last_text_line(text)}"
    command = as_text(arguments.get("command"))
    return _last_text_line(command) if "\n" in command else ""


def _changed_lines(details: JsonValue) -> Iterator[tuple[str, str]]:
    """Return the first lines of the difference that a tool tells, each with its colour; nothing when it tells none."""
    patch = details.get("patch") if is_object(details) else None
    if not isinstance(patch, str):
        return
    lines = [line for line in patch.splitlines() if not line.startswith(("---", "+++", "@@", "\\"))]
    for line in lines[:MOST_LINES]:
        yield line, _style(line)
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} more lines", AROUND


def _todo_lines(details: JsonValue) -> Iterator[StyledLine]:
    """Yield the lines of a list of steps that a tool kept; none when it is another tool's."""
    items = details.get("todo") if is_object(details) else None
    for one in items if isinstance(items, list) else ():
        status = one.get("status") if is_object(one) else None
        if is_object(one) and isinstance(status, str):
            mark, style = TODO_MARKS.get(status, TODO_MARKS["pending"])
            yield f"{mark} {one.get('text')}", style


def _view_lines(details: JsonValue) -> Iterator[StyledLine]:
    """Yield the lines of the views that an extension's tool has of its call and its result; none without views."""
    views = (
        [details[key] for key in ("call_view", "view") if key in details]
        if is_object(details)
        else ()
    )
    if not views:
        return
    from tiller_server.lsp.plain.chat.extension_output import view_text  # noqa: PLC0415 - few tools have one

    lines = [line for view in views for line in view_text(as_object(view)).splitlines()]
    for line in lines[:MOST_LINES]:
        yield one_line(line), DIM
    if len(lines) > MOST_LINES:
        yield f"… {len(lines) - MOST_LINES} more lines", AROUND


def _style(line: str) -> str:
    if line.startswith("+"):
        return ADDED
    return REMOVED if line.startswith("-") else AROUND


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
    _tools: _LiveTools = msgspec.field(default_factory=_LiveTools)
    _asked: set[str] = msgspec.field(default_factory=set)
    _wrote: Literal["nothing", "words", "side"] = "nothing"
    """Kind of the last output."""

    @property
    def shows_partials(self) -> bool:
        """Show them in the bottom lines."""
        return True

    def __post_init__(self) -> None:
        """Name the key for outputs where there is an input line."""
        self._tools.outputs.can_page = self.shape.you == "shown"
        self._tools.outputs.colour = self.shape.colour

    def begin(self, header: JsonObject) -> None:
        """Show which model answers where."""
        self.tell(f"{header.get('model') or 'without a model'} in {header.get('cwd')}")

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
            case ToolInputDelta() | ToolRunning() | ToolOutputDelta() | ToolEnded():
                for styled_line in self._tools.tool(event):
                    self.tell(*styled_line)
                if isinstance(event, ToolEnded):
                    self._plan(as_object(as_object(event.details).get("plan")))
            case _:
                self._around(event)

    def tick(self) -> None:
        """Draw the bottom anew: called some times a second, so that no word waits for the next."""
        if self._asked or not self.status.is_busy:
            self.screen.draw(())
            return
        note = [f"  {self._tools.note}"] if self._tools.note else []
        room = self.screen.columns - 1
        lines = (clipped(line, room) for line in (*note, self.status.line(), *self.status.queued()))
        colour = self.shape.colour
        below = (styled(line, DIM, colour=colour) for line in lines)
        self.screen.draw((*self.markdown.tail(), *below))

    def interject(self, text: str) -> None:
        """Write a question, below which nothing is drawn until it is answered; lines are broken between words."""
        self.screen.close()
        if self.shape.plain_side is None:
            rows = (
                row
                for line in text.split("\n")
                # A command or an edit is shown as it is: a break would be a character of it.
                for row in (
                    [line] if line.startswith(VERBATIM) else wrapped(line, self.screen.columns)
                )
            )
            self.screen.above("\n".join(rows))
            return
        _ = self.shape.plain_side.write(text)
        _ = self.shape.plain_side.flush()

    def page_outputs(self, env: Mapping[str, str], root: Path) -> None:
        """Show the outputs of the last tool calls in a pager, the newest last. Blocks until the user leaves it.

        Args:
            env: Environment of the pager.
            root: The workspace, in which no pager is looked for.
        """
        self._tools.outputs.page(env, root)

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
        rows = shown(text).split("\n")
        if style in WRAPPED:
            rows = [row for line in rows for row in wrapped(line, self.screen.columns)]
        lines = (styled(one, style, colour=self.shape.colour) for one in rows)
        self.screen.above(gap + "".join(f"{line}\n" for line in lines))

    def tell_markdown(self, text: str) -> None:
        """Write Markdown, as the words of the model are written."""
        self._end_markdown()
        self._put(self.markdown.append(f"{text}\n"))
        self._end_markdown()

    def _plan(self, plan: JsonObject) -> None:
        """Show a plan, and how it is answered."""
        markdown = as_text(plan.get("markdown"))
        if not markdown:
            return
        self.tell_markdown(markdown)
        if self.shape.you == "shown":
            self.tell(PLAN_HINT, BOLD)

    def _message(self, event: MessageEnded) -> None:
        match event:
            case MessageEnded(role="assistant", content=content, item=item):
                if item not in self.markdown.streamed:
                    self._put(self.markdown.append(text_of(content)))
                self._end_markdown()
            case MessageEnded(role="user", content=content) if self.shape.you == "shown":
                # A prompt begins a part of its own.
                self._wrote = "words"
                self.tell(quoted(text_of(content[:1])), BOLD)
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
                is_chat = self.shape.you == "shown"
                if is_chat and isinstance(event, TaskEnded) and (hint := merge_hint(event.task)):
                    self.tell(hint, GREEN)

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
