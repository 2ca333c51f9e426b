"""One session that is talked in: lines go in, events are shown, questions are answered, until the user leaves it."""

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from time import monotonic
from typing import Final, Literal, Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agent_core.channels import serve_channel
from agent_core.events import UiTitle
from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value
from agent_core.messages import UserContent
from agent_core.resources.offers import SlashInvocation, slashed
from tiller_server.cli.chat.context import ChatLineOutcome, ChatSession, Refill, Switch
from tiller_server.cli.chat.line_input import LineKind
from tiller_server.cli.chat.status import mode_line
from tiller_server.cli.exit_codes import FAILED, INTERRUPTED, TERMINATED
from tiller_server.cli.run.mention_reader import MentionReader, page_urls
from tiller_server.cli.terminal.live_view import LiveView
from tiller_server.cli.terminal.permission_prompt import AnswerChoice, TerminalChannel
from tiller_server.cli.terminal.pictures import PastedPicture
from tiller_server.cli.terminal.run_renderer import DIM, RED, YELLOW
from tiller_server.cli.terminal.text import BOLD, nearest_name, one_line, safe, unknown_command

KeyAction = Literal["next mode", "to background"]
TICK_S: Final = 0.1
TWICE_S: Final = 2.0
"""A second Ctrl-C within this time quits."""
ENDINGS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class ChatPrompt(Value, frozen=True, kw_only=True):
    """Something to say."""

    text: str


class Shell(Value, frozen=True, kw_only=True):
    """A command of the user's own."""

    command: str
    exclude_from_context: bool
    """The model is not told of it."""


class UnknownChatCommand(Value, frozen=True, kw_only=True):
    """Begins as a command does, and is none."""

    name: str
    nearest: str | None


ChatLine = ChatPrompt | Shell | SlashInvocation | UnknownChatCommand


def meaning(line: str, *, ours: Iterable[str], theirs: Iterable[str]) -> ChatLine | None:
    """Return what a line means; None: it is blank.

    A line that begins with a blank is words, whatever follows.

    Args:
        line: As it was typed.
        ours: The commands of the conversation itself.
        theirs: Skills, templates and commands of extensions: words that the session looks after.
    """
    text = line.strip()
    if not text:
        return None
    if line[0].isspace():
        # The session would run a command that it knows.
        return ChatPrompt(text=f" {text}" if text.startswith("/") else text)
    if text.startswith("!"):
        return _shell(text)
    said = slashed(text)
    # A path is no command: `/etc/hosts is wrong`.
    if said is None or "/" in said.name:
        return ChatPrompt(text=text)
    return _command(said, text, ours=tuple(ours), theirs=tuple(theirs))


def _command(
    said: SlashInvocation, text: str, *, ours: Sequence[str], theirs: Sequence[str]
) -> ChatLine:
    if said.name in ours:
        return said
    if said.name in theirs:
        return ChatPrompt(text=text)
    return UnknownChatCommand(name=said.name, nearest=nearest_name(said.name, (*ours, *theirs)))


def _shell(text: str) -> ChatLine | None:
    command = text[2:] if text.startswith("!!") else text[1:]
    if not command.strip():
        return None
    return Shell(command=command.strip(), exclude_from_context=text.startswith("!!"))


class LineSource(Protocol):
    """Where lines come from."""

    async def read(self, text: str = "", *, kind: LineKind = "prompt") -> str:
        """Wait for a line, which begins with a text; EOFError and KeyboardInterrupt as at any terminal."""
        ...

    def take_input(self) -> str:
        """Empty the line that is being typed; returns what it held."""
        ...

    def put_back(self, text: str) -> None:
        """Insert a text before the current input."""
        ...

    def offer(self, choices: Sequence[AnswerChoice], marked: int, *, is_list: bool = False) -> None:
        """Show a menu above the line, or take it away; text that is typed filters a list."""
        ...

    def pictures(self, line: str) -> Sequence[PastedPicture]:
        """Return the pictures that were pasted into a line."""
        ...


class TypedAnswers:
    """Answers to the questions of a session, typed in the line of the conversation."""

    def __init__(self, lines: LineSource, view: LiveView) -> None:
        """Prepare it; `close` releases it."""
        self._lines = lines
        self._view = view
        self._typed, self._received = anyio.create_memory_object_stream[str](inf)
        self._questions = 0

    @property
    def is_asked(self) -> bool:
        """Whether the line that is typed answers a question."""
        return self._questions > 0

    def answer(self, line: str) -> None:
        """Send a line to the question that waits."""
        self._typed.send_nowait(line)

    async def serve(self, session: ChatSession) -> None:
        """Show the questions of a session and return what is typed to it, until cancelled."""
        write = self._view.interject
        channel = TerminalChannel(
            read_line=self._read, write_question=write, write_note=write, offer=self._lines.offer
        )
        await serve_channel(channel, session)

    def close(self) -> None:
        """Close the stream of answers."""
        self._typed.close()
        self._received.close()

    async def _read(self) -> str:
        """Read the answer to a question. A line that is being typed is set aside first and restored afterwards."""
        self._questions += 1
        unfinished_input = self._lines.take_input()
        try:
            line = await self._received.receive()
            if unfinished_input and not line.strip():
                # This Enter was on its way for the line that is gone.
                self._view.interject(
                    f"Your text comes back after this: {one_line(unfinished_input)}\n? "
                )
                line = await self._received.receive()
            # The line that was typed is taken away; what was decided stays to be read.
            self._view.tell(f"> {one_line(line)}".rstrip(), BOLD)
            return line
        finally:
            self._questions -= 1
            if unfinished_input:
                self._lines.put_back(unfinished_input)


class ChatLoop:
    """A conversation in one session."""

    def __init__(
        self,
        session: ChatSession,
        root: Path,
        view: LiveView,
        *,
        env: Mapping[str, str],
        set_title: Callable[[str], None],
        copy: Callable[[str], None],
    ) -> None:
        """Prepare it.

        Args:
            session: The session that is talked in.
            root: The workspace, in which the files of a prompt are looked for.
            view: Where events are shown.
            env: Environment that names the user's settings.
            set_title: Sets the title of the terminal; an empty one restores its own.
            copy: Copies a text to the clipboard of the terminal.
        """
        self._session = session
        self._mentions = MentionReader(root, env, self._warn)
        self._view = view
        self._set_title = set_title
        self._copy = copy
        self._answers: TypedAnswers | None = None
        self._stopping = False
        self._switch = Switch(request=None, code=TERMINATED)
        self._group: TaskGroup | None = None
        self._lines: LineSource | None = None

    async def run(self, lines: LineSource, *, text: str, prompt: str = "") -> Switch:
        """Process lines until the user wants another session, or none; `prompt` is sent first, `text` begins a line."""
        self._lines = lines
        with closing(TypedAnswers(lines, self._view)) as self._answers:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(self._show)
                group.start_soon(self._turn)
                group.start_soon(self._answers.serve, self._session)
                group.start_soon(self._watch)
                group.start_soon(self._follow)
                outcome = await self._fenced(prompt)
                if isinstance(outcome, Refill):
                    text = " ".join(filter(None, (outcome.text, text)))
                self._switch = (
                    outcome if isinstance(outcome, Switch) else await self._listen(lines, text)
                )
                group.cancel_scope.cancel()
        self._view.close()
        return self._switch

    @property
    def columns(self) -> int:
        """How wide what is told may be."""
        return self._view.screen.columns

    def tell(self, text: str, style: str = DIM) -> None:
        """Show something."""
        self._view.tell(text, style)

    def _warn(self, text: str) -> None:
        self.tell(text, YELLOW)

    def tell_markdown(self, text: str) -> None:
        """Show Markdown."""
        self._view.tell_markdown(text)

    def stop(self) -> None:
        """Stop what goes on, if something does."""
        if self._mentions.is_reading:
            self._mentions.cancel()
        elif self._group is not None and self._session.is_busy and not self._stopping:
            self._stopping = True
            self._group.start_soon(self._stop)

    async def choose(
        self, title: str, choices: Sequence[str], *, marked: int = 0
    ) -> str | int | None:
        """Ask the user to choose; return the index of a choice, other text that was typed, or None for neither."""
        width = len(str(len(choices)))
        rows = [
            AnswerChoice(str(number), f"{number:>{width}}  {safe(one)}")
            for number, one in enumerate(choices, 1)
        ]
        self.tell(f"{title} (arrows, number or text; Esc = cancel)")
        self._offer(rows, marked, is_list=True)
        typed = await self._read("answer")
        self._offer((), 0)
        if typed.isdecimal() and 0 < int(typed) <= len(choices):
            chosen = int(typed) - 1
            self.tell(f"> {one_line(choices[chosen])}", BOLD)
            return chosen
        return typed or None

    async def ask(self, title: str) -> str | None:
        """Ask for a text; None: the user cancelled."""
        self.tell(title)
        typed = await self._read("answer")
        self.tell(f"> {one_line(typed)}".rstrip(), BOLD)
        return typed or None

    async def ask_secret(self, title: str) -> str | None:
        """Ask for a text that is not shown and not kept in the history; None: the user cancelled."""
        self.tell(title)
        return await self._read("secret") or None

    async def _read(self, kind: LineKind) -> str:
        """Read an answer to a command; empty: the user cancelled."""
        if self._lines is not None:
            with suppress(EOFError, KeyboardInterrupt):
                return (await self._lines.read(kind=kind)).strip()
        return ""

    def to_clipboard(self, text: str) -> None:
        """Copy a text to the clipboard of the terminal's machine, if the terminal can do that."""
        self._copy(text)

    @property
    def is_asked(self) -> bool:
        """Whether the line that is typed answers a question."""
        return self._answers is not None and self._answers.is_asked

    def press(self, action: KeyAction) -> None:
        """Do what a key stands for, beside whatever goes on."""
        if self._group is not None:
            self._group.start_soon(
                self._next_mode if action == "next mode" else self._to_background
            )

    async def _to_background(self) -> None:
        try:
            _ = await self._session.run_command(self, "background", "move")
        except TillerError as error:
            self.tell(str(error), RED)

    async def _next_mode(self) -> None:
        try:
            self.tell(mode_line(await self._session.next_mode()))
        except TillerError as error:
            self.tell(str(error), RED)

    async def _stop(self) -> None:
        try:
            with suppress(TillerError):
                text = await self._session.stop()
                if text and self._lines is not None:
                    self._lines.put_back(text)
        finally:
            self._stopping = False

    async def _listen(self, lines: LineSource, text: str) -> Switch:
        interrupted_s = -inf
        while True:
            try:
                line = await lines.read(text)
            except EOFError:
                return Switch(request=None)
            except KeyboardInterrupt:
                last_s, interrupted_s = interrupted_s, monotonic()
                if (left := self._interrupted(interrupted_s - last_s)) is not None:
                    return left
                continue
            finally:
                text = ""
            if self._answers is not None and self._answers.is_asked:
                self._answers.answer(line)
                continue
            match await self._fenced(line):
                case Switch() as switch:
                    return switch
                case Refill(text=text):
                    pass
                case None:
                    pass

    def _interrupted(self, since_s: float) -> Switch | None:
        """Stop the run; return a switch when the run is stopping already, or when no run is active.

        Args:
            since_s: Seconds since the last interrupt; without a run only the second within `TWICE_S` ends the conversation.
        """
        if self._stopping:
            return Switch(request=None, code=INTERRUPTED)
        if not self._session.is_busy and not self._mentions.is_reading:
            if since_s <= TWICE_S:
                return Switch(request=None)
            self.tell("Press Ctrl-C again to quit.")
        self.stop()
        return None

    async def _fenced(self, line: str) -> ChatLineOutcome:
        """Run a line. An error is shown to the user; the key Up brings the line back."""
        meant = meaning(line, ours=self._session.commands, theirs=self._session.offered)
        if meant is None:
            return None
        try:
            return await self._do(meant)
        except TillerError as error:
            self.tell(str(error), RED)
            return None

    async def _do(self, meant: ChatLine) -> ChatLineOutcome:
        match meant:
            case ChatPrompt(text=text):
                if self._session.runs(text):
                    self.tell(f"> {text}")  # a command of an extension need not show anything
                pictures = () if self._lines is None else self._lines.pictures(text)
                return await self._prompt(text, pictures)
            case Shell():
                if self._group is not None:
                    self._group.start_soon(self._shell, meant)
            case UnknownChatCommand(name=name, nearest=nearest):
                self.tell(unknown_command(name, nearest, otherwise="See /help."), YELLOW)
            case _:
                return await self._session.run_command(self, meant.name, meant.arguments)
        return None

    async def _prompt(self, text: str, pictures: Sequence[PastedPicture]) -> Refill | None:
        """Send a prompt; with web pages it is sent when they are read, and the input goes on meanwhile."""
        if self._mentions.is_reading:
            self.tell("A web page is still being read. Ctrl-C or Esc stops that.", YELLOW)
            return Refill(text=text)
        content = await self._mentions.content(text, pictures)
        if self._group is None or not page_urls(text):
            await self._session.prompt(content)
        else:
            await self._group.start(self._prompt_with_pages, text, content)
        return None

    async def _prompt_with_pages(
        self, text: str, content: Sequence[UserContent], *, task_status: TaskStatus[None]
    ) -> None:
        try:
            pages = await self._mentions.pages(text, task_status.started)
            if pages is not None:
                await self._session.prompt((*content, *pages))
                return
            self.tell("The page was not read and the prompt was not sent.", YELLOW)
        except TillerError as error:
            self.tell(str(error), RED)
        if self._lines is not None:
            self._lines.put_back(text)

    async def _shell(self, shell: Shell) -> None:
        try:
            await self._session.run_shell(
                shell.command, exclude_from_context=shell.exclude_from_context
            )
        except TillerError as error:
            self.tell(str(error), RED)

    async def _show(self) -> None:
        reader = self._session.subscribe(partials=True)
        self._show_title()
        try:
            while events := await reader.take():
                for stamped in events:
                    self._view.see(stamped)
                    if isinstance(stamped.event, UiTitle):
                        self._show_title()
        finally:
            reader.close()
            self._set_title("")

    def _show_title(self) -> None:
        """Set the title that an extension gave last, or restore the terminal's own."""
        self._set_title(self._session.title)

    async def _follow(self) -> None:
        """Leave when the session is gone."""
        self.tell(await self._session.follow(), YELLOW)
        self._switch = Switch(request=None, code=FAILED)
        if self._group is not None:
            self._group.cancel_scope.cancel()

    async def _watch(self) -> None:
        """Leave when the process is asked to end, or its terminal is gone."""
        with anyio.open_signal_receiver(*ENDINGS) as signals:
            async for _ in signals:
                if self._group is not None:
                    self._group.cancel_scope.cancel()

    async def _turn(self) -> None:
        while True:
            self._view.tick()
            await anyio.sleep(TICK_S)

    def _offer(
        self, choices: Sequence[AnswerChoice], marked: int, *, is_list: bool = False
    ) -> None:
        if self._lines is not None:
            self._lines.offer(choices, marked, is_list=is_list)
