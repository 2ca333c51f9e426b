"""The line at the bottom of a conversation: typed while other things are written above it."""

import os
import re
import signal
import sys
from base64 import b64encode
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from anyio import to_thread
from typing_extensions import override

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from tiller_server.cli.terminal.choice_menu import ChoiceMenu
from tiller_server.cli.terminal.extension_keys import ExtensionKeys
from tiller_server.cli.terminal.permission_prompt import AnswerChoice
from tiller_server.cli.terminal.pictures import PastedPicture, ReadPicture, pasted_picture
from tiller_server.cli.terminal.status_area import terminal_size

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import ANSI
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, KeyPressEvent

REFRESH_S: Final = 0.1
WRITE_S: Final = 0.02
"""How long what is written above the line is gathered."""
ESC_S: Final = 0.05
"""How long after Esc another key belongs to it."""
MOST_FILES: Final = 200
MENU_LINES: Final = 8
FOLDED_LINES: Final = 10
FOLDED_CHARS: Final = 1_000
"""A paste that is longer than one of these stands in the line as a mark, and is sent whole."""
PRIVATE: Final = 0o600
PROMPT: Final = "> "
# xterm's title stack, which other terminals took over; one that does not know it ignores both.
SAVE_TITLE: Final = "\x1b[22;0t"
RESTORE_TITLE: Final = "\x1b[23;0t"
MOST_TITLE: Final = 200
_MARK: Final = re.compile(r"\[(?:Pasted [\d,]+ (?:lines|characters)|Picture) #\d+\]$")
_COMMAND: Final = re.compile(r"/\S+")
_MENU: Final = re.compile(r"/\S*|/(model|think|permission) .*|(.*\s)?@\S*", re.DOTALL)

LineKind = Literal["prompt", "answer", "secret"]
"""Kind of a line: an answer is not kept in the history, and a secret is not shown either."""


class LineSuggestion(Protocol):
    """A line that could follow from the one that is typed."""

    @property
    def line(self) -> str:
        """The whole line."""
        ...

    @property
    def label(self) -> str:
        """How the menu names it."""
        ...

    @property
    def about(self) -> str:
        """A description for the menu; can be empty."""
        ...


LineCompleter = Callable[[str], Iterable[LineSuggestion]]
"""Returns the completions of a line. Blocking; called in a thread."""


class ChatKeys(Value, frozen=True, kw_only=True):
    """Actions of the keys of a conversation that do not edit the line."""

    stop: Callable[[], None]
    """Esc."""
    next_mode: Callable[[], None]
    """Shift-Tab."""
    to_background: Callable[[], None]
    """Ctrl-B."""
    show_output: Callable[[], None]
    """Ctrl-O; the terminal is free to be used."""
    read_picture: ReadPicture
    """Ctrl-V; blocking, called in a thread."""
    tell: Callable[[str], None]
    """Shows why a key had no effect."""
    extensions: ExtensionKeys
    """Keys of extensions; the keys above go before them."""


class PromptSurface:
    """The part of the terminal above the line that is typed."""

    def __init__(self) -> None:
        self._drawn: Sequence[str] = ()
        self._is_titled = False

    @property
    def columns(self) -> int:
        """How wide it is now."""
        return terminal_size()[0]

    @property
    def lines(self) -> int:
        """How high it is now; the line itself and the one below it need their room."""
        return max(terminal_size()[1] - 2, 1)

    @property
    def drawn(self) -> Sequence[str]:
        """The lines that stand right above the one that is typed."""
        return self._drawn

    def above(self, text: str) -> None:
        """Write what stays."""
        # A line without its end would wait for it.
        _ = sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()

    def title(self, text: str) -> None:
        """Set the title of the terminal, without control characters; empty: restore the one it had before."""
        title = "".join(char for char in text if char.isprintable())[:MOST_TITLE]
        order = "" if self._is_titled else SAVE_TITLE
        order = f"{order}\x1b]2;{title}\x07" if title else RESTORE_TITLE * self._is_titled
        self._is_titled = bool(title)
        _ = sys.stdout.write(order)
        sys.stdout.flush()

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard by the escape sequence OSC 52, which terminals that forbid it ignore."""
        _ = sys.stdout.write(f"\x1b]52;c;{b64encode(text.encode()).decode()}\x07")
        sys.stdout.flush()

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines from the next moment on."""
        self._drawn = tuple(lines)[-self.lines :]

    def close(self) -> None:
        """Show none."""
        self._drawn = ()


class ChatInput:
    """Reads lines, with a history, completion and keys."""

    def __init__(
        self,
        surface: PromptSurface,
        *,
        history: Path,
        complete: LineCompleter,
        below: Callable[[], str],
        keys: ChatKeys,
        is_asked: Callable[[], bool],
    ) -> None:
        """Create the prompt session.

        Args:
            surface: Surface above the input line.
            history: File with the lines typed before; created when it is missing.
            complete: Returns the completions of a line.
            below: Returns the line below the input line.
            keys: Actions of keys.
            is_asked: Returns whether the line answers a question, which is not kept in the history.
        """
        self._surface = surface
        self._kind: LineKind = "prompt"
        self._pastes: list[str] = []
        self._pictures: list[PastedPicture] = []
        self._menu = ChoiceMenu()
        self._session = _session(
            message=self._message,
            history=_history(
                history, keeps=lambda: self._kind == "prompt" and not is_asked(), whole=self._whole
            ),
            completer=_completer(complete),
            below=below,
            keys=_keys(
                keys,
                fold=self._folded,
                add=self._added,
                takes_picture=lambda: self._kind == "prompt",
                menu=self._menu,
            ),
        )

    async def read(self, text: str = "", *, kind: LineKind = "prompt") -> str:
        """Wait for a line, which begins with a text.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C.
        """
        self._kind = kind
        try:
            line = await self._session.prompt_async(
                default=text, handle_sigint=False, is_password=kind == "secret"
            )
        finally:
            self._kind = "prompt"
        return self._whole(line)

    def take_input(self) -> str:
        """Empty the line that is being typed; returns what it held."""
        text = self._session.default_buffer.text
        self._session.default_buffer.reset()
        return text

    def put_back(self, text: str) -> None:
        """Insert a text before the current input."""
        line = self._session.default_buffer
        line.text = f"{text} {line.text}" if line.text else text
        line.cursor_position = len(line.text)

    def offer(self, choices: Sequence[AnswerChoice], marked: int, *, is_list: bool = False) -> None:
        """Show a menu above the line. No choices: take the menu away.

        Args:
            choices: Its rows.
            marked: Index of the row that is marked at first.
            is_list: Typed text filters the rows, and Esc cancels; else the keys work while the line is empty.
        """
        self._menu.open(choices, marked, is_list=is_list)
        self._session.app.invalidate()

    def written(self) -> AbstractContextManager[None]:
        """Return a context in which standard output is written above the input line."""
        return _written()

    def _message(self) -> "ANSI":
        from prompt_toolkit.formatted_text import ANSI  # noqa: PLC0415 - see `_session`

        typed = self._session.default_buffer.text
        rows = (*self._surface.drawn, *self._menu.shown(typed, self._surface.columns - 1))
        return ANSI("".join(f"{line}\n" for line in rows) + PROMPT)

    def _folded(self, pasted: str) -> str:
        """Return what a paste adds to the line: a long one, or a picture whose path it is, is kept behind a mark."""
        if self._kind == "prompt" and (picture := pasted_picture(pasted)) is not None:
            return self._added(picture)
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= FOLDED_LINES and len(text) <= FOLDED_CHARS:
            return text
        self._pastes.append(text)
        return _mark(len(self._pastes), text)

    def _added(self, picture: PastedPicture) -> str:
        """Keep a picture; return the mark that stands for it."""
        self._pictures.append(picture)
        return _picture_mark(len(self._pictures))

    def pictures(self, line: str) -> Sequence[PastedPicture]:
        """Return the pictures whose marks a line holds."""
        numbered = enumerate(self._pictures, 1)
        return [one for number, one in numbered if _picture_mark(number) in line]

    def _whole(self, line: str) -> str:
        """Return a line with the pastes in place of their marks."""
        for number, text in enumerate(self._pastes, 1):
            line = line.replace(_mark(number, text), text)
        return line


def _mark(number: int, text: str) -> str:
    lines = text.count("\n") + 1
    size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
    return f"[Pasted {size} #{number}]"


def _picture_mark(number: int) -> str:
    return f"[Picture #{number}]"


def _session(
    *,
    message: Callable[[], "ANSI"],
    history: "History",
    completer: "Completer",
    below: Callable[[], str],
    keys: "KeyBindingsBase",
) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - 140 ms
    from prompt_toolkit.filters import Condition  # noqa: PLC0415 - see above
    from prompt_toolkit.input import Input  # noqa: PLC0415 - see above
    from prompt_toolkit.shortcuts import CompleteStyle  # noqa: PLC0415 - see above
    from prompt_toolkit.styles import Style  # noqa: PLC0415 - see above

    def offers_menu() -> bool:
        # Room for the menu is made only where it can appear.
        return _MENU.fullmatch(prompt.default_buffer.document.text_before_cursor) is not None

    prompt: PromptSession[str] = PromptSession(
        message,
        history=history,
        completer=completer,
        complete_while_typing=Condition(offers_menu),
        complete_in_thread=True,
        complete_style=CompleteStyle.COLUMN,
        bottom_toolbar=below,
        key_bindings=keys,
        refresh_interval=REFRESH_S,
        reserve_space_for_menu=MENU_LINES,
        erase_when_done=True,
        style=Style.from_dict(
            {
                "bottom-toolbar": "noreverse",
                "bottom-toolbar.text": "ansigray",
                "completion-menu": "bg:default fg:default",
                "completion-menu.completion.current": "reverse",
                "completion-menu.meta.completion": "bg:default fg:ansigray",
                "completion-menu.meta.completion.current": "reverse",
            }
        ),
    )
    # An Esc that waits longer takes the next key for Alt and that key; a terminal sends both of Alt at once.
    prompt.app.ttimeoutlen = prompt.app.timeoutlen = ESC_S
    # While something is written above the line the library gives the terminal back its own ways: what is typed in that
    # moment would stand there twice, and Ctrl-D and Ctrl-C would go lost.
    terminal: Input = prompt.app.input
    terminal.cooked_mode = nullcontext
    return prompt


def _history(path: Path, *, keeps: Callable[[], bool], whole: Callable[[str], str]) -> "History":
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415 - see above

    class Kept(FileHistory):
        @override
        def append_string(self, string: str) -> None:
            if keeps():
                super().append_string(whole(string))

        @override
        def store_string(self, string: str) -> None:
            if not string.startswith(" "):  # as shells do: what nobody is to find again
                super().store_string(string)

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE))
    return Kept(str(path))


def _completer(complete: LineCompleter) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415 - see above

    class Lines(Completer):
        @override
        def get_completions(
            self, document: "Document", complete_event: "CompleteEvent"
        ) -> "Iterable[Completion]":
            _ = complete_event
            typed = document.text_before_cursor
            for one in complete(typed):
                yield Completion(
                    one.line,
                    start_position=-len(typed),
                    display=one.label,
                    display_meta=one.about,
                )

    return Lines()


def _keys(
    does: ChatKeys,
    *,
    fold: Callable[[str], str],
    add: Callable[[PastedPicture], str],
    takes_picture: Callable[[], bool],
    menu: ChoiceMenu,
) -> "KeyBindingsBase":
    from prompt_toolkit.filters import Condition, completion_is_selected, has_completions  # noqa: PLC0415 - see above
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings  # noqa: PLC0415 - see above
    from prompt_toolkit.keys import Keys  # noqa: PLC0415 - see above

    keys = KeyBindings()

    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    def close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def paste(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(fold(event.data))

    def complete(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    def edit(event: KeyPressEvent) -> None:
        _ = event.current_buffer.open_in_editor()  # of $VISUAL or $EDITOR

    _add_menu_keys(keys, menu)
    _add_typing_keys(keys)
    _ = keys.add("c-v", filter=Condition(takes_picture))(_picture_action(does, add))
    _ = keys.add("enter", filter=completion_is_selected)(take)
    _ = keys.add("escape", filter=has_completions, eager=True)(close_menu)
    _ = keys.add("escape", "enter")(newline)
    _ = keys.add(Keys.BracketedPaste)(paste)
    _ = keys.add("tab")(complete)
    _ = keys.add("c-g")(edit)
    for name, act in _actions(does).items():
        _ = keys.add(name, filter=~has_completions)(act)
    # The last binding of a key wins.
    return merge_key_bindings([does.extensions.bindings(), keys])


def _picture_action(
    does: ChatKeys, add: Callable[[PastedPicture], str]
) -> "Callable[[KeyPressEvent], None]":
    """Return what adds the picture of the clipboard to the line."""

    async def attach(line: "Buffer") -> None:
        try:
            line.insert_text(add(await to_thread.run_sync(does.read_picture)))
        except UsageError as error:
            does.tell(str(error))

    def act(event: "KeyPressEvent") -> None:
        _ = event.app.create_background_task(attach(event.current_buffer))

    return act


def _add_menu_keys(keys: "KeyBindings", menu: ChoiceMenu) -> None:
    """Bind the arrow keys to the mark of a menu, Enter to the marked row, and Esc to leave a list."""
    from prompt_toolkit.application import get_app  # noqa: PLC0415 - see `_session`
    from prompt_toolkit.filters import Condition  # noqa: PLC0415 - see above

    def up(event: "KeyPressEvent") -> None:
        menu.move(-1, event.current_buffer.text)

    def down(event: "KeyPressEvent") -> None:
        menu.move(1, event.current_buffer.text)

    def choose(event: "KeyPressEvent") -> None:
        line = menu.line(event.current_buffer.text)
        if line is not None:
            event.current_buffer.text = line
        event.current_buffer.validate_and_handle()

    def cancel(event: "KeyPressEvent") -> None:
        event.current_buffer.text = ""
        event.current_buffer.validate_and_handle()

    is_list = Condition(lambda: menu.is_list)
    is_open = Condition(lambda: menu.is_open and not get_app().current_buffer.text) | is_list
    # An Enter that was on its way for another line must not answer a question.
    is_meant = Condition(lambda: menu.is_moved) | is_list
    _ = keys.add("up", filter=is_open)(up)
    _ = keys.add("down", filter=is_open)(down)
    _ = keys.add("enter", filter=is_open & is_meant)(choose)
    _ = keys.add("escape", filter=is_list, eager=True)(cancel)


def _add_typing_keys(keys: "KeyBindings") -> None:
    """Bind Backspace to a whole mark before the cursor, and Enter to the first of the commands that are offered."""
    from prompt_toolkit.application import get_app  # noqa: PLC0415 - see `_session`
    from prompt_toolkit.filters import Condition, completion_is_selected, has_completions  # noqa: PLC0415 - see above

    def erase_mark(event: "KeyPressEvent") -> None:
        found = _MARK.search(event.current_buffer.document.text_before_cursor)
        _ = event.current_buffer.delete_before_cursor(len(found[0]) if found else event.arg)

    def choose_command(event: "KeyPressEvent") -> None:
        state = event.current_buffer.complete_state
        if state is not None and state.completions:
            event.current_buffer.apply_completion(state.completions[0])
            if len(state.completions) == 1:
                event.current_buffer.validate_and_handle()

    def is_part_of_command() -> bool:
        buffer = get_app().current_buffer
        state = buffer.complete_state
        texts = [buffer.text] if state is None else [one.text for one in state.completions]
        return _COMMAND.fullmatch(buffer.text) is not None and buffer.text not in texts

    part = has_completions & ~completion_is_selected & Condition(is_part_of_command)
    _ = keys.add("backspace")(erase_mark)
    _ = keys.add("enter", filter=part)(choose_command)


def _actions(does: ChatKeys) -> Mapping[str, "Callable[[KeyPressEvent], None]"]:
    """Return what keys do that do not edit the line."""
    from prompt_toolkit.application import run_in_terminal  # noqa: PLC0415 - see above

    def stop(event: "KeyPressEvent") -> None:
        _ = event
        does.stop()

    def next_mode(_: "KeyPressEvent") -> None:
        does.next_mode()

    def to_background(_: "KeyPressEvent") -> None:
        does.to_background()

    def suspend(event: "KeyPressEvent") -> None:
        _ = event, run_in_terminal(_suspended)

    def output(event: "KeyPressEvent") -> None:
        _ = event, run_in_terminal(does.show_output)

    return {
        "escape": stop,
        "s-tab": next_mode,
        "c-b": to_background,
        "c-z": suspend,
        "c-o": output,
    }


def _complete(buffer: "Buffer") -> None:
    """Select the next row of the menu; without one, insert what all completions begin with."""
    from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix  # noqa: PLC0415 - see above

    if buffer.complete_state is not None and len(buffer.complete_state.completions) > 1:
        buffer.complete_next()
        return
    # At once: a completion in the background would be dropped while the one for the last key is under way.
    asked = CompleteEvent(completion_requested=True)
    found = list(buffer.completer.get_completions(buffer.document, asked))
    if len(found) == 1:
        buffer.apply_completion(found[0])
    elif common := get_common_complete_suffix(buffer.document, found):
        buffer.insert_text(common)
    else:
        buffer.start_completion(select_first=True)


def _suspended() -> None:
    """Stop the processes of this terminal job until the shell continues it."""
    if hasattr(signal, "SIGTSTP"):
        import termios  # noqa: PLC0415 - not on Windows

        number = sys.stdin.fileno()
        now = termios.tcgetattr(number)
        plain = [*now]
        plain[0] = now[0] | termios.ICRNL
        plain[3] = now[3] | termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN
        termios.tcsetattr(number, termios.TCSANOW, plain)
        os.killpg(0, signal.SIGTSTP)
        termios.tcsetattr(number, termios.TCSANOW, now)


@contextmanager
def _written() -> Generator[None]:
    from prompt_toolkit.patch_stdout import StdoutProxy  # noqa: PLC0415 - see above

    with (
        _keys_kept(),
        StdoutProxy(sleep_between_writes=WRITE_S, raw=True) as proxy,
        redirect_stdout(proxy),
    ):
        yield


@contextmanager
def _keys_kept() -> Generator[None]:
    """Disable echo, line editing and signal keys of the terminal: input stays unread until the next line is read.

    Between two lines the library restores the terminal's own mode. In that mode input would be echoed twice, Ctrl-D
    would be lost and Ctrl-C would end the process.
    """
    import termios  # noqa: PLC0415 - not on Windows, where nothing is done meanwhile

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    quiet = [*before]
    quiet[0] = before[0] & ~termios.ICRNL
    quiet[3] = before[3] & ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    termios.tcsetattr(number, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSANOW, before)


def paths_after(head: str, typed: str, *, root: Path) -> list[str]:
    """Return the ways in which a line goes on that holds the beginning of a path behind its head. Blocking."""
    folder, _, name = typed.rpartition("/")
    try:
        found = sorted(os.scandir(root / folder), key=lambda one: one.name)
    except OSError:
        return []
    shown = [one for one in found if one.name.startswith(name) and (name or one.name[0] != ".")][
        :MOST_FILES
    ]
    prefix = typed[: len(typed) - len(name)]
    return [f"{head}{prefix}{one.name}{'/' if one.is_dir() else ''}" for one in shown]
