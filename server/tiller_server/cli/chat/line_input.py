"""The line at the bottom of a conversation: typed while other things are written above it."""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from tiller_server.cli.terminal.status_area import terminal_size

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import ANSI
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

REFRESH_S: Final = 0.1
WRITE_S: Final = 0.02
"""How long what is written above the line is gathered."""
MOST_FILES: Final = 200
PRIVATE: Final = 0o600
PROMPT: Final = "> "
# xterm's title stack, which other terminals took over; one that does not know it ignores both.
SAVE_TITLE: Final = "\x1b[22;0t"
RESTORE_TITLE: Final = "\x1b[23;0t"
MOST_TITLE: Final = 200

LineCompleter = Callable[[str], Iterable[str]]
"""Returns the completions of a line, as whole lines."""


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
        on_escape: Callable[[], None],
    ) -> None:
        """Create the prompt session.

        Args:
            surface: Surface above the input line.
            history: File with the lines typed before; created when it is missing.
            complete: Returns the completions of a line.
            below: Returns the line below the input line.
            on_escape: Called on the key Escape.
        """
        self._surface = surface
        self._session = _session(
            message=self._message,
            history=_history(history),
            completer=_completer(complete),
            below=below,
            keys=_keys(on_escape),
        )

    async def read(self, text: str = "") -> str:
        """Wait for a line, which begins with a text.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C.
        """
        return await self._session.prompt_async(default=text, handle_sigint=False)

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

    def written(self) -> AbstractContextManager[None]:
        """Return a context in which standard output is written above the input line."""
        return _written()

    def _message(self) -> "ANSI":
        from prompt_toolkit.formatted_text import ANSI  # noqa: PLC0415 - see `_session`

        return ANSI("".join(f"{line}\n" for line in self._surface.drawn) + PROMPT)


def _session(
    *,
    message: Callable[[], "ANSI"],
    history: "History",
    completer: "Completer",
    below: Callable[[], str],
    keys: "KeyBindings",
) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - an extra; 140 ms
    from prompt_toolkit.input import Input  # noqa: PLC0415 - see above
    from prompt_toolkit.shortcuts import CompleteStyle  # noqa: PLC0415 - see above
    from prompt_toolkit.styles import Style  # noqa: PLC0415 - see above

    prompt: PromptSession[str] = PromptSession(
        message,
        history=history,
        completer=completer,
        complete_while_typing=False,
        complete_in_thread=True,
        complete_style=CompleteStyle.READLINE_LIKE,
        bottom_toolbar=below,
        key_bindings=keys,
        refresh_interval=REFRESH_S,
        reserve_space_for_menu=0,
        erase_when_done=True,
        style=Style.from_dict({"bottom-toolbar": "noreverse", "bottom-toolbar.text": "ansigray"}),
    )
    # While something is written above the line the library gives the terminal back its own ways: what is typed in that
    # moment would stand there twice, and Ctrl-D and Ctrl-C would go lost.
    terminal: Input = prompt.app.input
    terminal.cooked_mode = nullcontext
    return prompt


def _history(path: Path) -> "History":
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415 - see above

    class Kept(FileHistory):
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
            for line in complete(typed):
                yield Completion(line, start_position=-len(typed), display=line.split(" ")[-1])

    return Lines()


def _keys(on_escape: Callable[[], None]) -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent  # noqa: PLC0415 - see above

    keys = KeyBindings()

    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def escape(event: KeyPressEvent) -> None:
        _ = event
        on_escape()

    _ = keys.add("escape", "enter")(newline)
    _ = keys.add("escape")(escape)
    return keys


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


def paths_completed(line: str, *, root: Path) -> list[str]:
    """Return the ways in which a line goes on that ends in `@` and the beginning of a path of the workspace. Blocking."""
    head, mark, typed = line.rpartition("@")
    if not mark or any(one.isspace() for one in typed) or (head and not head[-1].isspace()):
        return []
    return paths_after(f"{head}@", typed, root=root)


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
